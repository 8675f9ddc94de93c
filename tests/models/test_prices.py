import logging

import pytest

from rag_lab.models.prices import cost_usd


def test_a_million_tokens_cost_what_the_table_says():
    assert cost_usd("gemini-2.5-flash", 1_000_000, 2_000_000) == pytest.approx(0.30 + 2 * 2.50)
    assert cost_usd("models/gemini-2.5-flash", 500_000, 0) == pytest.approx(0.15)


def test_an_unknown_model_costs_nothing_and_is_logged_once(caplog):
    with caplog.at_level(logging.WARNING):
        assert [cost_usd("nobody-knows-1", 10, 10) for _ in range(3)] == [0, 0, 0]
    assert len(caplog.records) == 1
