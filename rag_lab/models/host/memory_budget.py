"""Room for one more model: what it will need, what there is, and which model that is held goes first.

A model is never refused for lack of room: where it does not fit beside the others, they are ended, the longest unused
first, and it is loaded alone. What a card foretells is the memory of weights and cache; libraries and a call's own
numbers come on top.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from rag_lab._kit.machine import bytes_on_disk, free_mb
from rag_lab._kit.registry import Kind
from rag_lab.errors import ModelError
from rag_lab.models.card.gguf_facts import gguf_cache
from rag_lab.models.card.write_card import model_card
from rag_lab.models.host.budget_setting import model_budget_mb
from rag_lab.models.host.place import Holder, holders
from rag_lab.models.local.gguf.gguf_header import gguf_metadata
from rag_lab.models.local.transformers_copy import transformers_copy
from rag_lab.models.providers import CHAT_MODELS
from rag_lab.models.shared import model_of
from rag_lab.models.spec import ModelSpec
from rag_lab.models.weights import find

_ON_TOP = 1.1  # of weights and cache: buffers, and fragments of memory
_PROCESS_MB = 400.0  # the libraries, and the context of a GPU


def foretold_mb(kind: Kind, model: str) -> float:
    """Return the MiB that a model will need, those of its libraries included; of one that nothing tells of, these.

    Weights are brought into the form that they are loaded in, which loading does otherwise.
    """
    try:
        weights_mb = _of_gguf(model) if kind is CHAT_MODELS and model.startswith("llamacpp:") else _of(kind, model)
    except ModelError:  # it is told where the model is loaded
        weights_mb = 0.0
    return weights_mb * _ON_TOP + _PROCESS_MB


def _of_gguf(model: str) -> float:
    """Return the MiB of a GGUF file's weights and caches: its card reads the whole file, this the head alone."""
    made = model_of(CHAT_MODELS, model)
    path: Path = made.stored_path()
    cache = gguf_cache(gguf_metadata(path) or {}, made.kv or "f16")
    return bytes_on_disk(path) / 2**20 + (cache.mb(made.context_tokens) * made.caches if cache else 0.0)


def _of(kind: Kind, model: str) -> float:
    name = ModelSpec.parse(model, kind).name
    location = find(name).location
    if location.endswith(".gguf"):
        model = model.replace(name, str(transformers_copy(Path(location))), 1)
    return model_card(model, kind=kind).memory_mb or 0.0


def make_room(folder: Path, need_mb: float, device: str, end: Callable[[Holder, Path], None]) -> None:
    """End models that are held, the longest unused first, until one that needs so much fits, or none is left.

    Only those count that are on the same device.

    Raises:
        ConfigError: if the budget in the environment is no number.
    """
    budget_mb = model_budget_mb()
    while others := [one for one in holders(folder) if one.device == device]:
        resident_mb = sum(one.memory_mb for one in others)
        left_mb = _free_mb(device) if budget_mb is None else budget_mb - resident_mb
        if left_mb is None or need_mb <= left_mb:
            return
        end(others[0], folder)


def _free_mb(device: str) -> float | None:
    if device != "cuda":
        return free_mb()
    torch = sys.modules["torch"]  # which has told that there is a GPU
    return float(torch.cuda.mem_get_info()[0]) / 2**20
