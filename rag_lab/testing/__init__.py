"""Doubles and contracts for people who bring modules: never reachable by a model's name.

Contracts hold modules of every kind, so this room stands below all whose modules it tests; only `cli` stands below it.
"""

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
