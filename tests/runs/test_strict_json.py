import pytest

from rag_lab.runs.strict_json import strict_json


def test_json_as_we_write_it_is_read():
    assert strict_json(b'{"a": [1, -2.5, true, null, "Infinity"], "b": 1764000000000000000}') == {
        "a": [1, -2.5, True, None, "Infinity"],
        "b": 1_764_000_000_000_000_000,
    }


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "Infinity", "-1e999", "NaN", "9" * 5000, "1e308"])
def test_what_is_too_deep_or_no_number_is_a_fault_like_any_other(text):
    with pytest.raises(ValueError):
        strict_json(f'{{"repeats": {text}}}')
