"""The public sets that are measured on, as data sets of this project; none is part of it."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from beside.sweeps import RAG_LAB
from beside.took import ran

ROOT = Path(__file__).resolve().parents[2]


def public(name: str) -> Path:
    """Return where a public set lies: below `$RAG_LAB_DATA`, or `shared/data` beside the checkout."""
    data = Path(os.environ.get("RAG_LAB_DATA") or ROOT.parent / "shared/data")
    if not (data / name).exists():
        sys.exit(f"There is no {name} in {data}: name a folder that holds it by RAG_LAB_DATA.")
    return data / name


def imported(given: Path, folder: Path) -> Path:
    """Import a set that others published into `folder` and return that; one in this project's format is itself."""
    if (given / "dataset.yaml").is_file():
        return given
    ran([*RAG_LAB, "datasets", "import", str(given), str(folder)], ROOT, {"RAG_LAB_HOME": f"{folder}_home"})
    return folder


def cut(given: Path, folder: Path, questions: int, documents: int) -> Path:
    """Write the first judged questions of a BEIR folder, with what answers them and other documents up to a number.

    A question is left out where what answers it would be more documents than there may be.
    """
    answers = _judged(given)
    kept: dict[str, list[str]] = {}
    needed: dict[str, None] = {}
    for question, found in answers.items():
        if len(kept) < questions and len(needed | dict.fromkeys(found)) <= documents:
            kept[question] = found
            needed |= dict.fromkeys(found)
    corpus = {row["_id"]: row for row in _rows(given / "corpus.jsonl")}
    chosen = list(needed | dict.fromkeys(corpus))[:documents]
    if len(kept) < questions or len(chosen) < documents:
        sys.exit(f"{given} gives {len(kept)} questions and {len(chosen)} documents of the {questions} and {documents}.")
    (folder / "qrels").mkdir(parents=True)
    _write(folder / "corpus.jsonl", (corpus[name] for name in chosen))
    _write(folder / "queries.jsonl", (row for row in _rows(given / "queries.jsonl") if row["_id"] in kept))
    lines = [f"{question}\t{document}\t1\n" for question, found in kept.items() for document in found]
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines), encoding="utf-8")
    return folder


def _judged(given: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for file in sorted((given / "qrels").glob("*.tsv")):
        for line in file.read_text(encoding="utf-8").splitlines()[1:]:
            question, document, grade = line.split("\t")
            if int(grade) > 0:
                found.setdefault(question, []).append(document)
    return found


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


def _write(path: Path, rows: Iterator[Mapping[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
