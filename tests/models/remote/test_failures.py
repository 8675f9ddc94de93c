import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import pytest

from rag_lab.models.remote.failures import BadReply, classify


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
    [
        (304, True, False),
        (400, False, False),
        (401, False, True),
        (402, True, False),
        (403, False, True),
        (404, False, True),
        (408, True, False),
        (413, False, False),
        (422, False, False),
        (429, True, False),
        (500, True, False),
        (503, True, False),
        (529, True, False),
    ],
)
@pytest.mark.parametrize("wrap", [lambda error: error, caused_by], ids=["bare", "wrapped"])
def test_statuses(status, transient, fatal, wrap):
    failure = classify(wrap(RefusedError(status)))
    assert (failure.transient, failure.fatal) == (transient, fatal)
    assert str(status) in failure.sentence


def test_gemini_rejects_a_key_with_status_400():
    assert classify(RefusedError(400, "API key not valid. Please pass a valid API key.")).fatal


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        ConnectionRefusedError(),
        type("ReadTimeout", (Exception,), {})(),
        type("ConnectError", (Exception,), {})(),
    ],
)
def test_a_silent_server_may_answer_later(error):
    assert classify(caused_by(error)).transient


def test_a_reply_that_is_not_json_may_come_better():
    assert classify(json.JSONDecodeError("no", "<html>", 0)).transient


def test_what_nobody_foresaw_is_never_remembered():
    failure = classify(KeyError("choices"))
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
