"""Every pair scorer keeps to the contract of pair scorers."""

import pytest

from rag_lab.models.local.cross_encoder import CrossEncoderScorer
from rag_lab.models.local.query_likelihood import QueryLikelihoodScorer
from rag_lab.testing import OverlapScorer, PairScorerContract

BUILDERS = {
    "overlap": lambda request: OverlapScorer(),
    "cross_encoder": lambda request: CrossEncoderScorer(
        str(request.getfixturevalue("tiny_cross_encoder")), device="cpu"
    ),
    "query_likelihood": lambda request: QueryLikelihoodScorer(
        str(request.getfixturevalue("tiny_causal")), device="cpu"
    ),
}


class TestPairScorers(PairScorerContract):
    @pytest.fixture(autouse=True, params=BUILDERS.values(), ids=BUILDERS)
    def _each(self, request):
        self.make = lambda: request.param(request)
