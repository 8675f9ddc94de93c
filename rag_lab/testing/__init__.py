"""For people who bring modules: the contract of each kind as a class to inherit, sample traces, doubles of models.

    class TestShortest(RerankerContract):
        def make(self):
            return Shortest(keep=4)

No double can be reached by a model's name. Contracts hold modules of every kind, so this room stands below all whose
modules it tests; only `cli` stands below it.
"""

import sys

if _pytest := sys.modules.get("pytest"):  # so that a broken rule shows its values, as in a test's own file
    _pytest.register_assert_rewrite("rag_lab.testing.contracts")

from rag_lab.testing.contracts.chat_model import ChatModelContract
from rag_lab.testing.contracts.design import DesignContract
from rag_lab.testing.contracts.embedder import EmbedderContract
from rag_lab.testing.contracts.file_reader import FileReaderContract
from rag_lab.testing.contracts.metric import MetricContract
from rag_lab.testing.contracts.pair_scorer import PairScorerContract
from rag_lab.testing.contracts.sparse_index import SparseIndexContract
from rag_lab.testing.contracts.splitter import SplitterContract
from rag_lab.testing.contracts.stage import StageContract
from rag_lab.testing.contracts.stage_kinds import (
    ContextContract,
    FusionContract,
    HydeContract,
    ReaderContract,
    RerankerContract,
    RewritingContract,
    SearchContract,
    SelectionContract,
    UnderstandingContract,
)
from rag_lab.testing.contracts.vector_store import VectorStoreContract
from rag_lab.testing.loopback_ollama import ollama_server
from rag_lab.testing.loopback_rerank import rerank_server
from rag_lab.testing.loopback_servers import ModelServer, Scripted, gemini_server, openai_server
from rag_lab.testing.models import HashEmbedder, OverlapScorer, ScriptedChat
from rag_lab.testing.sample_traces import sample_chat, sample_index, sample_question, sample_trace

__all__ = [
    "ChatModelContract",
    "ContextContract",
    "DesignContract",
    "EmbedderContract",
    "FileReaderContract",
    "FusionContract",
    "HashEmbedder",
    "HydeContract",
    "MetricContract",
    "ModelServer",
    "OverlapScorer",
    "PairScorerContract",
    "ReaderContract",
    "RerankerContract",
    "RewritingContract",
    "Scripted",
    "ScriptedChat",
    "SearchContract",
    "SelectionContract",
    "SparseIndexContract",
    "SplitterContract",
    "StageContract",
    "UnderstandingContract",
    "VectorStoreContract",
    "gemini_server",
    "ollama_server",
    "openai_server",
    "rerank_server",
    "sample_chat",
    "sample_index",
    "sample_question",
    "sample_trace",
]
