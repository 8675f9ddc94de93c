import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.experiment.rates import RATES_FILE, Rate, add_rates, read_rates

rates = st.builds(
    Rate, st.sampled_from("ab"), st.just("m"), st.integers(1, 100), st.floats(0, 1e6), st.integers(0, 999)
)


@given(st.lists(rates, max_size=6))
def test_a_mean_is_over_all_that_was_measured(tmp_path_factory, measured):
    home = tmp_path_factory.mktemp("rates")
    for rate in measured:
        add_rates(home, [rate])
    known = read_rates(home)
    assert set(known) == {rate.key for rate in measured}
    for key, rate in known.items():
        own = [each for each in measured if each.key == key]
        assert rate.n == sum(each.n for each in own)
        assert rate.seconds_of(rate.n) == pytest.approx(sum(each.seconds for each in own))
        assert rate.tokens_of(2 * rate.n) == (2 * sum(each.tokens_in for each in own), 0)


def test_another_machines_rates_are_kept_and_not_used(tmp_path, monkeypatch):
    add_rates(tmp_path, [Rate("generate", "m", 1, 1.0)])
    monkeypatch.setattr("platform.node", lambda: "elsewhere")
    assert read_rates(tmp_path) == {}
    add_rates(tmp_path, [Rate("generate", "m", 1, 9.0)])
    assert len(json.loads((tmp_path / RATES_FILE).read_text())) == 2


@pytest.mark.parametrize("text", ["", "[]", '{"host": [{"purpose": "a", "model": "m", "n": 0, "seconds": 1}]}', "{"])
def test_a_broken_file_is_said_and_measured_anew(tmp_path, caplog, text):
    (tmp_path / RATES_FILE).write_text(text)
    with caplog.at_level(logging.WARNING):
        assert read_rates(tmp_path) == {}
    assert RATES_FILE in caplog.text
    add_rates(tmp_path, [Rate("generate", "m", 1, 1.0)])
    assert len(read_rates(tmp_path)) == 1
