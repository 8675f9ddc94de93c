import pytest

from rag_lab.models.local.local_model import without_progress_bars


@pytest.mark.parametrize("was_on", [True, False])
def test_progress_bars_come_back_as_they_were(was_on):
    from transformers.utils import logging

    before = logging.is_progress_bar_enabled()
    (logging.enable_progress_bar if was_on else logging.disable_progress_bar)()
    try:
        with pytest.raises(ValueError), without_progress_bars():
            assert not logging.is_progress_bar_enabled()
            raise ValueError
        assert logging.is_progress_bar_enabled() is was_on
    finally:
        (logging.enable_progress_bar if before else logging.disable_progress_bar)()
