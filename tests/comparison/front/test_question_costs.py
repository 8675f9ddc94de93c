"""What a question takes, on questions that can be drawn again, is the price of the variant."""

import numpy as np
import pytest

from rag_lab.comparison.front.question_costs import question_costs


def test_under_equal_weights_it_is_the_price(wide):
    variants = list(wide.prices)
    place_of = {name: place for place, name in enumerate(wide.asked)}
    found = question_costs([wide.traces[variant] for variant in variants], place_of)
    ones = np.ones((len(place_of), 1))
    for cost in ("seconds", "tokens", "usd"):
        expected = [getattr(wide.prices[variant], cost) for variant in variants]
        assert getattr(found, cost).at(ones)[:, 0] == pytest.approx(expected)
    assert max(found.tokens.at(ones)[:, 0]) > 0


def test_a_question_that_is_drawn_alone_says_what_it_took(wide):
    variants = list(wide.prices)
    place_of = {name: place for place, name in enumerate(wide.asked)}
    found = question_costs([wide.traces[variant] for variant in variants], place_of)
    for place in (0, 17):
        drawn = np.zeros((len(place_of), 1))
        drawn[place] = 1
        for row, variant in enumerate(variants):
            trace = wide.traces[variant][place]
            assert found.seconds.at(drawn)[row, 0] == pytest.approx(sum(record.seconds for record in trace.stages))
