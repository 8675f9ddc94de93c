"""What stands beyond a model's limit is counted to the token: an answer planted there changes nothing it computes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tolerance import FLOAT32

from rag_lab.memory.results import Memory
from rag_lab.models import shared
from rag_lab.models.local.query_likelihood import QueryLikelihoodScorer
from rag_lab.models.local.sentence_transformers import CrossEncoderScorer, SentenceTransformerEmbedder
from rag_lab.models.remembered_vectors import RememberedEmbedder, RememberedScorer
from rag_lab.models.truncation import most_tokens, truncated_in_pairs, truncated_in_texts
from rag_lab.testing import HashEmbedder, OverlapScorer

ANSWER = " the press runs at 140 bar ."  # seven tokens of every tokenizer here
QUESTION = "what pressure ?"


@pytest.fixture(scope="module")
def minilm():
    return SentenceTransformerEmbedder("minilm", device="cpu")


def words(n):
    return " ".join(["maintenance"] * n)


def test_an_answer_beyond_the_limit_of_an_embedding_model_is_counted_and_changes_no_vector(minilm):
    assert minilm.most_tokens == 256
    full, over = words(254), words(254) + ANSWER  # two marks are read, too
    assert truncated_in_texts(minilm, [words(253), full, over], "document") == [0, 0, 7]
    vectors = minilm.embed_documents([words(247) + ANSWER, full, over])
    np.testing.assert_allclose(vectors[1], vectors[2], atol=FLOAT32)
    assert vectors[0] @ vectors[1] < 0.999
    assert truncated_in_texts(minilm, [words(247) + ANSWER], "query") == [0]


def test_weights_are_not_loaded_to_count(monkeypatch):
    model = SentenceTransformerEmbedder("minilm")
    monkeypatch.setattr(SentenceTransformerEmbedder, "_load", None)
    assert model.text_tokens(["press", "", words(300)], "document") == [3, 2, 302]


def test_an_answer_beyond_the_limit_of_a_cross_encoder_is_counted_and_changes_no_score(tiny_cross_encoder):
    scorer = CrossEncoderScorer(str(tiny_cross_encoder), device="cpu")
    assert scorer.most_tokens == 64  # what it has positions for
    room = 64 - len(QUESTION.split()) - 3
    full, over = (QUESTION, words(room)), (QUESTION, words(room) + ANSWER)
    assert truncated_in_pairs(scorer, [full, over]) == [0, 7]
    assert scorer.score([over]) == pytest.approx(scorer.score([full]), abs=FLOAT32)
    assert scorer.score([(QUESTION, words(room - 7) + ANSWER)]) != pytest.approx(scorer.score([full]), abs=1e-4)
    short = CrossEncoderScorer(str(tiny_cross_encoder), device="cpu", max_tokens=16)
    assert short.most_tokens == 16 and truncated_in_pairs(short, [over]) == [7 + 48]


def test_an_answer_beyond_the_limit_of_a_likelihood_is_counted_and_changes_no_score(tiny_causal):
    scorer = QueryLikelihoodScorer(str(tiny_causal), device="cpu", passage_tokens=20)
    full, over = (QUESTION, words(20)), (QUESTION, words(20) + ANSWER)
    assert truncated_in_pairs(scorer, [full, over, full]) == [0, 7, 0]
    assert scorer.score([over]) == pytest.approx(scorer.score([full]), abs=FLOAT32)
    assert scorer.score([(QUESTION, words(13) + ANSWER)]) != pytest.approx(scorer.score([full]), abs=1e-4)


@given(n=st.integers(0, 400), more=st.integers(1, 50))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_token_more_is_read_or_counted_as_unread(minilm, n, more):
    one, other = minilm.text_tokens([words(n), words(n + more)], "document")
    unread = truncated_in_texts(minilm, [words(n), words(n + more)], "document")
    assert other - one == more
    assert [one - unread[0], other - unread[1]] == [min(256, one), min(256, other)]


def test_a_prompt_of_the_model_takes_room_from_what_is_embedded(minilm_with_prompts):
    model = SentenceTransformerEmbedder(str(minilm_with_prompts), device="cpu")
    counts = [model.text_tokens([words(10)], kind)[0] for kind in ("query", "document")]
    assert counts == [10 + 2 + 5, 10 + 2 + 2]
    assert truncated_in_texts(model, [words(250)], "query") == [1]
    np.testing.assert_allclose(model.embed_queries([words(249) + ANSWER]), model.embed_queries([words(249)]), atol=1e-6)


def test_a_model_that_does_not_say_what_it_reads_counts_nothing_as_unread():
    assert most_tokens(HashEmbedder()) is most_tokens(OverlapScorer()) is None
    assert truncated_in_texts(HashEmbedder(), [words(9999)], "document") == [0]
    assert truncated_in_pairs(OverlapScorer(), [("a", words(9999))]) == [0]


def test_weights_of_the_hub_that_are_not_here_say_nothing_yet():
    model = SentenceTransformerEmbedder("no-such-owner/no-such-model")
    assert model.most_tokens is None and model.text_tokens(["x"], "document") == [0]
    assert SentenceTransformerEmbedder("nowhere").most_tokens is None


def test_remembering_changes_no_limit_and_no_count(minilm, tiny_cross_encoder, tmp_path):
    remembered = RememberedEmbedder(minilm, tmp_path / "v.sqlite")
    assert truncated_in_texts(remembered, [words(300)], "document") == [46]
    scorer = RememberedScorer(CrossEncoderScorer(str(tiny_cross_encoder)), Memory(tmp_path / "m.sqlite"))
    assert truncated_in_pairs(scorer, [("who ?", words(100))]) == [2 + 100 + 3 - 64]
    unknown = RememberedEmbedder(HashEmbedder(), tmp_path / "v.sqlite")
    assert unknown.most_tokens is None and truncated_in_texts(unknown, [words(9999)], "query") == [0]
    assert truncated_in_pairs(
        RememberedScorer(OverlapScorer(), Memory(tmp_path / "m.sqlite")), [("a", words(9999))]
    ) == [0]


@pytest.fixture
def minilm_with_prompts(tmp_path):
    """The packaged model with words that it puts before questions and passages."""
    import json
    from pathlib import Path

    from rag_lab.models.weights import packaged

    folder = tmp_path / "prompted"
    folder.mkdir()
    for path in packaged("minilm").iterdir():
        (folder / path.name).symlink_to(path)
    saved = folder / "config_sentence_transformers.json"
    prompts = {"query": "question to be answered : ", "passage": "passage : "}
    text = json.dumps({**json.loads(saved.read_text()), "prompts": prompts})
    saved.unlink()
    Path(saved).write_text(text)
    return folder


@dataclass(frozen=True)
class MyEmbedder:
    """Says how much it reads, and not how it counts."""

    most_tokens: int = 10
    version: ClassVar[int] = 1

    def embed_documents(self, texts):
        return [[1.0, len(text)] for text in texts]

    embed_queries = embed_documents


@dataclass(frozen=True)
class MyCountingEmbedder(MyEmbedder):
    def text_tokens(self, texts, kind):
        return [len(text.split()) + (kind == "query") for text in texts]


@dataclass(frozen=True)
class MyScorer:
    most_tokens: int | None = 4
    version: ClassVar[int] = 1

    def score(self, pairs):
        return [float(len(passage)) for _, passage in pairs]

    def pair_tokens(self, pairs):
        return [len(f"{one} {other}".split()) for one, other in pairs]


def test_a_model_of_ones_own_says_how_much_it_reads_and_may_count_itself():
    text = "maintenance " * 12
    counting, estimated = shared.embedder(MyCountingEmbedder()), shared.embedder(MyEmbedder())
    assert [truncated_in_texts(counting, [text, "a"], kind) for kind in ("document", "query")] == [[2, 0], [3, 0]]
    (over, none) = truncated_in_texts(estimated, [text, "a"], "document")
    assert over > 2 and none == 0  # an upper estimate
    assert truncated_in_pairs(shared.cross_encoder(MyScorer()), [("a b", "c d e"), ("a", "b")]) == [1, 0]
    assert truncated_in_pairs(shared.cross_encoder(MyScorer(None)), [("a b", "c d e")]) == [0]
