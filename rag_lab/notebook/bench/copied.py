"""A setting as text to paste elsewhere."""

from __future__ import annotations

from collections.abc import Collection

import yaml

from rag_lab.config import PipelineConfig, nested


def as_yaml(config: PipelineConfig) -> str:
    """Return a YAML file that `PipelineConfig.load` reads back: what differs from the defaults."""
    written = yaml.safe_dump(nested(config.differing()), sort_keys=False, allow_unicode=True)
    return f"# what differs from the defaults\n{written}"


def as_python(config: PipelineConfig, start: PipelineConfig, documents: str, places: Collection[str] = ()) -> str:
    """Return the pipeline as a line of Python.

    Args:
        config: the setting.
        start: what `rl.Pipeline` of these documents has where nothing is set.
        documents: how the documents are written in Python.
        places: of the pipeline that hold objects, which no text can hold.
    """
    changes = config.differing(start)
    lines = "".join(f"    {key!r}: {value!r},\n" for key, value in changes.items())
    replaced = f".replace({', '.join(f'{place}=...' for place in places)})" if places else ""
    return f"rl.Pipeline({documents})" + (f".set({{\n{lines}}})" if lines else "") + replaced
