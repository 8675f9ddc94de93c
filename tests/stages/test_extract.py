import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.config import PipelineConfig
from rag_lab.models import shared
from rag_lab.pipeline import Pipeline
from rag_lab.records import Citation, Passage, Question, Trace, Turn
from rag_lab.stages.extract import NOT_FOUND, Extract, quotable, windows
from rag_lab.stages.run_stage import run_stage
from rag_lab.testing import HashEmbedder, sample_index, sample_question

OVEN = "The oven cures at 180 degrees. Its filter is changed every\nmonth by maintenance. Mr Okoro has the key."
TABLE = "Stage for P-13  Torque\n1  910 Nm\n3, final  2,750 Nm\nCrosshead guide screws  450 Nm"
SENTENCES = ["The oven is hot.", "The press stops.", "Grease it monthly.", "Alarm A7 is the burner.", "Call\nMr Okoro."]


def passages(*texts):
    return tuple(Passage(n, f"p{n}", f"{n}.md", n, 0, len(text), text) for n, text in enumerate(texts, start=1))


def read(question, *texts, longest=1, word_weight=0.5, min_score=-1.0, embedder=None, **changes):
    stage = Extract(embedder or HashEmbedder(), longest, word_weight, min_score)
    trace = Trace(Question("q", question, **changes.pop("asked", {})), passages=passages(*texts), **changes)
    (done,) = run_stage(stage, [trace])
    return done.answer, done.stages[-1].reason


def test_what_answers_is_quoted_with_the_passage_that_it_stands_in():
    answer, _ = read("How often is the filter changed?", TABLE, OVEN)
    assert answer.text == "Its filter is changed every month by maintenance."
    assert answer.citations == (Citation(2, "2.md", 2, "Its filter is changed every\nmonth by maintenance."),)
    assert not answer.abstained


def test_a_row_of_a_table_can_be_quoted_alone():
    answer, _ = read("final torque, in Nm", TABLE, OVEN)
    assert answer.text == "3, final  2,750 Nm"


@given(
    st.lists(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4).map(" ".join), min_size=1, max_size=3),
    st.sampled_from(["Who has the key of the oven?", "When is grease due?", "?"]),
    st.integers(1, 3),
)
def test_an_answer_stands_word_for_word_in_what_it_cites(texts, question, longest):
    answer, _ = read(question, *texts, longest=longest)
    (citation,) = answer.citations
    assert citation.quote in texts[citation.number - 1]
    assert answer.text.split() == citation.quote.split()


@given(st.permutations(SENTENCES))
def test_questions_of_one_batch_do_not_see_each_others_passages(order):
    stage = Extract(HashEmbedder(), 2, 0.5, -1.0)
    traces = [Trace(Question(text, f"What of {text}"), passages=passages(text)) for text in order]
    traces.insert(1, Trace(Question("none", "What?")))
    together = [outcome.updates["answer"] for outcome in stage.run(traces)]
    assert together == [stage.run([trace])[0].updates["answer"] for trace in traces]
    assert [answer.citations[0].quote for answer in together if not answer.abstained] == list(order)


@pytest.mark.parametrize("texts", [(), ("3.",)])
def test_where_there_is_nothing_to_quote_it_abstains(texts):
    answer, reason = read("How often?", *texts)
    assert (answer.text, answer.abstained, answer.citations) == (NOT_FOUND, True, ())
    assert reason == "there is nothing to quote from"


def test_under_the_threshold_it_abstains_and_says_how_near_the_best_came():
    answer, reason = read("How often is the filter changed?", OVEN, min_score=0.99)
    assert answer.abstained
    assert reason.startswith("the best quote scores 0.")
    assert "answer.quote_min_score 0.99" in reason


def test_words_that_all_sentences_share_tell_none_from_another():
    answer, _ = read("the press the press code E42", "The press stops. The press is loud. Code E42.", word_weight=100.0)
    assert answer.text == "Code E42."


def test_a_follow_up_is_compared_by_the_query_that_stands_alone():
    asked = {"history": (Turn("user", "How often is the filter of the oven changed?"),)}
    answer, _ = read("And who has the key?", OVEN, asked=asked, search_query="How often is the filter changed?")
    assert "filter" in answer.text
    answer, _ = read("Who has the key?", OVEN, search_query="How often is the filter changed?")
    assert "key" in answer.text


def test_every_setting_is_in_its_identity():
    plain = Extract(HashEmbedder(), 3, 0.5, 0.25).identity()
    others = [Extract(HashEmbedder(), *numbers).identity() for numbers in [(1, 0.5, 0.25), (3, 0, 0.25), (3, 0.5, 0.5)]]
    assert all(other != plain for other in others)


def test_a_pipeline_answers_with_it_and_asks_no_language_model():
    config = PipelineConfig().override(
        {"answer.name": "extract", "query.rewrite": "none", "query.hyde": "none", "models.generation": "openai:sample"}
    )
    trace = Pipeline.on(sample_index(), HashEmbedder(), config).run([sample_question()])[0]
    assert trace.answer.citations[0].quote
    assert trace.raw_text is None
    assert not any(record.tokens_out for record in trace.stages)


