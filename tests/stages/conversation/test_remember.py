"""What is remembered of a conversation, from nothing to all of it; what is forgotten is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.config import PipelineConfig
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question, Remembered, Trace, Turn
from rag_lab.stages.conversation.remember import LastTurns
from rag_lab.stages.run_stage import stage_key
from rag_lab.testing import HashEmbedder, sample_index

TURNS = tuple(Turn(("user", "assistant")[n % 2], f"turn {n}") for n in range(8))


def remembered(history, **changes):
    """What a pipeline with these settings of `conversation` remembers of a history, and the record of it."""
    config = PipelineConfig().override(
        {"query.rewrite": "joined", "query.hyde": "none", "answer.name": "none", "retrieval.mode": "bm25"}
        | {f"conversation.{key}": value for key, value in changes.items()}
    )
    question = Question("q", "And the oven?", history=history)
    (trace,) = Pipeline.on(sample_index(), HashEmbedder(), config).run([question], answer=(), read=lambda _: ())
    return trace, next((record for record in trace.stages if record.stage == "remember"), None)


@pytest.mark.parametrize(
    ("changes", "kept", "told"),
    [
        ({"memory": "none"}, 0, "0 of 8 turns are remembered"),
        ({"memory": "last_exchange"}, 2, "2 of 8 turns are remembered"),
        ({"memory": "window"}, 6, "6 of 8 turns are remembered"),
        ({"memory": "window", "window_turns": 3}, 3, "3 of 8 turns are remembered"),
        ({"memory": "window", "window_turns": 20}, 8, ""),
    ],
)
def test_each_memory_keeps_the_last_turns_that_it_names(changes, kept, told):
    trace, record = remembered(TURNS, **changes)
    assert trace.remembered == Remembered(8, TURNS[8 - kept :])
    assert record.reason == told
    assert trace.search_query == " ".join([*(turn.content for turn in TURNS[8 - kept :]), "And the oven?"])


def test_before_the_first_question_there_is_nothing_to_remember():
    trace, record = remembered(())
    assert record is None and trace.remembered == Remembered() and trace.search_query == "And the oven?"


@given(st.integers(0, 12), st.integers(0, 12))
def test_no_more_turns_are_kept_than_asked_for_nor_than_there_are(n, asked):
    (outcome,) = LastTurns(asked).run([Trace(Question("q", "?", history=TURNS[:n]))])
    said = outcome.updates["remembered"]
    assert said.turns == TURNS[:n][max(0, len(TURNS[:n]) - asked) :] and said.n_turns == len(TURNS[:n])
    assert bool(outcome.reason) == (len(said.turns) < said.n_turns)


class Reading:
    name = "x"
    reads = ("question.text", "remembered")
    batch_size = 1
    costly = True


def test_a_question_without_turns_is_found_where_it_was_remembered_before_memories_were():
    before, now = type("Before", (Reading,), {"reads": ("question.text",)}), Reading
    alone = Trace(Question("q", "?"))
    assert stage_key(now(), "i", alone) == stage_key(before(), "i", alone)
    forgot = Trace(Question("q", "?"), remembered=Remembered(2))
    assert stage_key(now(), "i", forgot) != stage_key(now(), "i", alone)
