"""What only a GPU can show. Each is skipped without one, and says so; `benchmarks/gpu.py` measures more."""

import pytest
import torch

from rag_lab._kit.machine import energy_counter, meters
from rag_lab.models.model_card import model_card
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.shared import chat_model

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no NVIDIA GPU on this machine"),
]

REQUEST = ChatRequest((Message("user", "Say hello."),), max_tokens=16)


@pytest.mark.parametrize("options", ["", "?4bit=true"])
def test_a_causal_model_answers_and_its_memory_is_near_the_forecast(real_home, options):
    if options:
        pytest.importorskip("bitsandbytes", reason="4 bits need the extra rag_lab[quantized]")
    name = f"transformers:smollm2{options}"
    (reply,) = chat_model(name).generate([REQUEST])
    assert not reply.error
    weights_mb = model_card(name).weights_mb
    assert weights_mb * 0.9 < reply.machine.memory_mb < weights_mb * 1.5 + 1024  # what the library itself needs


def test_energy_is_counted():
    pytest.importorskip("pynvml", reason="NVIDIA's meter needs the extra rag_lab[energy]")
    assert meters()
    joules = energy_counter()
    big = torch.ones(4096, 4096, device="cuda")
    for _ in range(200):
        big @ big
    torch.cuda.synchronize()
    assert joules() > 0


def test_unsloth_answers():
    pytest.importorskip("unsloth", reason="Unsloth needs the extra rag_lab[unsloth]")
    (reply,) = chat_model("unsloth:qwen3-8b").generate([REQUEST])
    assert not reply.error
