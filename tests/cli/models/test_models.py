import pytest
from typer.testing import CliRunner

from rag_lab.cli import app
from rag_lab.errors import ModelError
from rag_lab.testing import ollama_server


def call(*arguments):
    done = CliRunner().invoke(app, ["models", *arguments])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0
    return done.output


def test_what_is_packaged_and_what_ollama_has_is_listed_under_the_names_that_are_set(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "none"))
    with ollama_server(models=["qwen3:8b", "a\x1b[31m:latest"]) as server:
        told = call("list", "--ollama", server.url)
    assert "llamacpp:smollm2" in told and "also transformers:smollm2" in told
    (line,) = [line for line in told.splitlines() if line.startswith("ollama:qwen3:8b")]
    assert line.split() == ["ollama:qwen3:8b", "1", "1.2M", "Q4_K_M"]
    assert "\x1b" not in told


@pytest.mark.parametrize(
    ("models", "said"), [([], "`rag-lab models pull ollama:llama3.2:3b`"), (None, "No Ollama answers at http://127")]
)
def test_an_ollama_without_models_or_that_is_off_costs_one_sentence(models, said):
    with ollama_server(models=models or []) as server:
        told = call("list", "--ollama", server.url) if models is not None else ""
    told = told or call("list", "--ollama", server.url)
    assert "smollm2" in told
    assert said in told.splitlines()[-1]


def test_a_pull_tells_its_steps_and_the_model_is_listed(monkeypatch):
    with ollama_server(models=[]) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        told = call("pull", "ollama:qwen3:8b").splitlines()
        assert told[0] == "pulling manifest"
        assert told[-2] == "success"
        assert told[-1].endswith("--set models.generation=ollama:qwen3:8b")
        assert "ollama:qwen3:8b" in call("list")


@pytest.mark.parametrize("model", ["gemini:gemini-2.5-flash", "transformers:BAAI/bge-m3"])
def test_others_are_not_pulled_and_that_is_said(model):
    with pytest.raises(ModelError, match="as ollama:NAME"):
        call("pull", model)
