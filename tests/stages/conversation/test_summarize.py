"""A running summary: every so many turns, each extending the one before, and made once for a conversation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatReply
from rag_lab.records import MachineUse, Question, Remembered, Trace, Turn
from rag_lab.stages.conversation.summarize import Summarize
from rag_lab.stages.run_stage import run_stage
from rag_lab.testing import ScriptedChat

TURNS = tuple(Turn(("user", "assistant")[n % 2], f"turn {n}") for n in range(20))


def asked(n, question_id="q"):
    return Trace(Question(question_id, "And now?", history=TURNS[:n]))


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
    assert outcome.updates["remembered"] == Remembered(n, TURNS[n - turns : n], summary)
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
    assert done.remembered == Remembered(10, TURNS[4:10])
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
