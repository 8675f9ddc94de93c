"""What local models do on this machine's GPU, without a model hub: speed beside its limit, memory beside its forecast.

Models of the real architectures with random weights (Qwen3, Gemma 3, an XLM-RoBERTa cross-encoder and one for
embeddings, as bge has them), and the packaged SmolLM2 in llama.cpp. A decoder reads all its weights for each token, so
that memory bandwidth divided by the bytes of the weights is the most tokens a second that one sequence can have; the
bandwidth is measured here, by copying. Run it on a machine that does nothing else:

    python benchmarks/gpu.py              # prints its tables
    python benchmarks/gpu.py --tiny       # minutes on a CPU: whether the script itself runs
"""

import argparse
import importlib.util
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from rag_lab.models.model_card import Cache

CONTEXT, WRITTEN, BATCHES = 512, 64, (1, 8)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Shape:
    """A decoder's sizes: of a real model, or tiny."""

    name: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    feed: int
    vocabulary: int


QWEN3 = Shape("Qwen3-1.7B's shape", 28, 2048, 16, 8, 128, 6144, 151_936)
GEMMA3 = Shape("Gemma-3-1B's shape", 26, 1152, 4, 1, 256, 6912, 262_144)
TINY = Shape("tiny", 2, 64, 4, 2, 16, 128, 1000)


def main() -> None:
    tiny = _arguments().tiny
    print(f"{_device()}, torch {torch.__version__}, {platform.platform()}\n")
    bandwidth = _bandwidth_bytes_s(2**22 if tiny else 2**30)
    print(f"Memory bandwidth, measured by copying: {bandwidth / 1e9:,.0f} GB/s\n")
    print("| model | weights | at a time | tokens/s | limit for one | MiB foretold | MiB measured |")
    print("|---|---|---|---|---|---|---|")
    for build, shape in ((_qwen3, TINY if tiny else QWEN3), (_gemma3, TINY if tiny else GEMMA3)):
        for four_bit in (False, True):
            _decoder(build, shape, four_bit, bandwidth)
    print("\n| model | pairs or texts a second |\n|---|---|")
    for name, per_second in _encoders(tiny):
        print(f"| {name} | {per_second:,.0f} |")
    _llamacpp(tiny)
    _unsloth()


def _decoder(build: Callable[[Shape], Any], shape: Shape, four_bit: bool, bandwidth: float) -> None:
    held = "4 bits (NF4)" if four_bit else str(torch.bfloat16).removeprefix("torch.")
    name = f"{build.__name__.removeprefix('_')}, {shape.name}"
    if four_bit and (problem := _no_four_bit()):
        print(f"| {name} | {held} | – | {problem} | – | – | – |")
        return
    before = _allocated_mb()
    model = _on_device(build(shape), four_bit)
    weights_mb = sum(each.numel() * each.element_size() for each in model.parameters()) / 2**20
    cache = Cache(shape.layers, shape.kv_heads, shape.head_dim)
    for batch in BATCHES:
        ids = torch.randint(0, shape.vocabulary, (batch, CONTEXT), device=DEVICE)
        _reset_peak()
        seconds = _seconds(lambda ids=ids: _generate(model, ids, WRITTEN)) - _seconds(
            lambda ids=ids: _generate(model, ids, 1)
        )
        speed = batch * (WRITTEN - 1) / max(seconds, 1e-9)
        foretold = weights_mb + cache.mb(CONTEXT + WRITTEN, batch)
        limit = bandwidth / (weights_mb * 2**20)
        measured = f"{_peak_mb() - before:,.0f}" if DEVICE == "cuda" else "no GPU"
        print(f"| {name} | {held} | {batch} | {speed:,.1f} | {limit:,.0f} | {foretold:,.0f} | {measured} |")


def _qwen3(shape: Shape) -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    return Qwen3ForCausalLM(Qwen3Config(**_sizes(shape), tie_word_embeddings=True))


def _gemma3(shape: Shape) -> Any:
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    return Gemma3ForCausalLM(Gemma3TextConfig(**_sizes(shape), sliding_window=512))


def _sizes(shape: Shape) -> dict[str, int]:
    return {
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.width,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.feed,
        "vocab_size": shape.vocabulary,
        "max_position_embeddings": 8192,
    }


