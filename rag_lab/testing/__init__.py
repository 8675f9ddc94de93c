"""Doubles for tests, here and in modules that others write: never reachable by a model's name."""

from rag_lab.testing.loopback_servers import ModelServer, Scripted, gemini_server, openai_server
from rag_lab.testing.models import HashEmbedder, OverlapScorer, ScriptedChat

__all__ = [
    "HashEmbedder",
    "ModelServer",
    "OverlapScorer",
    "Scripted",
    "ScriptedChat",
    "gemini_server",
    "openai_server",
]
