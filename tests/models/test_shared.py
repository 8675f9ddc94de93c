import subprocess
import sys

import pytest

from rag_lab.errors import ModelError
from rag_lab.models import shared
from rag_lab.models.providers import PROVIDERS

MAKERS = {
    "chat": shared.chat_model,
    "embedding": shared.embedder,
    "cross_encoder": shared.cross_encoder,
    "query_likelihood": shared.query_likelihood,
}


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: f"{provider.name}-{provider.kind}")
def test_construction_needs_neither_weights_nor_keys(provider):
    make = MAKERS[provider.kind]
    assert make(provider.example) is make(provider.example)


def test_an_option_makes_another_model():
    large = shared.chat_model("llamacpp:smollm2?context=8192")
    assert large.context_tokens == 8192
    assert large is not shared.chat_model("llamacpp:smollm2")


def test_a_kind_knows_its_own_providers_alone():
    with pytest.raises(ModelError, match="Unknown cross_encoder provider 'llamacpp'.*sentence_transformers"):
        shared.cross_encoder("llamacpp:smollm2")


def test_constructing_every_model_imports_no_model_library():
    heavy = ["torch", "transformers", "sentence_transformers", "langchain_core", "xllamacpp", "unsloth"]
    code = f"""
import sys
from rag_lab.models import shared
from rag_lab.models.providers import PROVIDERS
makers = {{"chat": shared.chat_model, "embedding": shared.embedder,
          "cross_encoder": shared.cross_encoder, "query_likelihood": shared.query_likelihood}}
for provider in PROVIDERS:
    makers[provider.kind](provider.example)
sys.exit(",".join(name for name in {heavy} if name in sys.modules) or 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_doctor_is_told_what_is_missing(monkeypatch):
    found = {info.title: info.check() for info in shared.providers()}
    assert len(found) == len(PROVIDERS)
    assert "GOOGLE_API_KEY" in found["gemini (chat)"]
    assert "OPENAI_API_KEY" in found["openai (chat)"]
    monkeypatch.setenv("GEMINI_API_KEY", "x")
    assert all(not info.check() for info in shared.providers() if info.provider.name == "gemini")
