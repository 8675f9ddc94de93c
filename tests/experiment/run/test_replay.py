"""A variant of which everything is remembered is replayed without the libraries that computed it."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]


def test_a_replayed_variant_imports_nothing_heavy(tmp_path):
    def run():
        paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
        environment = os.environ | {"RAG_LAB_HOME": str(tmp_path / "home"), "PYTHONPATH": paths}
        script = [sys.executable, str(TESTS / "replayed_variant.py"), str(tmp_path)]
        ended = subprocess.run(script, env=environment, capture_output=True, text=True, check=True)
        return ended.stdout.splitlines()[-1].split(",")

    assert {"ragas", "rouge_score", "ir_measures"} <= set(run())
    scores = (tmp_path / "out/scores.parquet").read_bytes()
    assert run() == [""]
    assert scores and (tmp_path / "out/scores.parquet").stat().st_size > 0
