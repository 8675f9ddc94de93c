"""Whether weights of the model hub lie on this machine; the hub is not asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")


def downloaded_folder(hub_name: str) -> Path | None:
    """Return the folder of the last download of `hub_name`; None where it holds no weights."""
    from huggingface_hub import try_to_load_from_cache

    found: Any = try_to_load_from_cache(hub_name, "config.json")  # which is fetched alone, too, to know the revision
    if not isinstance(found, str):
        return None
    folder = Path(found).parent
    return folder if any(any(folder.rglob(ending)) for ending in _WEIGHTS) else None
