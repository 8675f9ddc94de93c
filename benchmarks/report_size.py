"""Measure the report of a large run: how long it takes to write and to open, its memory, and its size.

Usage: python benchmarks/report_size.py [VARIANTS QUESTIONS]. Prints one JSON object for 16 x 100 and for 64 x 1,000, or
for the numbers given; each is written in a process of its own. `write_cpu_s` is processor time, which other work on the
machine does not change much; `open_s` needs a Chromium. The aims: less than 5 MB and 2 s to open.
"""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
METRICS = ("retrieval.ndcg@5", "retrieval.mrr@5", "retrieval.evidence_recall@5", "ragas.semantic_similarity")
SIZES = ((16, 100), (64, 1000))


def write(folder: Path, variants: int, questions: int) -> dict[str, Any]:
    """Write a run with made-up scores and its report; return what that took."""
    from synthetic_run import write_run

    from rag_lab.report.page.report_page import write_report

    random = np.random.default_rng(0)
    plans = {f"v{index}": {"retrieval.base_k": 10 + index} if index else {} for index in range(variants)}
    values = {
        metric: {plan: random.choice([0, 0.5, 0.631, 1], questions) for plan in plans} for metric in METRICS[:3]
    } | {METRICS[3]: {plan: random.random(questions) for plan in plans}}
    classes = (["specific", "fuzzy", None] * questions)[:questions]
    write_run(folder, plans, values, labelled=classes)
    started, cpu = time.perf_counter(), time.process_time()
    page = write_report(folder)
    pages = list((folder / "questions").glob("*.html"))
    return {
        **{"variants": variants, "questions": questions},
        **{"write_s": round(time.perf_counter() - started, 1), "write_cpu_s": round(time.process_time() - cpu, 1)},
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "page_mb": round(page.stat().st_size / 1e6, 2),
        **{"pages": len(pages), "pages_mb": round(sum(path.stat().st_size for path in pages) / 1e6, 1)},
    }


def seconds_to_open(page: Path) -> float | None:
    """Return how long a browser takes until the list of questions has been counted; None without one."""
    from browser import CHROMIUM, browser

    if CHROMIUM is None:
        return None
    with browser() as tab:
        started = time.perf_counter()
        tab.goto(page.as_uri())
        tab.wait_for_function("document.getElementById('f-count').textContent !== ''")
        return round(time.perf_counter() - started, 2)


def main() -> None:
    if sys.argv[1:2] == ["--write"]:
        print(json.dumps(write(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))))
        return
    sizes = ((int(sys.argv[1]), int(sys.argv[2])),) if sys.argv[1:] else SIZES
    for variants, questions in sizes:
        folder = Path(tempfile.mkdtemp()) / "run"
        try:
            command = [sys.executable, __file__, "--write", str(folder), str(variants), str(questions)]
            told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            print(json.dumps(told | {"open_s": seconds_to_open(folder / "report.html")}))
        finally:
            shutil.rmtree(folder.parent)


if __name__ == "__main__":
    main()
