import subprocess
import sys

import pytest

from rag_lab.errors import ModelError
from rag_lab.models import shared
from rag_lab.models.providers import CHAT_MODELS, EMBEDDERS, MODEL_KINDS, providers_of

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
