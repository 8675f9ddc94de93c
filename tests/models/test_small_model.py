"""A packaged model's text carries a note, and the note says what this machine could take instead."""

import pytest

from rag_lab.models import shared as module
from rag_lab.models.providers import ModelSpec
from rag_lab.models.shared import chat_model, small_model_note


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch):
    """A machine without keys, servers, a GPU or Ollama."""
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module.requirements, "cuda_problem", lambda _: "no GPU")
    monkeypatch.setattr(module.shutil, "which", lambda _: None)


@pytest.mark.parametrize("spec", ["llamacpp:smollm2", "transformers:smollm2?device=cpu", " llamacpp:smollm2?threads=1"])
def test_the_packaged_models_are_toys_whatever_their_options(spec):
    assert small_model_note(spec).startswith("A toy model wrote this")


@pytest.mark.parametrize(
    "spec", ["gemini:gemini-2.5-flash", "llamacpp:big.gguf", "openai:smollm2", "my_file:smollm2", "smollm2", "", None]
)
def test_no_other_model_is_called_a_toy(spec):
    assert small_model_note(spec) == ""


def test_a_model_that_was_brought_as_an_object_is_no_toy():
    assert small_model_note(chat_model("llamacpp:smollm2")) == ""


@pytest.mark.parametrize(
    ("variable", "value", "setting"),
    [
        ("GEMINI_API_KEY", "sk-hidden-key", "models.generation=gemini:gemini-2.5-flash"),
        ("OPENAI_API_KEY", "sk-hidden-key", "models.generation=openai:gpt-4o-mini"),
        ("OLLAMA_HOST", "gpu-box:11434", "models.generation=ollama:llama3.2:3b"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1/", "models.generation=ollama:llama3.2:3b"),
        ("OPENAI_BASE_URL", "http://10.0.0.3:8000/v1", "models.generation=openai:NAME"),
    ],
)
def test_what_is_set_on_this_machine_is_what_is_advised(monkeypatch, variable, value, setting):
    monkeypatch.setenv(variable, value)
    note = small_model_note("llamacpp:smollm2")
    assert note.endswith(f"--set {setting}")
    assert value not in note
    ModelSpec.parse(setting.partition("=")[2])


def test_a_gpu_is_advised_where_unsloth_is_installed(monkeypatch):
    monkeypatch.setattr(module.requirements, "cuda_problem", lambda _: "")
    monkeypatch.setattr(module.requirements, "missing_package", lambda *_: "")
    assert small_model_note("llamacpp:smollm2").endswith("models.generation=unsloth:qwen3-8b")


def test_where_nothing_is_set_ollama_s_lines_are_given_and_it_is_not_installed_twice(monkeypatch):
    note = small_model_note("llamacpp:smollm2")
    assert "https://ollama.com" in note
    assert "rag-lab models pull ollama:llama3.2:3b" in note
    assert note.endswith("--set models.generation=ollama:llama3.2:3b")
    monkeypatch.setattr(module.shutil, "which", lambda _: "/usr/bin/ollama")
    assert "https://ollama.com" not in small_model_note("llamacpp:smollm2")
