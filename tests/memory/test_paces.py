"""The line before remote models: no minute holds more than its server takes, and refusals slow everybody down."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.memory.paces import WINDOW_S, Paces, Rates, Sent, next_moment


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
    return Paces(tmp_path / "paces.sqlite", clock)


@given(
    st.lists(st.tuples(st.floats(0, 30), st.integers(0, 500)), max_size=60),
    st.integers(1, 20),
    st.integers(500, 3_000),
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


def test_after_a_refusal_all_wait_as_long_as_the_server_says_and_go_on_at_half_the_rate(paces, clock):
    for _ in range(60):
        paces.reserve("m", 0, Rates())
        clock.now_s += 0.5
    paces.refuse("m", 20)
    rest_s = clock.now_s + 20
    assert paces.rests_until("m") == rest_s
    assert paces.reserve("m", 0, Rates()) >= rest_s
    clock.now_s = rest_s + WINDOW_S
    n = sum(paces.reserve("m", 0, Rates()) == clock.now_s for _ in range(100))
    assert 60 <= n <= 70  # 120 a minute were sent, half of them, and a tenth more after a minute


def test_requests_that_were_under_way_do_not_slow_it_down_again(paces, clock):
    for _ in range(10):
        paces.reserve("m", 0, Rates())
    clock.now_s += 10
    for wait_s in (1, 3, 2):
        paces.refuse("m", wait_s)
    assert paces.rests_until("m") == clock.now_s + 3
    clock.now_s += 3 + WINDOW_S
    assert sum(paces.reserve("m", 0, Rates()) == clock.now_s for _ in range(60)) >= 30  # of 60 a minute, not an eighth


def test_a_rate_that_was_learnt_grows_and_is_forgotten(paces, clock):
    paces.reserve("m", 0, Rates())
    paces.refuse("m", 0)
    clock.now_s += 2 * 3600
    assert {paces.reserve("m", 0, Rates()) for _ in range(50)} == {clock.now_s}


def test_the_users_rate_stays_the_most(paces, clock):
    paces.reserve("m", 0, Rates(requests=2))
    paces.refuse("m", 0)
    clock.now_s += 1800
    times = [paces.reserve("m", 0, Rates(requests=2)) - clock.now_s for _ in range(3)]
    assert times == [0, 0, WINDOW_S]
