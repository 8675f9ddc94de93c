"""Finds presets, the variant's notebook and experiments: those that people edit, else the package's own copies."""

from pathlib import Path

import rag_lab
from rag_lab.errors import RagLabError

_PACKAGE = Path(rag_lab.__file__).parent
NOTEBOOK = "notebooks/02_run_variant.ipynb"  # which runs a variant
PACKAGED = {
    "experiments/presets": _PACKAGE / "experiment/presets",
    NOTEBOOK: _PACKAGE / "experiment/run/variant.ipynb",
}


def checkout_file(name: str) -> Path:
    """Return the path of `name` (with forward slashes) in the checkout, below the current folder, or in the package."""
    places = [_PACKAGE.parent / name, Path.cwd() / name, *([PACKAGED[name]] if name in PACKAGED else [])]
    found = next((path for path in places if path.exists()), None)
    if found is None:
        raise RagLabError(f"Cannot find {name}: run from a checkout of rag_lab, or install it with `pip install -e`.")
    return found
