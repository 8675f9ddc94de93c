import threading

import pytest

from rag_lab.errors import ModelError
from rag_lab.models.remote.requests import CallFailed, CircuitBreaker, RetryPolicy, in_parallel


class RefusedError(Exception):
    def __init__(self, status, wait=None):
        self.status_code = status
        self.headers = {} if wait is None else {"retry-after": str(wait)}
        self.response = self

    def __str__(self):
        return "refused"


def fresh():
    return CircuitBreaker({"provider": "test", "name": "model"})


def failing(*errors):
    """A function that raises these errors, one a call, and then returns `done`."""
    left = list(errors)

    def function():
        if left:
            raise left.pop(0)
        return "done"

    return function


def test_waits_double_with_a_little_jitter():
    waits = []
    policy = RetryPolicy(5, waits.append)
    assert policy.call("model", failing(*[RefusedError(500)] * 4), fresh()) == "done"
    for wait, base in zip(waits, [1, 2, 4, 8], strict=True):
        assert base <= wait <= base * 1.25


def test_the_server_says_how_long_to_wait():
    waits = []
    refused = failing(RefusedError(429, 7), RefusedError(503, 0))
    policy = RetryPolicy(3, waits.append, clock=lambda: 1_000.0 + sum(waits))
    assert policy.call("model", refused, fresh()) == "done"
    assert waits[:2] == [7, 0]


def test_it_gives_up_after_the_last_attempt():
    waits = []
    with pytest.raises(CallFailed, match="status 503: refused after 3 attempts") as caught:
        RetryPolicy(3, waits.append).call("model", failing(*[RefusedError(503)] * 9), fresh())
    assert caught.value.transient
    assert len(waits) == 2


@pytest.mark.parametrize(("error", "transient"), [(RefusedError(400), False), (RefusedError(429, 3600), True)])
def test_what_waiting_cannot_cure_is_not_tried_again(error, transient):
    waits = []
    with pytest.raises(CallFailed) as caught:
        RetryPolicy(5, waits.append).call("model", failing(error), fresh())
    assert (caught.value.transient, waits) == (transient, [])


def test_a_rejected_key_ends_everything():
    with pytest.raises(ModelError, match="model: the key was rejected"):
        RetryPolicy(5, lambda wait: None).call("model", failing(RefusedError(401)), fresh())


def test_order_is_kept_and_concurrency_bounded():
    running, most, lock = 0, 0, threading.Lock()
    gate = threading.Barrier(3)  # passes only if three really run at once

    def work(number):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        gate.wait(timeout=10)
        with lock:
            running -= 1
        return number * 2

    assert in_parallel(work, range(9), 3) == [number * 2 for number in range(9)]
    assert most == 3


def test_the_first_error_stops_what_has_not_begun():
    begun = []

    def work(number):
        begun.append(number)
        raise ModelError("rejected")

    with pytest.raises(ModelError):
        in_parallel(work, range(1000), 1)
    assert len(begun) < 1000
    assert in_parallel(work, [], 4) == []
