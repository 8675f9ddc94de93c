"""What a notebook costs beside its work: kernels that are prepared, and new ones, side by side; prints JSON.

The notebook imports what a variant imports and does nothing. Target: a prepared kernel under a third of a new one.
"""

import json
import resource
import tempfile
import time
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from rag_lab.experiment.executors.local import Job, execute

NOTEBOOKS = 8
AT_A_TIME = 2


def jobs(folder: Path, *, cold: bool) -> list[Job]:
    cells = [
        new_code_cell('OUT: str = ""', metadata={"tags": ["parameters"]}),
        new_code_cell("from rag_lab.notebook.variant import VariantRun"),
        new_code_cell("1 + 1"),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(new_notebook(metadata={"kernelspec": kernel}, cells=cells), folder / "book.ipynb")
    names = [f"{'cold' if cold else 'warm'}_{n}" for n in range(NOTEBOOKS)]
    return [
        Job(name, folder / "book.ipynb", folder / f"{name}.ipynb", {"OUT": ""}, folder / f"{name}.log", cold=cold)
        for name in names
    ]


def measured(folder: Path, *, cold: bool) -> dict[str, float]:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ends = []
    for done in execute(jobs(folder, cold=cold), AT_A_TIME):
        assert not done.reason, done.reason
        ends.append(time.perf_counter() - started)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    later = (ends[-1] - ends[AT_A_TIME - 1]) / (NOTEBOOKS - AT_A_TIME)
    return {"wall_s": ends[-1], "wall_s_a_later_notebook": later, "processor_s": processor_s}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = {name: measured(Path(folder), cold=name == "cold") for name in ("cold", "warm")}
    ratio = found["warm"]["wall_s_a_later_notebook"] / found["cold"]["wall_s_a_later_notebook"]
    rounded = {name: {key: round(value, 2) for key, value in values.items()} for name, values in found.items()}
    print(json.dumps({"benchmark": "kernels", "notebooks": NOTEBOOKS, **rounded, "warm_to_cold": round(ratio, 3)}))


if __name__ == "__main__":
    main()
