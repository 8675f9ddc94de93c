"""What stands beyond a model's limit is counted to the token: an answer planted there changes nothing it computes."""

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tolerance import FLOAT32

from rag_lab.memory.results import Memory
from rag_lab.models import shared
from rag_lab.models.local.causal import QueryLikelihoodScorer
from rag_lab.models.local.gguf import gguf_tokenizer
from rag_lab.models.local.sentence_transformers import CrossEncoderScorer, SentenceTransformerEmbedder
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.models.remembered_vectors import RememberedEmbedder, RememberedScorer
from rag_lab.models.remote.replies import counted
from rag_lab.models.truncation import (
    Truncation,
    estimated_tokens,
    fewest_tokens,
    most_tokens,
    percent,
    short_name,
    truncated_in_prompt,
    truncated_of,
)
from rag_lab.models.weights import packaged
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
    assert truncated_of(minilm, [words(253), full, over], "document") == [0, 0, 7]
    vectors = minilm.embed_documents([words(247) + ANSWER, full, over])
    np.testing.assert_allclose(vectors[1], vectors[2], atol=FLOAT32)
    assert vectors[0] @ vectors[1] < 0.999
    assert truncated_of(minilm, [words(247) + ANSWER], "query") == [0]


def test_weights_are_not_loaded_to_count(monkeypatch):
    model = SentenceTransformerEmbedder("minilm")
    monkeypatch.setattr(SentenceTransformerEmbedder, "loaded", None)
    assert model.text_tokens(["press", "", words(300)], "document") == [3, 2, 302]


def test_an_answer_beyond_the_limit_of_a_cross_encoder_is_counted_and_changes_no_score(tiny_cross_encoder):
    scorer = CrossEncoderScorer(str(tiny_cross_encoder), device="cpu")
    assert scorer.most_tokens == 64  # what it has positions for
    room = 64 - len(QUESTION.split()) - 3
    full, over = (QUESTION, words(room)), (QUESTION, words(room) + ANSWER)
    assert truncated_of(scorer, [full, over]) == [0, 7]
    assert scorer.score([over]) == pytest.approx(scorer.score([full]), abs=FLOAT32)
    assert scorer.score([(QUESTION, words(room - 7) + ANSWER)]) != pytest.approx(scorer.score([full]), abs=1e-4)
    short = CrossEncoderScorer(str(tiny_cross_encoder), device="cpu", max_tokens=16)
    assert short.most_tokens == 16 and truncated_of(short, [over]) == [7 + 48]


def test_an_answer_beyond_the_limit_of_a_likelihood_is_counted_and_changes_no_score(tiny_causal):
    scorer = QueryLikelihoodScorer(str(tiny_causal), device="cpu", passage_tokens=20)
    full, over = (QUESTION, words(20)), (QUESTION, words(20) + ANSWER)
    assert truncated_of(scorer, [full, over, full]) == [0, 7, 0]
    assert scorer.score([over]) == pytest.approx(scorer.score([full]), abs=FLOAT32)
    assert scorer.score([(QUESTION, words(13) + ANSWER)]) != pytest.approx(scorer.score([full]), abs=1e-4)


@given(n=st.integers(0, 400), more=st.integers(1, 50))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_token_more_is_read_or_counted_as_unread(minilm, n, more):
    one, other = minilm.text_tokens([words(n), words(n + more)], "document")
    unread = truncated_of(minilm, [words(n), words(n + more)], "document")
    assert other - one == more
    assert [one - unread[0], other - unread[1]] == [min(256, one), min(256, other)]


def test_a_prompt_of_the_model_takes_room_from_what_is_embedded(minilm_with_prompts):
    model = SentenceTransformerEmbedder(str(minilm_with_prompts), device="cpu")
    counts = [model.text_tokens([words(10)], kind)[0] for kind in ("query", "document")]
    assert counts == [10 + 2 + 5, 10 + 2 + 2]
    assert truncated_of(model, [words(250)], "query") == [1]
    np.testing.assert_allclose(model.embed_queries([words(249) + ANSWER]), model.embed_queries([words(249)]), atol=1e-6)


def test_a_model_that_does_not_say_what_it_reads_counts_nothing_as_unread():
    assert most_tokens(HashEmbedder()) is most_tokens(OverlapScorer()) is None
    assert truncated_of(HashEmbedder(), [words(9999)], "document") == [0]
    assert truncated_of(OverlapScorer(), [("a", words(9999))]) == [0]


def test_weights_of_the_hub_that_are_not_here_say_nothing_yet():
    model = SentenceTransformerEmbedder("no-such-owner/no-such-model")
    assert model.most_tokens is None and model.text_tokens(["x"], "document") == [0]
    assert SentenceTransformerEmbedder("nowhere").most_tokens is None


def test_remembering_changes_no_limit_and_no_count(minilm, tiny_cross_encoder, tmp_path):
    remembered = RememberedEmbedder(minilm, tmp_path / "v.sqlite")
    assert truncated_of(remembered, [words(300)], "document") == [46]
    scorer = RememberedScorer(CrossEncoderScorer(str(tiny_cross_encoder)), Memory(tmp_path / "m.sqlite"))
    assert truncated_of(scorer, [("who ?", words(100))]) == [2 + 100 + 3 - 64]
    unknown = RememberedEmbedder(HashEmbedder(), tmp_path / "v.sqlite")
    assert unknown.most_tokens is None and truncated_of(unknown, [words(9999)], "query") == [0]
    assert truncated_of(RememberedScorer(OverlapScorer(), Memory(tmp_path / "m.sqlite")), [("a", words(9999))]) == [0]


