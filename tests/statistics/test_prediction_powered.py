"""Means of labels with a judge's scores, against another implementation, formulas written out, and properties."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
from scipy.stats import t as student

from rag_lab.statistics.prediction_powered import FEWEST, corrected_mean


def world(n_questions, n_labels, noise=0.3, seed=0):
    """Labels of 0 and 1, a judge that sees them through noise, and which questions were labelled."""
    random = np.random.default_rng(seed)
    good = (random.random(n_questions) < 0.6) * 1.0
    scores = 0.5 * good + 0.3 + noise * random.normal(size=n_questions)
    labels = np.full(n_questions, np.nan)
    chosen = random.permutation(n_questions)[:n_labels]
    labels[chosen] = good[chosen]
    return scores, labels


@pytest.mark.parametrize("seed", range(5))
def test_mean_weight_and_interval_are_those_of_the_paper_s_package(seed):
    scores, labels = world(4_000, 600, seed=seed)
    has = np.isfinite(labels)
    found = corrected_mean(scores, labels, reach=0.5)
    # The package sets labelled questions against the others; here all have scores, so the weight is the larger one.
    theirs = found.weight * (1 - 600 / 4_000)
    pieces = labels[has], scores[has], scores[~has]
    assert found.mean == pytest.approx(float(np.squeeze(ppi_mean_pointestimate(*pieces, lam=theirs))), abs=1e-12)
    low, high = (float(np.squeeze(end)) for end in ppi_mean_ci(*pieces, alpha=0.05))
    assert (found.low, found.high) == (pytest.approx(low, abs=2e-3), pytest.approx(high, abs=2e-3))


def test_labels_alone_have_student_s_interval_and_a_share_of_one_unseen_question():
    scores, labels = world(200, 40)
    known = labels[np.isfinite(labels)]
    found = corrected_mean(scores, labels, reach=0.5, weight=0.0)
    assert found.mean == pytest.approx(known.mean()) and found.weight == 0.0
    # Of all questions once (those that were not drawn add their part through the residuals), and the unseen one.
    variance = known.var(ddof=1) / 40 + 0.8 * 0.25 / 39 * (1 / 40) * (1 - 40 / 200)
    half = student.ppf(0.975, 39) * math.sqrt(variance)
    assert found.high - found.mean == pytest.approx(half, rel=0.005)


def test_a_judge_that_is_right_narrows_and_one_that_says_nothing_does_no_harm():
    scores, labels = world(300, 40, noise=0.05)
    alone = corrected_mean(scores, labels, 0.5, weight=0.0)
    both = corrected_mean(scores, labels, 0.5)
    assert both.high - both.low < 0.6 * (alone.high - alone.low)
    flat = corrected_mean(np.full(300, 0.7), labels, 0.5)
    assert flat == alone  # a judge that always says the same has no weight
    widths = []
    for seed in range(40):
        noise = np.random.default_rng([seed, 1]).random(300)
        one = corrected_mean(noise, world(300, 40, seed=seed)[1], 0.5)
        other = corrected_mean(noise, world(300, 40, seed=seed)[1], 0.5, weight=0.0)
        widths.append((one.high - one.low) / (other.high - other.low))
    assert np.mean(widths) < 1.02


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(-3, 3).filter(lambda x: abs(x) > 0.1), st.floats(-5, 5), st.booleans())
def test_the_unit_of_the_judge_and_the_order_of_questions_do_not_matter(seed, factor, shift, clustered):
    scores, labels = world(80, 30, seed=seed)
    strata = ["far" if one > 0.6 else "near" for one in scores]
    clusters = [n // 3 for n in range(80)] if clustered else None
    found = corrected_mean(scores, labels, 0.5, strata, clusters)
    order = np.random.default_rng(seed).permutation(80)
    other = corrected_mean(
        (factor * scores + shift)[order],
        labels[order],
        0.5,
        [strata[n] for n in order],
        clusters and [clusters[n] for n in order],
    )
    for name in ("mean", "low", "high", "of_questions", "of_labels"):
        assert getattr(other, name) == pytest.approx(getattr(found, name), abs=1e-9), name
    assert other.weight == pytest.approx(found.weight / factor)
    assert found.low <= found.mean <= found.high


def test_strata_count_by_their_questions_and_one_labelled_whole_has_no_error_of_drawing():
    # 60 questions of which both answers are the same, so their difference is known, and 40 of which ten are labelled.
    labels = np.array([0.0] * 60 + [1.0] * 6 + [0.0] * 4 + [np.nan] * 30)
    strata = ["same"] * 60 + ["differ"] * 40
    found = corrected_mean(np.zeros(100), labels, 1.0, strata)
    assert found.mean == pytest.approx(0.4 * 0.6)
    assert (found.n_labelled, found.n_questions) == (10, 40)
    everything = corrected_mean(np.zeros(100), np.nan_to_num(labels, nan=0.6), 1.0, strata)
    assert everything.of_labels == 0 and everything.mean == pytest.approx(0.4 * 0.6)
    assert everything.high - everything.low < found.high - found.low


def test_how_many_labels_would_settle_it():
    settled = corrected_mean(*world(400, 60, noise=0.05), 0.5)
    assert settled.is_settled and settled.labels_needed() == 60
    scores, labels = world(400, 12, noise=0.5, seed=4)
    shifted = np.where(np.isfinite(labels), labels - 0.65, np.nan)
    few = corrected_mean(scores, shifted, 0.5)
    needed = few.labels_needed()
    assert not few.is_settled and needed is not None and 12 < needed <= 400
    no_effect = corrected_mean(
        scores, np.where(np.isfinite(labels), labels - np.nanmean(labels), np.nan), 0.5, weight=0.0
    )
    assert no_effect.labels_needed() is None


def test_too_few_labels_have_a_mean_and_no_interval():
    scores, labels = world(50, FEWEST - 1)
    found = corrected_mean(scores, labels, 0.5)
    assert found.mean is not None and found.low is found.high is None and found.labels_needed() is None
    assert corrected_mean(scores, [None] * 50, 0.5).mean is None
    one_cluster = corrected_mean(*world(50, 20), 0.5, clusters=["a"] * 50)
    assert one_cluster.low is None
    no_label_in_a_stratum = corrected_mean(scores, [1.0] * 25 + [None] * 25, 0.5, ["a"] * 25 + ["b"] * 25)
    assert no_label_in_a_stratum.mean is None
