"""Conversations: what a turn reads, what is kept, and that nobody reads what he or she may not see."""

import asyncio
import json
import random
import re
import sqlite3
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from loopback_models import Scripted, openai_server

import rag_lab as rl
from rag_lab.assistant.chat import Chat, Sessions
from rag_lab.config import PipelineConfig
from rag_lab.data.questions_file import read_questions
from rag_lab.errors import ConfigError, DamagedFile
from rag_lab.models.protocols import ChatReply
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.notebook.views.data_view import chat_view
from rag_lab.pipeline import Pipeline
from rag_lab.testing import HashEmbedder, ScriptedChat

PUBLIC, SECRET = "The press runs at 140 bar.", "The press costs 99 euros, which is secret."


@pytest.fixture
def folder(tmp_path):
    corpus = tmp_path / "set" / "corpus"
    corpus.mkdir(parents=True)
    (corpus / "open.txt").write_text(PUBLIC)
    (corpus / "secret.txt").write_text(SECRET)
    (corpus.parent / "attributes.yaml").write_text("- {files: secret.txt, permissions: [board]}\n")
    return corpus


def parrot(request):
    """Repeat everything that was shown, in the shape that was asked for."""
    shown = " ".join(message.content for message in request.messages[1:]).replace('"', "'").replace("\n", " ")
    if "class" in (request.json_schema or {}).get("properties", {}):
        return '{"class": "specific", "rewritten": "press bar euros costs", "hyde": false}'
    if request.json_schema is None:  # a summary
        return shown[-400:]
    return f'{{"answer": "{shown[-2000:]}", "citations": [1, 2]}}'


def pipeline(folder, home, model=None, **settings):
    config = PipelineConfig().override(
        {"answer.name": "llm", "retrieval.mode": "bm25"} | {k.replace("__", "."): v for k, v in settings.items()}
    )
    model = model or ScriptedChat(parrot)
    made = Pipeline(folder, config, home=home, progress=False)
    return made.replace(generation_model=model, understanding_model=model, embedding_model=HashEmbedder())


def test_a_turn_reads_the_last_exchange_and_a_summary_of_every_six_messages(folder, tmp_path):
    model = ScriptedChat(parrot)
    chat = Chat(pipeline(folder, tmp_path, model))
    for n in range(4):
        trace = chat.ask(f"question {n} about the press")
    assert [turn.content for turn in trace.remembered.turns][0] == "question 2 about the press"
    assert (len(trace.remembered.turns), trace.remembered.n_turns) == (2, 6)
    assert trace.remembered.summary
    records = {record.stage: record for record in trace.stages}
    assert records["remember"].reason == "6 of 6 turns are summed up"
    assert trace.proposed_query == "press bar euros costs"
    assert chat.ask("one more").remembered.summary == trace.remembered.summary  # made once, not extended before 12


def test_a_session_goes_on_elsewhere_and_is_its_person_s(folder, tmp_path):
    first = Chat(pipeline(folder, tmp_path), "line-3", person="anna")
    first.ask("How hard does the press push?")
    again = Chat(pipeline(folder, tmp_path), "line-3", person="anna")
    assert [turn.question for turn in again.turns] == ["How hard does the press push?"]
    with pytest.raises(ConfigError, match="'line-3' is not one of this person on these documents"):
        Chat(pipeline(folder, tmp_path), "line-3", person="ben")
    sessions, corpus = Sessions(tmp_path), str(folder.resolve())
    assert sessions.latest("anna", corpus) == "line-3"
    assert sessions.latest("ben", corpus) is None
    Chat(pipeline(folder, tmp_path), "line-4", person="anna")
    assert sessions.latest("anna", corpus) in ("line-3", "line-4")
    for bad in ("", "a\nb", "x" * 101):
        with pytest.raises(ConfigError, match="cannot name a session"):
            Chat(pipeline(folder, tmp_path), bad)


def test_settings_change_between_turns_and_the_last_answer_is_made_again(folder, tmp_path):
    chat = Chat(pipeline(folder, tmp_path))
    with pytest.raises(ConfigError, match="Nothing was asked yet"):
        chat.again()
    chat.ask("How hard does the press push?")
    before = chat.turns[0].answer
    trace = chat.set("answer.name", "extract").again()
    assert trace.answer.text == PUBLIC != before
    assert [turn.answer for turn in chat.turns] == [PUBLIC]
    assert chat.pipeline.config.conversation.memory == "summary_and_exchange"
    plain = Chat(pipeline(folder, tmp_path, conversation__memory="window", conversation__window_turns=4))
    assert plain.pipeline.config.conversation.memory == "window" or plain.pipeline.config.conversation.window_turns == 4


def test_turns_are_exported_as_follow_up_questions(folder, tmp_path):
    chat = Chat(pipeline(folder, tmp_path, answer__name="extract"), "s")
    for text in ("How hard does the press push?", "And the bar?"):
        chat.ask(text)
    assert chat.export(tmp_path / "questions.jsonl") == 2
    questions, problems = read_questions(tmp_path / "questions.jsonl", {"open.txt", "secret.txt"}, 1)
    assert not problems
    assert [question.question_id for question in questions] == ["s-1", "s-2"]
    assert [turn.content for turn in questions[1].history] == ["How hard does the press push?", PUBLIC]
    assert questions[0].evidence[0].source == "open.txt"