@pytest.mark.slow
def test_the_packaged_embeddings_find_the_sentence_that_means_the_same():
    answer, _ = read(
        "When is the machine's sieve replaced?", OVEN, embedder=shared.embedder("sentence_transformers:minilm")
    )
    assert answer.text == "Its filter is changed every month by maintenance."


class Short(HashEmbedder):
    """Reads six words and no more."""

    most_tokens = 6

    def text_tokens(self, texts, kind):
        return [len(text.split()) for text in texts]


def test_what_the_embedding_model_does_not_read_is_counted_and_no_longer_run_is_quoted():
    stage = Extract(Short(), 3, 0.5, -1.0)
    trace = Trace(
        Question("q", "Is it one or two or three?"), passages=passages("One. Two is. It is three of them all.")
    )
    (outcome,) = stage.run([trace])
    assert outcome.truncated_tokens == 1
    assert len(outcome.updates["answer"].text.split()) <= 6


PARTS = [
    "The press stops.",
    "1.",
    "2.  Call Mr Okoro",
    "Stage  Torque",
    "- oil",
    "wrapped",
    "| a | b |",
    "(a) c",
    "Größe?",
]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=12).flatmap(
    lambda parts: st.lists(st.sampled_from(["\n", "\n\n", " ", "  "]), min_size=len(parts), max_size=len(parts)).map(
        lambda gaps: "".join(part + gap for part, gap in zip(parts, gaps, strict=True))
    )
)


def units(text):
    return [text[start:end] for start, end in quotable(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The press stops. It is\nloud.", ["The press stops.", "It is\nloud."]),
        ("Item  Value\nPilot  35 bar\nSet it\nwith care.", ["Item  Value", "Pilot  35 bar", "Set it\nwith care."]),
        ("1.  Warm it to\n40 °C.\n2.  Wipe it.", ["1.  Warm it to\n40 °C.", "2.  Wipe it."]),
        ("- oil\n- grease", ["- oil", "- grease"]),
        ("| a | b |\n| c | d |", ["| a | b |", "| c | d |"]),
        ("Steps:\n1.\nWarm it.", ["Steps:", "1.\nWarm it."]),
        ("3.", []),
        ("", []),
    ],
)  # fmt: skip
def test_sentences_rows_and_items_are_told_apart(text, expected):
    assert units(text) == expected


@given(TEXTS)
def test_nothing_is_lost_but_marks_that_number_nothing_and_nothing_stands_twice(text):
    spans = quotable(text)
    assert spans == sorted(spans)
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    left_out = "".join(text[end:start] for (_, end), (start, _) in zip(spans, spans[1:], strict=False))
    assert left_out.strip() == ""


@given(st.integers(0, 9), st.integers(1, 4))
def test_windows_are_runs_of_units_the_short_ones_first(n_units, longest):
    found = windows(n_units, longest)
    assert found[:n_units] == [(n, n + 1) for n in range(n_units)]
    assert len(found) == len(set(found)) == sum(max(0, n_units - length + 1) for length in range(1, longest + 1))
    assert all(0 <= first < last <= n_units and last - first <= longest for first, last in found)
    assert [last - first for first, last in found] == sorted(last - first for first, last in found)


UNALIKE = ["Oven hot.", "Press stops.", "Grease monthly.", "Call Okoro.", "Alarm A7 burner."]  # no word is in two


class OrthogonalWords(HashEmbedder):
    """A dimension for each word of `UNALIKE`; it keeps what it was asked for."""

    words = re.findall(r"\w+", " ".join(UNALIKE).lower())

    def __init__(self):
        super().__init__()
        self.embedded = []

    def embed_documents(self, texts):
        self.embedded += texts
        counts = [[text.lower().replace(".", " ").split().count(word) for word in self.words] for text in texts]
        vectors = np.array(counts, np.float32).reshape(len(texts), len(self.words))
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)

    def embed_queries(self, texts):
        return self.embed_documents([text.replace("?", "") for text in texts])


@given(
    st.lists(st.sampled_from(UNALIKE), min_size=1, unique=True),
    st.sets(st.sampled_from(OrthogonalWords.words), min_size=1, max_size=5),
    st.integers(1, 3),
)
def test_what_is_not_embedded_would_not_have_won(sentences, asked, longest):
    text, question, embedder = " ".join(sentences), " ".join(sorted(asked)), OrthogonalWords()
    answer, _ = read(question, text, longest=longest, word_weight=0.0, embedder=embedder)
    units = quotable(text)
    runs = [text[units[first][0] : units[last - 1][1]] for first, last in windows(len(units), longest)]
    cosines = embedder.embed_documents(runs) @ embedder.embed_queries([question])[0]
    assert answer.citations[0].quote == runs[int(np.argmax(cosines.round(6)))]


def test_runs_that_cannot_win_are_not_embedded():
    embedder = OrthogonalWords()
    answer, _ = read("grease monthly", " ".join(UNALIKE), longest=3, embedder=embedder)
    assert answer.text == "Grease monthly."
    runs = [text for text in embedder.embedded[1:] if text not in UNALIKE]  # behind the question
    assert len(runs) == 5  # those with the sentence that is asked for
    assert all("Grease monthly." in text for text in runs)
