import logging
import socket

import pytest

from rag_lab._kit.home import home
from rag_lab.errors import ConfigError
from rag_lab.models.prices import EXAMPLE, cost_usd, price

FLASH = ("gemini", "gemini-2.5-flash")


def test_a_million_tokens_cost_what_the_package_says():
    assert cost_usd(*FLASH, 1_000, 2_000) == pytest.approx((0.30 + 2 * 2.50) / 1e3)
    assert cost_usd("gemini", "models/gemini-2.5-flash", 1_000, 0) == pytest.approx(0.30 / 1e3)


def test_a_long_prompt_has_another_price_and_many_short_ones_have_not():
    found = price("gemini", "gemini-2.5-pro")
    assert found.cost_usd(300_000, 0) > 3 * found.cost_usd(100_000, 0)
    assert found.cost_usd(300_000, 0, calls=3) == pytest.approx(3 * found.cost_usd(100_000, 0))
    assert found.cost_usd(0, 0, calls=0) == 0


def test_a_price_is_of_a_service_and_a_model_and_is_not_fetched(monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("a price was fetched"))
    assert price("openai", "gpt-4o-mini").table.startswith("genai-prices ")
    assert price("openai", "gpt-4o-mini").checked >= "2026"
    assert price("gemini", "gpt-4o-mini") is None
    assert price("langchain", "gpt-4o-mini") is None
    assert price("gemini", "gemini-embedding-001") is None  # nothing is known of what it would write


def test_an_unknown_model_costs_nothing_and_is_logged_once(caplog):
    with caplog.at_level(logging.WARNING):
        assert [cost_usd("openai", "nobody-knows-1", 10, 10) for _ in range(3)] == [0, 0, 0]
    assert len(caplog.records) == 1


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_file_in_the_home_folder_corrects_prices_and_keeps_the_others():
    write(
        home() / "prices.toml", 'checked = 2027-01-31\n[usd_per_million_tokens]\n"gpt-4o" = [1, 2]\n"mine" = [3, 4]\n'
    )
    assert cost_usd("openai", "gpt-4o", 1_000_000, 1_000_000) == pytest.approx(3)
    assert price("langchain", "mine").checked == "2027-01-31"
    assert price("langchain", "mine").table.endswith("prices.toml")
    assert price("openai", "gpt-4.1").table.startswith("genai-prices ")


def test_the_environment_names_another_file_and_the_example_is_one(tmp_path, monkeypatch):
    path = write(tmp_path / "my.toml", EXAMPLE)
    monkeypatch.setenv("RAG_LAB_PRICES", str(path))
    assert price(*FLASH).table == str(path)
    path.write_text(EXAMPLE.replace("0.30", "0.55"))
    assert price(*FLASH).cost_usd(1_000_000, 0) == pytest.approx(0.55)
    path.unlink()
    with pytest.raises(ConfigError, match=r"my\.toml.*no file"):
        price(*FLASH)


@pytest.mark.parametrize(
    "text",
    ["checked = ", "checked = 2026-01-01\n", '[usd_per_million_tokens]\n"a" = [1, 2]\n']
    + [f'checked = 2026-01-01\n[usd_per_million_tokens]\n"a" = {row}\n' for row in ("1", "[1]", "[1, -2]", "[1, nan]")],
)
def test_a_table_that_cannot_be_read_is_a_sentence(text):
    write(home() / "prices.toml", text)
    with pytest.raises(ConfigError, match="no price table"):
        price("openai", "a")
