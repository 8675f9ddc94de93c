"""A secret that is refused is not repeated: by no command, in no file, whatever is wrong beside it."""

import sys

import pytest
from small_dataset import write_dataset

from rag_lab import cli
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError
from rag_lab.experiment.run.variant_work import from_parameters

SECRET = "PWhunter2"
MODELS = [
    f"openai:f?base_url=http://user:{SECRET}@127.0.0.1/v1",
    f"openai:f?base_url=http://user:a/b {SECRET}&@127.0.0.1/v1",
    f"openai:f?base_url=http%3A%2F%2Fuser%3A{SECRET}%40h",
    f"openai:f?api_key={SECRET}",
    f"openai:f?context=0&password=a b {SECRET}",
    f"openai:f?{SECRET}",
    f"gemini:f?base_url=http://h/v1?key={SECRET}",
    f"http://user:{SECRET}@127.0.0.1",
    f"nobody:f?access_token={SECRET}",
    f"openai?api_key={SECRET}",
]
SETTINGS = [
    *(f"models.{role}={model}" for model in MODELS for role in ("generation", "hyde", "embedding")),
    f"store.url=http://user:{SECRET}@h:1",
    f"store.url=http://h:1?api_key={SECRET}",
    f"store.name=http://user:{SECRET}@h:1",
    f"http://user:{SECRET}@h/v1?x=1",
    f"models.generation:openai:f?api_key={SECRET}",
    f"rerank.final_k=[http://user:{SECRET}@h]",
    f"rerank.final_k='http://user:{SECRET}@h",
]


@pytest.fixture
def told(monkeypatch, capfd, tmp_path):
    """Run the command line; return its status, and all that it told and wrote."""
    monkeypatch.chdir(tmp_path)
    write_dataset(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["rag-lab", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        given = {tmp_path / name for name in ("e.yaml", "p.yaml")}
        written = [
            path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file() and path not in given
        ]
        return ended.value.code, "".join([*capfd.readouterr(), *written])

    return run


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_refused_setting_is_told_without_its_secret(told, setting):
    status, text = told("ask", "Why?", "--dataset", "./small", "--set", setting)
    assert status == 2
    assert SECRET not in text
    assert "Traceback" not in text


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "line",
    [
        "base: {models: {generation: '%s'}}",
        "base: {models: {vision: '%s'}}",  # which nothing uses here
        "base: p.yaml",
        "factors: {models.hyde: ['llamacpp:smollm2', '%s']}",
        "design: list\nvariants: {a: {models.hyde: '%s'}}",
        "judge: '%s'",
        "judge: ['%s']",
        "limits: {questions: '%s'}",
        "name: '%s'",
        "base: {models: {'%s': 1}}",
    ],
)
def test_a_refused_experiment_is_told_without_its_secret(told, tmp_path, line, model):
    (tmp_path / "p.yaml").write_text(f"models: {{understanding: '{model}'}}\n")
    (tmp_path / "e.yaml").write_text(f"name: e\nquestion: q\ndataset: ./small\n{line.replace('%s', model)}\n")
    status, text = told("sweep", "e.yaml", "--dry-run")
    assert status == 2
    assert SECRET not in text


@pytest.mark.parametrize("model", MODELS)
def test_a_refused_parameter_of_a_notebook_is_told_without_its_secret(model):
    with pytest.raises(ConfigError) as refused:
        from_parameters(PipelineConfig(), {"GENERATION_MODEL": model})
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("model", MODELS)
def test_a_refused_judge_is_told_without_its_secret(told, model):
    status, text = told("judge", "check", model, "--dataset", "./small")
    assert status == 2
    assert SECRET not in text