@pytest.fixture
def minilm_with_prompts(tmp_path):
    """The packaged model with words that it puts before questions and passages."""
    folder = tmp_path / "prompted"
    folder.mkdir()
    for path in packaged("minilm").iterdir():
        (folder / path.name).symlink_to(path)
    saved = folder / "config_sentence_transformers.json"
    prompts = {"query": "question to be answered : ", "passage": "passage : "}
    text = json.dumps({**json.loads(saved.read_text()), "prompts": prompts})
    saved.unlink()
    saved.write_text(text)
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
    assert [truncated_of(counting, [text, "a"], kind) for kind in ("document", "query")] == [[2, 0], [3, 0]]
    (over, none) = truncated_of(estimated, [text, "a"], "document")
    assert over > 2 and none == 0  # an upper estimate
    assert truncated_of(shared.scorer("cross_encoder", MyScorer()), [("a b", "c d e"), ("a", "b")]) == [1, 0]
    assert truncated_of(shared.scorer("cross_encoder", MyScorer(None)), [("a b", "c d e")]) == [0]


def test_lengths_become_shares():
    found = Truncation.of([100, 256, 300, 512], characters=4672, limit=256)
    assert found == Truncation(256, 4, 2, 4672, 1168, 44 + 256)
    assert (found.share_longer, found.share_truncated) == (0.5, 300 / 1168)
    assert found.text("the chunks", "sentence_transformers:minilm?device=cpu") == (
        "50% of the chunks are longer than minilm reads (256 tokens, here about 1,020 characters)"
    )
    nothing = Truncation.of([], 0, 256)
    assert (nothing.share_longer, nothing.share_truncated) == (0, 0)
    assert "about 0 characters" in nothing.text("the chunks", "minilm")


@pytest.mark.parametrize(
    ("share", "told"),
    [(0, "0%"), (1, "100%"), (0.0001, "0.1%"), (0.004, "0.4%"), (0.614, "61%"), (0.9999, "99%"), (0.0149, "1%")],
)
def test_what_is_cut_is_never_told_as_nothing_nor_what_is_read_as_nothing(share, told):
    assert percent(share) == told


def test_a_model_without_a_provider_keeps_its_name():
    assert [short_name(name) for name in ("mine", "mine:Embedder?k=1", "openai:a:b")] == ["mine", "Embedder", "a:b"]


TEXTS = [
    "The relief valve of press P-1 opens at 290 bar; don't touch it, e.g. with 3.5 mm gloves (see 4.2).",
    "Donaudampfschifffahrtsgesellschaftskapitän und Rinderkennzeichnungsfleischetikettierungsüberwachung",
    "| a | b |\n| --- | --- |\n| 1,200 | https://example.org/a?b=c&d=e |",
    "阀门在二百九十巴时打开。油每两千小时更换一次。 圧力弁は二百九十バールで開きます。",
    "ประตูนิรภัยเปิดที่ความดันสองร้อยเก้าสิบบาร์",
    "x" * 500 + " " + "=" * 80,
    "",
]


@pytest.fixture(scope="module")
def counter():
    tokenizer = gguf_tokenizer(packaged("smollm2"))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize("text", TEXTS)
def test_no_tokenizer_here_makes_fewer_tokens_of_a_text(counter, text):
    assert fewest_tokens(text) <= counter(text)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_nor_of_any_other(counter, text):
    assert fewest_tokens(text) <= counter(text)


def prompt(n):
    return ChatRequest((Message("system", "Answer from the passages."), Message("user", "press " * n)))


def test_what_a_server_cannot_have_read_is_counted():
    assert truncated_in_prompt(prompt(6000), 4000) == 6000 + 4 - 4000
    assert truncated_in_prompt(prompt(3000), 3300) == 0


def test_a_server_that_reports_a_whole_window_has_cut_what_may_have_been_more():
    assert truncated_in_prompt(prompt(3200), 4096) == 1
    assert truncated_in_prompt(prompt(3200), 4095) == 0
    assert truncated_in_prompt(prompt(900), 4096) == 0  # as an image may take


@given(st.integers(1, 3000))
def test_who_reads_all_is_not_accused(counter, n):
    request = ChatRequest((Message("user", TEXTS[0] * n),)) if n < 40 else prompt(n)
    read = sum(counter(message.content) for message in request.messages)
    assert truncated_in_prompt(request, read + (read % 1024 == 0)) == 0


def test_counts_of_a_server_carry_what_it_did_not_read_and_estimates_do_not():
    told, guessed = counted(prompt(6000), ChatReply("ok", tokens_in=4096, tokens_out=1))
    assert (told.truncated_tokens, guessed) == (6004 - 4096, "")
    untold, guessed = counted(prompt(6000), ChatReply("ok"))
    assert untold.truncated_tokens == 0 and guessed
    known, _ = counted(prompt(6000), ChatReply("ok", tokens_in=4096, tokens_out=1, truncated_tokens=77))
    assert known.truncated_tokens == 77


ESTIMATED = [
    "The press runs at 140 bar. Its ram guides take grease NLGI 2 every 500 hours.",
    "| Part | No. |\n|---|---|\n| Filter | F-1204/B |\n",
    "def f(x):\n    return x ** 2\n",
    "Überprüfung der Dichtungen; 3,5 mm ≤ Spalt.",
]


@pytest.mark.parametrize("text", ESTIMATED)
def test_it_is_an_upper_estimate(text, minilm):
    exact = minilm.text_tokens([text], "document")[0] - 2  # marks around it
    assert exact <= estimated_tokens(text) <= 3 * exact


@given(st.text(), st.text())
def test_a_longer_text_never_has_fewer_tokens(first, second):
    assert estimated_tokens(first + "\n" + second) >= max(estimated_tokens(first), estimated_tokens(second)) - 1
