"""A server that writes or counts what it likes moves neither memory, nor the bill, nor the limits."""

import json
import logging
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import pytest
from loopback_models import Scripted, gemini_server, openai_server

from rag_lab.memory.ledger import Ledger
from rag_lab.models.prices import price
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.models.remote.gemini import GeminiChat
from rag_lab.models.remote.http import BadReply, classify
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.models.remote.replies import bounded, counted
from rag_lab.models.shared import MeteredChat
from rag_lab.models.truncation import request_tokens

ASKED = ChatRequest((Message("user", "Capital of France?"),), max_tokens=60)
COUNTS = [(-5, 3), (7, -5), (10**18, 3), (7, 10**18), (10**40, 10**40), (0, 0)]


def completion(text, tokens_in, tokens_out):
    usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "", "choices": [choice]}
    return Scripted(raw=json.dumps(body | ({} if tokens_in is None else {"usage": usage})))


@pytest.mark.slow
@pytest.mark.parametrize(("tokens_in", "tokens_out"), COUNTS)
def test_counts_that_cannot_be_are_estimated_and_said_once(tokens_in, tokens_out, caplog):
    with (
        openai_server([completion("Paris it is.", tokens_in, tokens_out)] * 2) as server,
        caplog.at_level(logging.WARNING),
    ):
        replies = OpenAIChat("tiny", base_url=server.url).generate([ASKED] * 2)
    for reply in replies:
        assert (reply.text, reply.tokens_in, reply.tokens_out) == ("Paris it is.", request_tokens(ASKED), 5)
    [said] = [record.getMessage() for record in caplog.records if "estimated" in record.getMessage()]
    assert f"missing or cannot be ({tokens_in} read, {tokens_out} written)" in said


def test_what_gemini_counts_is_held_to_the_same(monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "AIzaHunter2Secret")
    usage = {"promptTokenCount": 10**18, "candidatesTokenCount": -5, "totalTokenCount": 1}
    body = {
        "candidates": [{"content": {"parts": [{"text": "Paris."}]}, "finishReason": "STOP"}],
        "usageMetadata": usage,
    }
    with gemini_server([Scripted(raw=json.dumps(body))]) as server:
        (reply,) = GeminiChat("gemini-2.5-flash", base_url=server.url).generate([ASKED])
    assert (reply.tokens_in, reply.tokens_out) == (request_tokens(ASKED), 3)
    assert 0 < reply.cost_usd < 0.001


@pytest.mark.parametrize(
    "reply", [ChatReply("a" * 50, tokens_in=1018, tokens_out=60), ChatReply("ab" * 99, "", 9, 198)]
)
def test_what_can_be_is_believed(reply):
    assert counted(ASKED, reply) == (reply, "")


def test_a_reply_far_beyond_what_was_asked_for_is_cut_as_a_server_would_have_cut_it():
    with openai_server([completion("a" * 1_000_000, 7, 3), completion("a " * 500, 7, 60)]) as server:
        long, generous = OpenAIChat("tiny", base_url=server.url, concurrency=1).generate([ASKED] * 2)
    assert (len(long.text), long.truncated, long.error) == (32 * 60 + 1000, True, "")
    assert (len(generous.text), generous.truncated) == (999, False)
    thinking = bounded(ASKED, ChatReply("Paris.", "a" * 9_000))
    assert (thinking.text, len(thinking.thinking), thinking.truncated) == ("Paris.", 2920, True)


@pytest.mark.parametrize(("tokens_in", "tokens_out"), COUNTS)
def test_the_limits_of_a_run_are_not_moved(tokens_in, tokens_out, tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.start(1.0, None, None)
    monkeypatch.setattr(OpenAIChat, "priced", True)
    with openai_server([completion("Paris.", tokens_in, tokens_out)] * 4) as server:
        model = MeteredChat(OpenAIChat("gpt-4o", base_url=server.url), "openai:gpt-4o", ledger, "v")
        replies = model.generate([ASKED] * 4)
    assert [reply.error for reply in replies] == [""] * 4
    assert 0 < ledger.used().cost_usd <= 4 * price("openai", "gpt-4o").cost_usd(request_tokens(ASKED), ASKED.max_tokens)


@pytest.mark.parametrize(("counted_as_thought", "kept"), [(1, 1), (8, 8), (9, 6), (0, 6), (-3, 6)])
def test_a_count_of_thinking_that_cannot_be_is_its_share_of_what_was_written(counted_as_thought, kept):
    reply = ChatReply("yes", thinking="It is so.", tokens_in=9, tokens_out=8, thinking_tokens=counted_as_thought)
    assert counted(ASKED, reply)[0].thinking_tokens == kept


class RefusedError(Exception):
    def __init__(self, status, message="said no", headers=None, details=None):
        self.status_code = status
        self.response = SimpleNamespace(headers=headers or {})
        self.details = details
        super().__init__(message)


def caused_by(cause):
    try:
        raise RuntimeError("wrapped") from cause
    except RuntimeError as error:
        return error


@pytest.mark.parametrize(
    ("status", "transient", "fatal"),
    [(status, True, False) for status in (304, 402, 408, 429, 500, 503, 529)]
    + [(status, False, False) for status in (400, 413, 422)]
    + [(status, False, True) for status in (401, 403, 404)],
)
@pytest.mark.parametrize("wrap", [lambda error: error, caused_by], ids=["bare", "wrapped"])
def test_statuses(status, transient, fatal, wrap):
    failure = classify(wrap(RefusedError(status)))
    assert (failure.transient, failure.fatal) == (transient, fatal)
    assert str(status) in failure.sentence


def test_gemini_rejects_a_key_with_status_400():
    assert classify(RefusedError(400, "API key not valid. Please pass a valid API key.")).fatal


SILENT = [
    TimeoutError(),
    ConnectionRefusedError(),
    *(type(n, (Exception,), {})() for n in ("ReadTimeout", "ConnectError")),
]


@pytest.mark.parametrize(
    "error", [*map(caused_by, SILENT), json.JSONDecodeError("no", "<html>", 0), KeyError("choices")], ids=repr
)
def test_what_no_status_tells_of_may_come_better_and_is_never_remembered(error):
    failure = classify(error)
    assert (failure.transient, failure.fatal) == (True, False)


def test_a_bad_reply_is_told_in_its_own_words():
    failure = classify(caused_by(BadReply("the server answered with a web page")))
    assert (failure.sentence, failure.transient) == ("the server answered with a web page", True)


def test_what_the_server_asks_to_wait():
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    info = {"error": {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}]}}
    assert classify(RefusedError(429, headers={"retry-after": "3"})).wait_s == 3
    assert classify(RefusedError(429, headers={"retry-after": soon})).wait_s == pytest.approx(30, abs=2)
    assert classify(RefusedError(429, headers={"retry-after": "soon"})).wait_s is None
    assert classify(RefusedError(429, details=info)).wait_s == 7.5
    assert classify(RefusedError(429, details={"retryDelay": "1.2.3s"})).wait_s is None
    assert classify(RefusedError(429)).wait_s is None


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m2.5s"}, 62.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "12"}, 12),
        ({"x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-requests": "20s"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1753900000"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}, None),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "12", "retry-after": "3"}, 3),
    ],
)
def test_a_quota_that_is_spent_says_when_it_is_refilled(headers, wait_s):
    assert classify(RefusedError(429, headers=headers)).wait_s == wait_s
