"""Every pair scorer keeps to the contract of pair scorers."""

import pytest

from rag_lab.models.local.query_likelihood import QueryLikelihoodScorer
from rag_lab.models.local.sentence_transformers import CrossEncoderScorer
from rag_lab.models.remote.rerankers import CohereScorer, JinaScorer, TeiScorer, VllmScorer
from rag_lab.testing import OverlapScorer, PairScorerContract, rerank_server

BUILDERS = {
    "overlap": lambda request: OverlapScorer(),
    "cross_encoder": lambda request: CrossEncoderScorer(
        str(request.getfixturevalue("tiny_cross_encoder")), device="cpu"
    ),
    "query_likelihood": lambda request: QueryLikelihoodScorer(
        str(request.getfixturevalue("tiny_causal")), device="cpu"
    ),
}


REMOTE = {"tei": TeiScorer, "vllm": VllmScorer, "cohere": CohereScorer, "jina": JinaScorer}


class TestRemotePairScorers(PairScorerContract):
    @pytest.fixture(autouse=True, params=REMOTE.values(), ids=REMOTE)
    def _each(self, request, monkeypatch):
        for name in ("CO_API_KEY", "JINA_API_KEY"):
            monkeypatch.setenv(name, "hunter2secret")
        with rerank_server() as server:
            scorer = request.param("tiny", base_url=server.url, batch_size=2)
            self.make = lambda: scorer
            yield


class TestPairScorers(PairScorerContract):
    @pytest.fixture(autouse=True, params=BUILDERS.values(), ids=BUILDERS)
    def _each(self, request):
        self.make = lambda: request.param(request)
