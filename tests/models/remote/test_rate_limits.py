"""The rate limiter of remote models: no minute holds more than its server takes, and a full server is left alone."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.models.remote.retries import WINDOW_S, RateLimitStore, Rates, Sent, next_moment


class Clock:
    def __init__(self):
        self.now_s = 1_000.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def paces(tmp_path, clock):
    return RateLimitStore(tmp_path / "paces.sqlite", clock)


@given(
    st.lists(st.tuples(st.floats(0, 30), st.integers(0, 500)), max_size=60), st.integers(1, 20), st.integers(500, 3_000)
)
def test_no_minute_holds_more_than_the_server_takes(asked, requests, tokens):
    sent, now_s = [], 0.0
    for gap_s, size in asked:
        now_s += gap_s
        sent.append(Sent(next_moment(sent, now_s, size, Rates(requests, tokens)), size))
        assert sent[-1].at_s >= now_s
    assert all(one.at_s <= other.at_s for one, other in pairwise(sent))
    for one in sent:
        minute = [other for other in sent if one.at_s <= other.at_s < one.at_s + WINDOW_S - 1e-6]
        assert len(minute) <= requests
        assert sum(other.tokens for other in minute) <= tokens


def test_what_fits_in_the_minute_is_sent_at_once_and_the_next_when_the_first_is_a_minute_old(paces, clock):
    waits = []
    for _ in range(4):
        waits.append(paces.reserve("m", 10, Rates(requests=3)) - clock.now_s)
        clock.now_s += 1
    assert waits == [0, 0, 0, 57]


def test_a_request_of_more_tokens_than_a_minute_takes_has_a_minute_of_its_own(paces, clock):
    times = [paces.reserve("m", tokens, Rates(tokens=100)) - clock.now_s for tokens in (10, 1_000, 10)]
    assert times == [0, WINDOW_S, 2 * WINDOW_S]


def test_models_do_not_wait_for_each_other(paces, clock):
    assert [paces.reserve(name, 1, Rates(requests=1)) for name in ("a", "b")] == [clock.now_s] * 2


def send(paces, clock, n, gap_s=0.0):
    """Send so many requests, each when it may be; return the moments."""
    times = []
    for _ in range(n):
        clock.now_s = paces.reserve("m", 0, Rates())
        times.append(clock.now_s)
        clock.now_s += gap_s
    return times


def test_a_single_refusal_stops_nobody_else(paces, clock):
    send(paces, clock, 20)
    paces.refuse("m", 30)
    assert paces.reserve("m", 0, Rates()) == clock.now_s
    assert paces.open_until("m") < clock.now_s


def test_where_a_server_is_full_all_wait_as_long_as_it_says_and_go_on_at_the_rate_that_it_accepted(paces, clock):
    send(paces, clock, 16, gap_s=0.5)
    for wait_s in (1, 2, 2, 2, 4):
        paces.refuse("m", wait_s)
    full_until_s = clock.now_s + 4
    assert paces.open_until("m") == full_until_s
    times = send(paces, clock, 4)
    assert times[0] == full_until_s
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert gaps[0] == pytest.approx(12 / 11)  # 16 requests in 8 s and 4 s of rest, of which it refused 5
    assert gaps[0] > gaps[1] > gaps[2]


def test_refusals_of_requests_that_were_under_way_do_not_slow_it_down_again_and_again(paces, clock):
    send(paces, clock, 32)
    for _ in range(22):
        paces.refuse("m", 1)
    times = send(paces, clock, 3)
    assert times[2] - times[1] == pytest.approx(1 / 10, rel=0.1)  # it accepted ten in that second


def test_the_rate_is_back_within_seconds_also_of_a_server_that_accepted_nothing(paces, clock):
    for _ in range(8):
        send(paces, clock, 1, gap_s=0.5)
        paces.refuse("m", 1)
    refused_s = clock.now_s
    times = send(paces, clock, 200)
    assert sum(at_s < refused_s + 10 for at_s in times) >= 10
    assert times[-1] < refused_s + 60


def test_what_was_reserved_before_a_server_was_full_is_reserved_again(paces, clock):
    send(paces, clock, 2)
    for _ in range(2):
        paces.refuse("m", 1)
    queued = [paces.reserve("m", 0, Rates()) for _ in range(3)]
    clock.now_s = queued[0]
    paces.refuse("m", 60)
    assert paces.open_until("m") > queued[-1]
    assert paces.reserve("m", 0, Rates()) == paces.open_until("m")


def test_the_users_rate_stays_the_most(paces, clock):
    paces.reserve("m", 0, Rates(requests=2))
    paces.refuse("m", 0)
    clock.now_s += 1800
    times = [paces.reserve("m", 0, Rates(requests=2)) - clock.now_s for _ in range(3)]
    assert times == [0, 0, WINDOW_S]
