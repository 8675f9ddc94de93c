import logging

import pytest

from rag_lab.errors import ConfigError
from rag_lab.home import home
from rag_lab.models.prices import EXAMPLE, PACKAGED, PACKAGED_DATE, cost_usd, price


def test_a_million_tokens_cost_what_the_table_says():
    assert cost_usd("gemini-2.5-flash", 1_000_000, 2_000_000) == pytest.approx(0.30 + 2 * 2.50)
    assert cost_usd("models/gemini-2.5-flash", 500_000, 0) == pytest.approx(0.15)


def test_an_unknown_model_costs_nothing_and_is_logged_once(caplog):
    with caplog.at_level(logging.WARNING):
        assert [cost_usd("nobody-knows-1", 10, 10) for _ in range(3)] == [0, 0, 0]
    assert len(caplog.records) == 1


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_file_in_the_home_folder_corrects_prices_and_keeps_the_others():
    write(
        home() / "prices.toml", 'checked = 2027-01-31\n[usd_per_million_tokens]\n"gpt-4o" = [1, 2]\n"mine" = [3, 4]\n'
    )
    assert cost_usd("gpt-4o", 1_000_000, 1_000_000) == pytest.approx(3)
    assert price("mine").checked == "2027-01-31"
    assert price("mine").table.endswith("prices.toml")
    assert (price("gpt-4.1").checked, price("gpt-4.1").table) == (PACKAGED_DATE, PACKAGED)


def test_the_environment_names_another_file_and_the_example_is_one(tmp_path, monkeypatch):
    path = write(tmp_path / "my.toml", EXAMPLE)
    monkeypatch.setenv("RAG_LAB_PRICES", str(path))
    assert price("gemini-2.5-flash").table == str(path)
    path.write_text(EXAMPLE.replace("0.30", "0.55"))
    assert price("gemini-2.5-flash").read_usd == 0.55
    path.unlink()
    with pytest.raises(ConfigError, match=r"my\.toml.*no file"):
        price("gemini-2.5-flash")


@pytest.mark.parametrize(
    "text",
    ["checked = ", "checked = 2026-01-01\n", '[usd_per_million_tokens]\n"a" = [1, 2]\n']
    + [f'checked = 2026-01-01\n[usd_per_million_tokens]\n"a" = {row}\n' for row in ("1", "[1]", "[1, -2]", "[1, nan]")],
)
def test_a_table_that_cannot_be_read_is_a_sentence(text):
    write(home() / "prices.toml", text)
    with pytest.raises(ConfigError, match="no price table"):
        price("a")
