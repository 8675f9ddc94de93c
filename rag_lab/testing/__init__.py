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

from rag_lab.testing.contracts.corpus import FileReaderContract, SplitterContract, VectorStoreContract
from rag_lab.testing.contracts.module import (
    ChatModelContract,
    DesignContract,
    EmbedderContract,
    MetricContract,
    PairScorerContract,
)
from rag_lab.testing.contracts.stage import (
    ContextContract,
    FusionContract,
    HydeContract,
    ReaderContract,
    RerankerContract,
    RewritingContract,
    SearchContract,
    SelectionContract,
    StageContract,
    UnderstandingContract,
)
from rag_lab.testing.doubles import (
    HashEmbedder,
    OverlapScorer,
    ScriptedChat,
    sample_chat,
    sample_index,
    sample_question,
    sample_trace,
)

__all__ = ["ChatModelContract", "ContextContract", "DesignContract", "EmbedderContract", "FileReaderContract"]
__all__ += ["FusionContract", "HashEmbedder", "HydeContract", "MetricContract", "OverlapScorer", "PairScorerContract"]
__all__ += ["ReaderContract", "RerankerContract", "RewritingContract", "ScriptedChat", "SearchContract"]
__all__ += ["SelectionContract", "SplitterContract", "StageContract", "UnderstandingContract"]
__all__ += ["VectorStoreContract", "sample_chat", "sample_index", "sample_question", "sample_trace"]
