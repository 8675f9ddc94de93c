from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.errors import ConfigError
from rag_lab.statistics.corrections import benjamini_hochberg, corrected, holm, hommel


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=20))
def test_is_statsmodels(p_values: list[float]) -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    assert holm(p_values) == pytest.approx(list(multitest.multipletests(p_values, method="holm")[1]))


def test_by_hand() -> None:
    # Smallest times 3, the next times 2, the largest times 1, never falling.
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])


def test_what_was_not_tested_does_not_count() -> None:
    assert holm([None, 0.02, None, 0.5]) == [None, 0.04, None, 0.5]
    assert holm([]) == []


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=20))
def test_hommel_is_statsmodels_and_never_above_holm(p_values: list[float]) -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    found = hommel(p_values)
    assert found == pytest.approx(list(multitest.multipletests(p_values, method="hommel")[1]))
    assert all(
        ours is not None and ours <= (theirs or 0) + 1e-12 for ours, theirs in zip(found, holm(p_values), strict=True)
    )


def test_hommel_by_hand() -> None:
    # Both are below 0.05, so the larger needs no correction, and the smaller none either.
    assert hommel([0.04, 0.03]) == pytest.approx([0.04, 0.04])
    assert hommel([None, 0.02, None, 0.5]) == [None, 0.04, None, 0.5]
    assert hommel([]) == []


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_benjamini_hochberg_is_statsmodels(p_values: list[float]) -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    assert benjamini_hochberg(p_values) == pytest.approx(list(multitest.multipletests(p_values, method="fdr_bh")[1]))


def test_corrections_by_name() -> None:
    assert corrected([0.01, 0.02], [0.03, 0.03], "none") == [0.01, 0.02]
    assert corrected([0.01, 0.02], [0.03, 0.03], "max_t") == [0.03, 0.03]
    assert corrected([0.01, 0.04], [0.03, 0.05], "bh") == [0.02, 0.04]
    with pytest.raises(ConfigError, match="did you mean 'max_t'"):
        corrected([0.1], [0.1], "max-t")  # type: ignore[arg-type]