@pytest.mark.slow
def test_no_forbidden_fact_is_shown_in_500_turns_with_rights_that_change(folder, tmp_path):
    dice = random.Random(5)
    leaks = []
    model = ScriptedChat(parrot)
    made = pipeline(folder, tmp_path, model)
    chat = Chat(made, "mixed")
    for n in range(500):
        chat.may_see = ("board",) if dice.random() < 0.3 else ()
        asked = len(model.requests)
        trace = chat.ask(f"{n}: what does the press cost, and its bar?")
        shown = [message.content for request in model.requests[asked:] for message in request.messages]
        shown += [trace.answer.text if trace.answer else "", *(turn.answer or "" for turn in chat.turns)]
        if not chat.may_see and any("99 euros" in text for text in shown):
            leaks.append(n)
        if n % 50 == 49:  # a long history costs time, not rights
            chat = Chat(made, f"mixed {n}")
    assert leaks == []
    assert any("99 euros" in message.content for request in model.requests for message in request.messages)


def test_what_came_from_a_file_that_is_gone_is_not_read_again(folder, tmp_path):
    chat = Chat(pipeline(folder, tmp_path), "s", may_see=("board",))
    chat.ask("What does the press cost?")
    (folder / "secret.txt").unlink()
    (folder.parent / "attributes.yaml").unlink()
    assert Chat(pipeline(folder, tmp_path), "s", may_see=()).turns == []


def test_a_session_that_goes_on_has_the_thinking_of_its_answers_and_no_model_reads_it(folder, tmp_path):
    def thinks(request):
        is_answer = "answer" in request.json_schema["properties"]
        return f"<think>press first</think>{parrot(request)}" if is_answer else parrot(request)

    model = ScriptedChat(thinks)
    chat = Chat(pipeline(folder, tmp_path, model), "s", may_see=("board",))
    chat.ask("How hard does the press push?")
    chat.ask("What does it cost?")
    again = Chat(pipeline(folder, tmp_path), "s", may_see=("board",))
    assert [turn.thinking for turn in again.turns] == ["press first"] * 2
    folded = [one for one in chat_view(again).folded if "Thinking" in one[0]]
    assert folded == [("1. Thinking", "press first"), ("2. Thinking", "press first")]
    assert not any("press first" in one.content for request in model.requests for one in request.messages)
    assert Chat(pipeline(folder, tmp_path), "s", may_see=()).turns == []  # who may not see the files sees no thought
    Chat(pipeline(folder, tmp_path, answer__name="extract"), "s", may_see=("board",)).again()
    assert [turn.thinking for turn in again.turns] == ["press first", ""]


def test_a_file_of_an_earlier_form_is_a_sentence(folder, tmp_path):
    Chat(pipeline(folder, tmp_path), "s")
    with sqlite3.connect(tmp_path / "sessions.sqlite") as database:
        database.execute("ALTER TABLE turns DROP COLUMN thinking")
    for does in (lambda: Sessions(tmp_path).turns("s"), lambda: Sessions(tmp_path).ask("s", "q")):
        with pytest.raises(DamagedFile, match="move it away, and conversations begin anew"):
            does()


