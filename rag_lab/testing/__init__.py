"""Doubles for tests, here and in modules that others write: never reachable by a model's name."""

from rag_lab.testing.models import HashEmbedder, OverlapScorer, ScriptedChat
from rag_lab.testing.servers import ModelServer, Scripted, gemini_server, openai_server

__all__ = [
    "HashEmbedder",
    "ModelServer",
    "OverlapScorer",
    "Scripted",
    "ScriptedChat",
    "gemini_server",
    "openai_server",
]
