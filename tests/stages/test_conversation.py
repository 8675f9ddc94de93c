"""What is remembered of a conversation, from nothing to all of it; what is forgotten is told."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.config import PipelineConfig
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatReply
from rag_lab.pipeline import Pipeline
from rag_lab.records import MachineUse, Question, Remembered, Trace, Turn
from rag_lab.stages.conversation import LastTurns, Summarize
from rag_lab.stages.run_stage import run_stage, stage_key
from rag_lab.testing import HashEmbedder, ScriptedChat, sample_index

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


def test_what_was_forgotten_is_another_question_to_a_stage_that_reads_the_memory():
    alone, forgot = Trace(Question("q", "?")), Trace(Question("q", "?"), remembered=Remembered(2))
    assert stage_key(Reading(), "i", forgot) != stage_key(Reading(), "i", alone)


SUMMED_TURNS = tuple(Turn(("user", "assistant")[n % 2], f"turn {n}") for n in range(20))


def asked(n, question_id="q"):
    return Trace(Question(question_id, "And now?", history=SUMMED_TURNS[:n]))


def notes(request):
    """Notes that show what they were made of: those before, and the turns."""
    said = request.messages[-1].content
    before = said.split("\n", 1)[0].removeprefix("Notes so far: ")
    numbers = [line.rsplit(" ", 1)[1] for line in said.splitlines() if " turn " in line]
    return f"<{before}+{'.'.join(numbers)}>"


@pytest.mark.parametrize(
    ("n", "summary", "turns"),
    [
        (0, "", 0),
        (2, "", 2),
        (6, "", 6),
        (8, "<none+0.1.2.3.4.5>", 2),
        (12, "<none+0.1.2.3.4.5>", 6),
        (14, "<<none+0.1.2.3.4.5>+6.7.8.9.10.11>", 2),
    ],
)
def test_the_second_summary_extends_the_first_and_the_turns_since_stay(n, summary, turns):
    chat = ScriptedChat(notes)
    (outcome,) = Summarize(chat, 6, 60).run([asked(n)])
    assert outcome.updates["remembered"] == Remembered(n, SUMMED_TURNS[n - turns : n], summary)
    assert outcome.status == "ok" and len(chat.requests) == summary.count("<")
    assert all(request.max_tokens == 60 for request in chat.requests)


def test_the_next_question_of_a_conversation_finds_its_summary_made(tmp_path):
    chat, memory = ScriptedChat(notes), Memory(tmp_path / "stages.sqlite")
    stage = Summarize(chat, 6, 60, memory=memory)
    run_stage(stage, [asked(8), asked(10, "r")], memory)
    assert len(chat.requests) == 1
    (later,) = run_stage(stage, [asked(14, "s")], memory)
    assert len(chat.requests) == 2  # the second alone, which extends the first
    assert later.remembered.summary == "<<none+0.1.2.3.4.5>+6.7.8.9.10.11>"
    run_stage(stage, [asked(14, "s")], memory)
    assert len(chat.requests) == 2


def test_a_question_is_charged_with_all_of_its_summaries_whoever_made_them(tmp_path):
    memory = Memory(tmp_path / "stages.sqlite")
    replies = [ChatReply("first", tokens_in=10, tokens_out=2), ChatReply("second", tokens_in=20, tokens_out=3)]
    stage = Summarize(ScriptedChat(replies), 6, 60, memory=memory)
    run_stage(stage, [asked(8)], memory)
    (later,) = run_stage(stage, [asked(14)], memory)
    assert (later.stages[-1].tokens_in, later.stages[-1].tokens_out) == (30, 5)


@pytest.mark.parametrize("reply", [ChatReply(error="no answer in time", transient=True), ChatReply(" \n")])
def test_without_a_summary_the_last_turns_are_remembered_and_the_record_says_so(tmp_path, reply):
    memory = Memory(tmp_path / "stages.sqlite")
    stage = Summarize(ScriptedChat([reply, "made"]), 6, 60, memory=memory)
    (done,) = run_stage(stage, [asked(10)], memory)
    assert done.remembered == Remembered(10, SUMMED_TURNS[4:10])
    record = done.stages[-1]
    assert record.status == "fallback" and record.reason.startswith("no summary: ")
    assert record.reason.endswith("6 of 10 turns are remembered")
    assert record.curable == bool(reply.error)
    if reply.transient:  # nothing of it is remembered: another attempt may do better
        assert run_stage(stage, [asked(10)], memory)[0].remembered.summary == "made"


@given(st.integers(0, 20), st.integers(1, 9))
@settings(max_examples=40)
def test_every_turn_is_summed_up_once_or_kept_and_the_last_is_always_kept(n, every):
    (outcome,) = Summarize(ScriptedChat(notes), every, 60).run([asked(n)])
    said = outcome.updates["remembered"]
    summed = [int(one) for part in said.summary.replace("<", "").split(">") for one in part.split("+")[-1].split(".")
              if one.isdigit()]  # fmt: skip
    assert [f"turn {one}" for one in summed] + [turn.content for turn in said.turns] == [f"turn {i}" for i in range(n)]
    assert (len(said.turns) <= every) and (len(said.turns) > 0) == (n > 0)


def test_what_would_be_asked_is_as_long_as_it_can_get():
    stage = Summarize(ScriptedChat(notes), 6, 60)
    first, second = stage.requests([asked(14)])
    assert "Notes so far: none" in first.messages[-1].content
    assert second.messages[-1].content.count("summary") == 60


def test_what_the_machine_took_for_summaries_is_told_also_of_those_that_were_made_before(tmp_path):
    memory = Memory(tmp_path / "stages.sqlite")
    replies = [ChatReply(text, machine=MachineUse(1.0, 200.0, 3.0)) for text in ("first", "second")]
    stage = Summarize(ScriptedChat(replies), 6, 60, memory=memory)
    run_stage(stage, [asked(8)], memory)
    (later,) = run_stage(stage, [asked(14)], memory)
    assert later.stages[-1].machine == MachineUse(1.0, 200.0, 6.0)