def _on_device(model: Any, four_bit: bool) -> Any:
    model = model.to(torch.bfloat16).eval()
    if not four_bit:
        return model.to(DEVICE)
    import bitsandbytes as bnb

    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, torch.nn.Linear) and name != "lm_head":
                linear = bnb.nn.Linear4bit(
                    child.in_features, child.out_features, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4"
                )
                linear.weight = bnb.nn.Params4bit(child.weight.data, requires_grad=False, quant_type="nf4")
                setattr(module, name, linear)
    return model.to(DEVICE)


def _generate(model: Any, ids: Any, n_tokens: int) -> None:
    with torch.inference_mode():
        model.generate(input_ids=ids, max_new_tokens=n_tokens, min_new_tokens=n_tokens, do_sample=False, pad_token_id=0)


def _encoders(tiny: bool) -> list[tuple[str, float]]:
    from transformers import XLMRobertaConfig, XLMRobertaForSequenceClassification, XLMRobertaModel

    sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
    large = {"num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096}
    config = XLMRobertaConfig(
        **(sizes if tiny else large), vocab_size=1000 if tiny else 250_002, max_position_embeddings=8194, num_labels=1
    )
    ids = torch.randint(5, config.vocab_size, (32, 256), device=DEVICE)
    found = []
    for kind, use in ((XLMRobertaForSequenceClassification, "cross-encoder"), (XLMRobertaModel, "embedding")):
        model = kind(config).to(DEVICE, torch.bfloat16).eval()
        with torch.inference_mode():
            seconds = _seconds(lambda model=model: model(input_ids=ids))
        found.append(
            (f"{use}, {'tiny' if tiny else 'bge-m3'}'s shape, 256 tokens, 32 at a time, bfloat16", 32 / seconds)
        )
    return found


def _llamacpp(tiny: bool) -> None:
    import xllamacpp

    from rag_lab.models.model_card import measure, model_card
    from rag_lab.models.shared import chat_model

    devices = ", ".join(str(device.get("name", device)) for device in xllamacpp.get_device_info())
    print(f"\nllama.cpp sees: {devices or 'nothing but the CPU'}\n")
    print("| SmolLM2 | tokens/s | MiB foretold | MiB measured | J a token |\n|---|---|---|---|---|")
    for options in ("", "?weights=q4_0") if tiny else ("?weights=f16", "", "?weights=q4_0", "?weights=q4_0&kv=q8_0"):
        name = f"llamacpp:smollm2{options}"
        card, found = model_card(name), measure(chat_model(name))
        memory = "–" if found.memory_mb is None else f"{found.memory_mb:,.0f}"
        joules = "no meter" if found.joules_per_token is None else f"{found.joules_per_token:.2f}"
        print(f"| {options or 'q8_0'} | {found.tokens_per_second:,.1f} | {card.memory_mb:,.0f} | {memory} | {joules} |")


def _unsloth() -> None:
    if importlib.util.find_spec("unsloth") is None or DEVICE != "cuda":
        print("\nUnsloth: not run; it needs the extra rag_lab[unsloth] and an NVIDIA GPU.")
        return
    import unsloth

    print(f"\nUnsloth {unsloth.__version__} imports; `rag-lab models show NAME --measure` asks one of its models.")


def _no_four_bit() -> str:
    if DEVICE != "cuda":
        return "no GPU"
    return "" if importlib.util.find_spec("bitsandbytes") else "bitsandbytes is not installed"


def _bandwidth_bytes_s(n_bytes: int) -> float:
    source = torch.ones(n_bytes, dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    return 2 * n_bytes / _seconds(lambda: target.copy_(source))  # read and written


def _seconds(work: Callable[[], Any], runs: int = 3) -> float:
    work()
    found = []
    for _ in range(runs):
        _synchronize()
        started = time.perf_counter()
        work()
        _synchronize()
        found.append(time.perf_counter() - started)
    return min(found)


def _synchronize() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def _reset_peak() -> None:
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()


def _allocated_mb() -> float:
    return torch.cuda.memory_allocated() / 2**20 if DEVICE == "cuda" else 0.0


def _peak_mb() -> float:
    return torch.cuda.max_memory_allocated() / 2**20 if DEVICE == "cuda" else 0.0


def _device() -> str:
    return torch.cuda.get_device_name() if DEVICE == "cuda" else "no GPU that torch sees"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What local models do on this machine's GPU.")
    parser.add_argument("--tiny", action="store_true", help="models of a few thousand weights")
    return parser.parse_args()


if __name__ == "__main__":
    main()
