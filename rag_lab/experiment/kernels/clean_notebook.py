"""A notebook as it may be kept: without known secrets, and with visible control characters in its outputs."""

from __future__ import annotations

import json
from typing import Any

from papermill.iorw import LocalHandler

from rag_lab.redaction import hide_known_json
from rag_lab.visible import visible, visible_json


class CleanNotebooks(LocalHandler):  # type: ignore[misc]  # papermill has no stubs
    """papermill's writer of local files, by way of `clean_notebook`."""

    def write(self, buf: str, path: str) -> None:
        """Write the notebook `buf`."""
        super().write(clean_notebook(buf), path)


def clean_notebook(text: str) -> str:
    """Return the JSON of a notebook as it may be kept."""
    book = json.loads(hide_known_json(text))
    for cell in book["cells"]:
        if "outputs" in cell:
            cell["outputs"] = _visible_in(cell["outputs"])
    return visible_json(json.dumps(book, indent=1, ensure_ascii=False)) + "\n"


def _visible_in(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: _visible_in(inner) for key, inner in value.items()}
    return [_visible_in(inner) for inner in value] if isinstance(value, list) else value
