"""Sweeps as a user starts them, by the command and in a home folder of their own."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from beside.took import Took, ran

RAG_LAB = (sys.executable, "-c", "import sys; sys.argv[0] = 'rag-lab'; from rag_lab.cli import main; main()")
OFF = {"query": {"rewrite": "none", "hyde": "none"}, "answer": {"name": "none"}}


def written(folder: Path, experiment: Mapping[str, Any]) -> Path:
    """Write the experiment's file into a folder and return its path."""
    path = folder / f"{experiment['name']}.yaml"
    path.write_text(yaml.safe_dump(dict(experiment), sort_keys=False), encoding="utf-8")
    return path


def swept(path: Path, out: Path, home: Path, *options: str, environment: Mapping[str, str] | None = None) -> Took:
    """Run the sweep of a file into `out` and return what it took; a variant that failed ends the benchmark."""
    command = [*RAG_LAB, "sweep", str(path), "--out", str(out), *options]
    took, _ = ran(command, path.parent, {"RAG_LAB_HOME": str(home), **(environment or {})})
    return took


def states(out: Path) -> dict[str, Any]:
    """Return how each variant ended, by its id."""
    found: dict[str, Any] = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["variants"]
    return found


def means(out: Path, metric: str, digits: int = 4) -> dict[str, float]:
    """Return the mean of a metric of each variant."""
    scores = pd.read_parquet(out / "scores.parquet")
    found = scores[(scores["metric"] == metric) & (scores["status"] == "scored")]
    return {str(name): round(float(mean), digits) for name, mean in found.groupby("variant_id")["value"].mean().items()}
