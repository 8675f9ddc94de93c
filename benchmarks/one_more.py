"""A sweep of 100 questions, then of 101 in the same home folder, as JSON on stdout.

    python benchmarks/one_more.py [EXPERIMENT.yaml] [--questions 100] [--page benchmarks/tables/benchmarks.md]

The experiment is the demo's, with packaged models, unless another is named. The second sweep is the
same command with one question more, into a run folder of its own: all its notebooks, scores and its report are
made. `question_work` is what that question takes by itself, where all else is remembered: its stages and scores
called directly in one process, variant after variant, in a copy of the home folder that the first sweep left,
without the time of imports. `again` is the first sweep once more with its results deleted, which is what is fixed:
nothing is computed in it.

`beyond` is what the second sweep takes beyond the question's work, in percent of the first: 3 at most is asked.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from beside.data import ROOT
from beside.page import argument, tell
from beside.sweeps import states, swept, written
from beside.took import Took, ran

DEMO = ROOT / "experiments/decisive.yaml"
ALONE = """
import json, sys, time
from pathlib import Path
from rag_lab.config import PipelineConfig
from rag_lab.data.dataset import Dataset
from rag_lab.evaluation.registry import split_names
from rag_lab.experiment.run.variant_work import VariantWork
from rag_lab.pipeline import Pipeline
import chromadb, ragas

run, question = Path(sys.argv[1]), sys.argv[2]
plan = json.loads((run / "plan.json").read_text())
dataset = Dataset.load(sys.argv[3])
began_s, began_cpu_s = time.perf_counter(), time.process_time()
for variant in sys.argv[5:]:
    config = PipelineConfig.load(run / "variants" / variant / "config.yaml")
    pipeline = Pipeline(dataset, config, progress=False)
    answered = tuple(set(plan["answered"]) & {question})
    metrics = split_names(sys.argv[4])
    work = VariantWork(pipeline, (question,), answered, metrics, metric_embedding=config.models.embedding)
    work.run()
    work.score()
print(json.dumps([time.perf_counter() - began_s, time.process_time() - began_cpu_s]))
"""


def experiment(path: Path, folder: Path, questions: int) -> Path:
    """Write the experiment with so many questions, and return the file."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    dataset = ROOT / "datasets" / str(data["dataset"])
    data["dataset"] = str(dataset if dataset.is_dir() else (path.parent / data["dataset"]).resolve())
    if isinstance(data.get("base"), str) and (path.parent / data["base"]).is_file():
        data["base"] = str((path.parent / data["base"]).resolve())
    data |= {"name": f"questions_{questions}", "limits": {**(data.get("limits") or {}), "questions": questions}}
    return written(folder, data)


def asked(run: Path) -> list[str]:
    found: list[str] = json.loads((run / "plan.json").read_text(encoding="utf-8"))["questions"]
    return found


def alone(run: Path, question: str, path: Path, home: Path) -> Took:
    """Return what one question takes by itself, as its stages and scores are called directly."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    arguments = [str(run), question, data["dataset"], ",".join(data["metrics"]), *states(run)]
    _, printed = ran([sys.executable, "-c", ALONE, *arguments], ROOT, {"RAG_LAB_HOME": str(home)})
    return Took(*json.loads(printed.splitlines()[-1]))


def measure(path: Path, folder: Path, questions: int) -> dict[str, Any]:
    fewer, more = (experiment(path, folder, n) for n in (questions, questions + 1))
    home, run, other = folder / "home", folder / "run", folder / "other"
    first = swept(fewer, run, home)
    shutil.copytree(home, folder / "copy")
    second = swept(more, other, home)
    (new,) = set(asked(other)) - set(asked(run))
    work = alone(other, new, more, folder / "copy")
    again = swept(fewer, folder / "again", home)
    beyond = {
        "wall": 100 * (second.wall_s - work.wall_s) / first.wall_s,
        "cpu": 100 * (second.cpu_s - work.cpu_s) / first.cpu_s,
    }
    return {
        "questions": questions,
        "variants": len(states(run)),
        "first": first.told(),
        "one_more": second.told(),
        "question_work": work.told(),
        "again": again.told(),
        "beyond": {name: round(percent, 1) for name, percent in beyond.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", type=Path, nargs="?", default=DEMO)
    parser.add_argument("--questions", type=int, default=100)
    argument(parser)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(given.experiment.resolve(), Path(folder), given.questions)
    names = {
        "first": f"{given.questions} questions, cold",
        "one_more": f"then {given.questions + 1}",
        "question_work": "the work of that question",
        "again": f"{given.questions} again, all remembered",
    }
    rows = [[name, found[part]["wall_s"], found[part]["cpu_s"]] for part, name in names.items()]
    tell("one_more", found, ["", "seconds", "processor s"], rows, given.page)


if __name__ == "__main__":
    main()