def test_two_processes_in_one_session_lose_no_turn(folder, tmp_path):
    Chat(pipeline(folder, tmp_path), "s")
    sessions = Sessions(tmp_path)
    threads = [threading.Thread(target=lambda: [sessions.ask("s", "q") for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [turn.number for turn in sessions.turns("s")] == list(range(1, 81))


def test_a_damaged_file_is_a_sentence(folder, tmp_path):
    chat = Chat(pipeline(folder, tmp_path), "s")
    chat.ask("How hard does the press push?")
    with sqlite3.connect(tmp_path / "sessions.sqlite") as database:
        database.execute("UPDATE turns SET citations = '[{'")
    with pytest.raises(Exception, match="a turn of 's' cannot be read; move it away"):
        _ = chat.turns
    (tmp_path / "sessions.sqlite").write_bytes(b"SQLite format 3\0 cut short")
    for name in ("sessions.sqlite-wal", "sessions.sqlite-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(DamagedFile, match="move it away, and conversations begin anew"):
        Chat(pipeline(folder, tmp_path), "s")


def test_an_answer_that_failed_leaves_the_question_to_be_asked_again(folder, tmp_path):
    replies = [ChatReply(error="down", transient=True), '{"answer": "140 bar.", "citations": [1]}']
    chat = Chat(pipeline(folder, tmp_path, ScriptedChat(replies)), "s")
    assert chat.ask("How hard does the press push?").failure
    assert chat.pending.question == "How hard does the press push?"
    assert chat.again().answer.text == "140 bar."
    assert chat.pending is None
    with pytest.raises(ConfigError, match="The question is empty"):
        chat.ask("  ")


_KILLED = """
import os, sys
sys.path[:0] = {tests!r}
from pathlib import Path
from test_chat import Chat, ScriptedChat, parrot, pipeline
class Counted(ScriptedChat):
    def generate(self, requests):
        replies = super().generate(requests)
        with open({calls!r}, "a") as file:
            file.write("call\\n" * len(requests))
        return replies
after = int(sys.argv[1])
chat = Chat(pipeline(Path({folder!r}), Path({home!r}), Counted(parrot)), "s")
import rag_lab.stages.run_stage as stages
run = stages.run_stage
import rag_lab.pipeline as module
n = 0
def counted(*args, **settings):
    global n
    n += 1
    if n == after:
        os.kill(os.getpid(), 9)
    return run(*args, **settings)
module.run_stage = counted
if chat.pending is not None:
    chat.again()
while len(chat.turns) < 5:
    chat.ask(f"question {{len(chat.turns)}} about the press")
"""


@pytest.mark.slow
def test_a_chat_that_is_killed_20_times_loses_nothing_and_makes_no_call_twice(folder, tmp_path):
    from pathlib import Path

    tests, calls = [str(one) for one in Path(__file__).parents[:2]], tmp_path / "calls"
    code = _KILLED.format(tests=tests, calls=str(calls), folder=str(folder), home=str(tmp_path / "home"))
    dice, kills = random.Random(3), 0
    while kills < 20:
        done = subprocess.run([sys.executable, "-c", code, str(dice.randint(2, 30))], capture_output=True, text=True)
        if done.returncode == 0:
            break
        assert done.returncode == -9, done.stderr
        kills += 1
    subprocess.run([sys.executable, "-c", code, "1000000"], check=True)
    undisturbed = tmp_path / "other"
    model = ScriptedChat(parrot)
    chat = Chat(pipeline(folder, undisturbed, model), "s")
    for n in range(5):
        chat.ask(f"question {n} about the press")
    killed = Chat(pipeline(folder, tmp_path / "home"), "s")
    assert [(turn.question, turn.answer) for turn in killed.turns] == [(t.question, t.answer) for t in chat.turns]
    assert calls.read_text().count("call") == len(model.requests)


def test_an_answer_is_heard_while_it_is_written_and_at_once_where_it_is_remembered(folder, tmp_path, monkeypatch):
    told = 'It runs at \u00e9 140 bar, "at most".'
    with openai_server(lambda body: json.dumps({"answer": told, "citations": [1]})) as server:
        model = OpenAIChat("tiny", base_url=server.url)
        made = pipeline(folder, tmp_path / "home", model, query__rewrite="none")
        first, again = [], []
        trace = Chat(made).ask("How does the press run?", first.append)
        Chat(made).ask("How does the press run?", again.append)
        assert len(server.bodies) == 1
    assert len(first) > 3
    assert "".join(first) == trace.answer.text == told
    assert again == [told]


def test_a_turn_is_shown_while_it_is_written_and_what_a_setting_changed_beside_it(folder, tmp_path, monkeypatch):
    pages = []
    update = SimpleNamespace(update=lambda page, raw: pages.append(page))
    monkeypatch.setattr("IPython.display.display", lambda page, raw, display_id: pages.append(page) or update)
    monkeypatch.setattr("rag_lab.notebook.views.data_view._LIVE_EVERY_S", 0.0)
    reply = json.dumps({"answer": "It runs at <b>140</b> bar, and that is all.", "citations": [1]})
    with openai_server([Scripted(f"<think>press first</think>{reply}"), reply]) as server:
        chat = Chat(pipeline(folder, tmp_path / "home", OpenAIChat("tiny", base_url=server.url)), "s")
        rl.talk(chat, "How does the press run?")
        first, n = pages[-1], len(pages)
        rl.talk(chat.set("answer.name", "extract"))
    texts = [page["text/plain"] for page in pages[:n]]
    assert "It …" in texts[1] and "is all." in texts[-1]
    assert re.search(
        r"<details><summary>Thinking</summary>.*press first.*<summary>\[1\] open.txt<", first["text/html"], re.S
    )
    assert PUBLIC in first["text/html"] and "<b>140" not in first["text/html"]
    again = pages[-1]["text/html"]
    assert re.search(r"What differs in the settings.*answer.name.*llm.*extract", again, re.S)
    assert "<mark" in again and "Seconds and tokens of each stage" in again


async def collected(events):
    return [event async for event in events]


def test_events_of_a_runnable_hold_stages_and_the_text_in_pieces(folder, tmp_path):
    with openai_server(['{"answer": "It runs at 140 bar, at most.", "citations": [1]}']) as server:
        made = pipeline(folder, tmp_path / "home", OpenAIChat("tiny", base_url=server.url))
        events = asyncio.run(collected(made.as_runnable().astream("How does the press run?")))
    pieces = [event["text"] for event in events if "text" in event]
    assert len(pieces) > 1
    assert "".join(pieces) == events[-1]["answer"] == "It runs at 140 bar, at most."
    assert {event.get("stage") for event in events} >= {"generate", "parse"}
