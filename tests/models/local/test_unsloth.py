import importlib.util
import sys
from types import ModuleType, SimpleNamespace

import pytest

from rag_lab.errors import ModelError
from rag_lab.models import weights
from rag_lab.models.local import transformers as room
from rag_lab.models.local.transformers import UnslothChat
from rag_lab.models.protocols import ChatRequest, Message

ASKED = ChatRequest((Message("user", "hello"),))


@pytest.mark.skipif(importlib.util.find_spec("unsloth") is not None, reason="unsloth is installed")
def test_a_missing_package_says_what_to_install():
    with pytest.raises(ModelError, match=r"pip install 'rag_lab\[unsloth\]'"):
        UnslothChat("qwen3-8b").generate([ASKED])


def test_a_missing_gpu_is_said_before_unsloth_is_imported(monkeypatch):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    monkeypatch.setattr(room, "missing_package", lambda module, package: "")
    with pytest.raises(ModelError, match="unsloth needs an NVIDIA GPU with CUDA"):
        UnslothChat("qwen3-8b").generate([ASKED])
    assert "unsloth" not in sys.modules


def test_it_loads_as_documented_and_answers(monkeypatch, tiny_causal):
    """With a stand-in for the library, which needs a GPU: its documented calls, and a real small model behind them."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    calls = []

    class FastLanguageModel:
        @staticmethod
        def from_pretrained(**options):
            calls.append(options)
            tokenizer = AutoTokenizer.from_pretrained(tiny_causal)
            tokenizer.pad_token = tokenizer.eos_token
            model = AutoModelForCausalLM.from_pretrained(tiny_causal)
            return model, SimpleNamespace(tokenizer=tokenizer, chat_template=tokenizer.chat_template)

        @staticmethod
        def for_inference(model):
            calls.append(model.eval())

    library = ModuleType("unsloth")
    library.FastLanguageModel = FastLanguageModel
    monkeypatch.setattr(room, "missing_package", lambda module, package: "")
    monkeypatch.setattr(room, "cuda_problem", lambda what: "")
    monkeypatch.setattr(room, "require_package", lambda module, package: library)
    (reply,) = UnslothChat("qwen3-8b", context=96).generate([ASKED])
    assert reply.error == ""
    assert calls[0] == {
        "model_name": "unsloth/Qwen3-8B-unsloth-bnb-4bit",
        "max_seq_length": 96,
        "load_in_4bit": True,
    }
    assert len(calls) == 2


def test_tokens_are_counted_without_unsloth_or_a_gpu(tiny_causal):
    assert UnslothChat(str(tiny_causal)).count_tokens("grease the ram guides") == 4


def test_the_identity_states_weights_and_how_replies_are_decoded(monkeypatch):
    monkeypatch.setattr(weights, "_hub_revision", lambda source: "1" * 40)
    identity = UnslothChat("qwen3-8b").identity()
    assert identity["schema_library"].startswith("llguidance ")
    assert identity["weights"].startswith("hub:unsloth/Qwen3-8B-unsloth-bnb-4bit@")
