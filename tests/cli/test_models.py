"""Models are listed, pulled, described and checked."""

import pytest
from loopback_models import ollama_server
from tiny_models import write_tiny_gguf
from typer.testing import CliRunner

from rag_lab.cli import app, models
from rag_lab.errors import ModelError
from rag_lab.models.protocols import ChatReply
from tests.tiny_models import make_tiny_thinker


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


@pytest.mark.slow
def test_a_model_is_asked_in_batches_and_alone(tmp_path):
    folder = make_tiny_thinker(tmp_path / "tiny", context=8192)
    model = f"transformers:{folder}?batch_size=4&device=cpu"
    told = call("check", model, "--replies", "6", "--max-tokens", "8").splitlines()
    assert told[0] == "0 of 6 greedy replies change with the batch size (1 or 4)."
    assert told[1].startswith("Tokens a second: ")


@pytest.mark.parametrize("model", ["llamacpp:smollm2", "transformers:smollm2?batch_size=1"])
def test_a_model_without_batches_is_not_asked(model):
    with pytest.raises(ModelError, match="answers one request at a time, so no reply can depend on a batch"):
        call("check", model)


def test_replies_that_change_are_shown_without_what_a_terminal_obeys(monkeypatch):
    def changed(model, requests):
        alone = [ChatReply(f"{n}", tokens_out=4, seconds=2.0) for n in range(len(requests))]
        together = [ChatReply("\x1b[31mred", tokens_out=4, seconds=1.0), *alone[1:]]
        return list(zip(alone, together, strict=True))

    monkeypatch.setattr("rag_lab.models.local.transformers.check_batch", changed)
    told = call("check", "transformers:smollm2", "--replies", "3")
    assert "1 of 3 greedy replies change with the batch size (1 or 8)." in told
    assert "Tokens a second: 2.0 one at a time, 2.4 in batches." in told
    assert "in batch" in told and "\x1b" not in told


def test_the_requests_differ_in_length():
    assert len({len(str(models._request(n, 8).messages)) for n in range(6)}) == 6


def test_a_card_is_told_without_loading_anything():
    told = call("show", "llamacpp:smollm2?weights=q4_0&kv=q8_0", "--batch", "4")
    assert "135 million" in told
    assert "4 at a time x 8.5 bits" in told
    assert "Measured here" not in told


@pytest.mark.slow
def test_what_is_measured_stands_on_it(tmp_path):
    tiny = write_tiny_gguf(tmp_path / "tiny.gguf")
    assert "tokens a second" in call("show", f"llamacpp:{tiny}?context=2048", "--measure")
