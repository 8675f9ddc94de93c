import logging

import pytest

from rag_lab.experiment.forecast.rates import RATES_FILE, Rate, keep_rates, read_rates


def test_the_latest_measurement_of_each_call_is_kept(tmp_path):
    keep_rates(tmp_path, [Rate("generate", "m", 2, 9.0), Rate("hyde", "m", 1, 3.0)])
    keep_rates(tmp_path, [Rate("generate", "m", 4, 1.0, 10, 20), Rate("generate", "other", 1, 5.0)])
    assert read_rates(tmp_path) == {
        ("generate", "m"): Rate("generate", "m", 4, 1.0, 10, 20),
        ("hyde", "m"): Rate("hyde", "m", 1, 3.0),
        ("generate", "other"): Rate("generate", "other", 1, 5.0),
    }


@pytest.mark.parametrize("text", ["", "{}", '[{"purpose": "a", "model": "m", "n": 0, "seconds": 1}]', "{"])
def test_a_broken_file_is_said_and_measured_anew(tmp_path, caplog, text):
    (tmp_path / RATES_FILE).write_text(text)
    with caplog.at_level(logging.WARNING):
        assert read_rates(tmp_path) == {}
    assert RATES_FILE in caplog.text
    keep_rates(tmp_path, [Rate("generate", "m", 1, 1.0)])
    assert len(read_rates(tmp_path)) == 1
