import os

import pytest
from tiny_models import write_tiny_gguf

from rag_lab._kit.machine import free_mb
from rag_lab.models import model_process
from rag_lab.models.hosted import write_process
from rag_lab.models.model_process import foretold_mb, make_room
from rag_lab.models.providers import CHAT_MODELS, EMBEDDERS, QUERY_LIKELIHOODS


@pytest.fixture
def held(tmp_path):
    """Three models that this process is said to hold, the first the longest unused, and a way to end them."""
    for used_s, (name, device, memory_mb) in enumerate([("a", "cpu", 1000), ("b", "cuda", 9000), ("c", "cpu", 500)]):
        write_process(tmp_path, name, f"model {name}", device, memory_mb)
        os.utime(tmp_path / f"{name}.holder", (used_s, used_s))
    ended = []

    def end(holder, folder):
        ended.append(holder.name)
        (folder / f"{holder.name}.holder").unlink()

    return tmp_path, ended, end


@pytest.mark.parametrize(
    ("budget_gb", "need_mb", "gone"),
    [("3", 1500, []), ("3", 1600, ["a"]), ("1", 100, ["a"]), ("1", 800, ["a", "c"]), ("1", 5000, ["a", "c"])],
)
def test_the_longest_unused_go_until_the_new_one_fits(held, monkeypatch, budget_gb, need_mb, gone):
    folder, ended, end = held
    monkeypatch.setenv("RAG_LAB_MODEL_MEMORY_GB", budget_gb)
    make_room(folder, need_mb, "cpu", end)
    assert ended == gone


def test_without_a_budget_what_the_machine_has_left_decides(held, monkeypatch):
    folder, ended, end = held
    left = iter([100.0, 1100.0])
    monkeypatch.setattr(model_process, "free_mb", lambda: next(left))
    make_room(folder, 900, "cpu", end)
    assert ended == ["a"]


def test_where_no_system_tells_nothing_is_ended(held, monkeypatch):
    folder, ended, end = held
    monkeypatch.setattr(model_process, "free_mb", lambda: None)
    make_room(folder, 1e9, "cpu", end)
    assert ended == []


@pytest.mark.slow
def test_what_a_model_will_need_is_its_card_with_libraries_on_top(tmp_path, tiny_causal):
    tiny = write_tiny_gguf(tmp_path / "tiny.gguf")
    assert 400 < foretold_mb(CHAT_MODELS, f"llamacpp:{tiny}") < 500
    assert foretold_mb(CHAT_MODELS, "llamacpp:smollm2") > 500
    assert foretold_mb(EMBEDDERS, "sentence_transformers:minilm") > 450
    assert 400 < foretold_mb(QUERY_LIKELIHOODS, f"transformers:{tiny_causal}?passage_tokens=32") < 450
    assert foretold_mb(EMBEDDERS, "sentence_transformers:nobody/has-downloaded") == 400


def test_the_machine_tells_what_is_left():
    assert free_mb() is None or 0 < free_mb() < 1e8
