"""Finds the notebooks and experiments that lie beside the package in its checkout."""

from __future__ import annotations

from pathlib import Path

import rag_lab
from rag_lab.errors import RagLabError


def checkout_file(name: str) -> Path:
    """Return the path of `name` (with forward slashes) in the checkout, or below the current folder.

    Raises:
        RagLabError: if it is in neither.
    """
    for folder in (Path(rag_lab.__file__).parent.parent, Path.cwd()):
        if (folder / name).exists():
            return folder / name
    raise RagLabError(f"Cannot find {name}: run from a checkout of rag_lab, or install it with `pip install -e`.")
