import subprocess
import sys

import pytest

from rag_lab.errors import ModelError
from rag_lab.models import shared
from rag_lab.models.providers import CHAT_MODELS, CROSS_ENCODERS, EMBEDDERS, MODEL_KINDS, providers_of
from rag_lab.models.remote.rerankers import TeiScorer, VllmScorer
from rag_lab.testing import ollama_server, rerank_server

EXAMPLES = [(kind, provider.example) for kind in MODEL_KINDS for provider in providers_of(kind).values()]


@pytest.mark.parametrize(("kind", "example"), EXAMPLES, ids=str)
def test_construction_needs_neither_weights_nor_keys(kind, example):
    assert shared.model_of(kind, example) is shared.model_of(kind, example)


def test_an_option_makes_another_model():
    large = shared.chat_model("llamacpp:smollm2?context=8192")
    assert large.context_tokens == 8192
    assert large is not shared.chat_model("llamacpp:smollm2")


def test_a_kind_knows_its_own_providers_alone():
    with pytest.raises(
        ModelError, match="Unknown cross-encoder provider 'llamacpp'.*sentence_transformers.* named module:Class"
    ):
        shared.cross_encoder("llamacpp:smollm2")


@pytest.mark.parametrize("name", ["lamacpp:smollm2", "opnai:llama3.2:3b?base_url=http://127.0.0.1:1/v1"])
def test_a_slip_in_a_provider_is_told_with_what_is_near(name):
    with pytest.raises(ModelError, match=r"Unknown chat model provider '.*did you mean '(llamacpp|openai)'"):
        shared.chat_model(name)


def test_constructing_every_model_imports_no_model_library():
    heavy = ["torch", "transformers", "sentence_transformers", "langchain_core", "xllamacpp", "unsloth"]
    code = f"""
import sys
from rag_lab.models import shared
from rag_lab.models.providers import MODEL_KINDS, providers_of
for kind in MODEL_KINDS:
    for provider in providers_of(kind).values():
        shared.model_of(kind, provider.example)
sys.exit(",".join(name for name in {heavy} if name in sys.modules) or 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_doctor_is_told_what_is_missing(monkeypatch):
    def found(kind, name):
        return shared.provider_problem(name, providers_of(kind)[name])

    assert "GOOGLE_API_KEY" in found(CHAT_MODELS, "gemini")
    assert "OPENAI_API_KEY" in found(CHAT_MODELS, "openai")
    monkeypatch.setenv("GEMINI_API_KEY", "x")
    assert found(CHAT_MODELS, "gemini") == found(EMBEDDERS, "gemini") == ""


def test_doctor_is_told_whether_ollama_answers(monkeypatch):
    with ollama_server() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        assert shared.provider_problem("ollama", providers_of(CHAT_MODELS)["ollama"]) == ""
    assert "No Ollama answers" in shared.provider_problem("ollama", providers_of(CHAT_MODELS)["ollama"])
    monkeypatch.setenv("OLLAMA_HOST", f"{server.url}/v1")
    assert "OpenAI interface" in shared.provider_problem("ollama", providers_of(EMBEDDERS)["ollama"])


def test_doctor_is_told_whether_a_reranking_server_answers_here(monkeypatch):
    providers = providers_of(CROSS_ENCODERS)
    with rerank_server() as server:
        monkeypatch.setattr(TeiScorer, "address", server.url)
        assert shared.provider_problem("tei", providers["tei"]) == ""
    monkeypatch.setattr(VllmScorer, "address", server.url)
    problem = shared.provider_problem("vllm", providers["vllm"])
    assert problem == f"Nothing answers at {server.url}; a server elsewhere is vllm:MODEL?base_url=ADDRESS."
