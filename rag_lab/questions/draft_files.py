"""What drafting leaves in the folder of a data set: its questions, what fell, topics, and what they are good for.

A line an object:

- `questions.jsonl`: the project's lines. A drafted one has the tags `drafted` and its kind, evidence with quotes, and
  `draft`: {model, prompt, kind, span, section, language, wording, overlap, bm25_rank, passage, checks}. Lines that no
  model drafted, and drafts with a `review`, stay as they are; the other drafts are written anew.
- `fallen.jsonl`: the same keys, and `fell`: {filter, reason}. What fell by `review` stays, and is not drafted again.
- `topics.jsonl`: topics for the report writer: `question` is the topic, `answers` are the facts that a report must
  state, `evidence` has a quote for each.
- `places.jsonl`, without a model: places worth asking about, the first ones first: {source, page, section, span,
  language, names, passage}.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rag_lab._kit.digest import whole_file
from rag_lab.data.dataset import Dataset
from rag_lab.data.questions_file import QUESTIONS_FILE, question_line
from rag_lab.questions.drafting import DraftedSet
from rag_lab.questions.places import Place
from rag_lab.questions.writer import DRAFTED, VERSION, Draft
from rag_lab.records import Question

FALLEN_FILE, TOPICS_FILE, PLACES_FILE, README_FILE = "fallen.jsonl", "topics.jsonl", "places.jsonl", "README.md"
REVIEW = "review"  # the key of a line that a person has seen, and the filter by which he or she let it fall
_TITLE = "## Drafted questions"
GOOD_FOR = (
    "Drafted questions are good for ranking retrieval variants. They are not good for absolute quality, as people ask "
    "harder ones, and not for comparing readers, as a model favours its own kind (arXiv 2411.19710, 2508.11758)."
)
Line = dict[str, Any]


def settled(dataset: Dataset) -> tuple[list[Line], list[Line], list[Question]]:
    """Return the lines of questions.jsonl and fallen.jsonl that stay, and the questions that need no second one."""
    lines = _lines(dataset.path / QUESTIONS_FILE)
    # No draft of a model's, nor a question that was made of a heading and that nobody has labelled.
    stubs = [
        line for line in lines if DRAFTED in line.get("tags", ()) and not line.get("evidence", line.get("answers"))
    ]
    kept = [line for line in lines if REVIEW in line or not ("draft" in line or line in stubs)]
    fallen = [line for line in _lines(dataset.path / FALLEN_FILE) if line.get("fell", {}).get("filter") == REVIEW]
    names = {line.get("id") for line in lines if line not in kept}
    return kept, fallen, [question for question in dataset.questions if question.question_id not in names]


def write_set(dataset: Dataset, drafted: DraftedSet, model: str) -> None:
    """Write the files of a set into its folder; what stays is taken from there."""
    kept, fallen, _ = settled(dataset)
    reviewed = {line.get("id") for line in (*kept, *fallen)}

    def new(drafts: Iterable[Draft]) -> list[Line]:
        found = []
        for one in drafts:
            how = {"model": model, "prompt": VERSION, "kind": one.kind, **_place(one.places[0]), "wording": one.wording,
                   "overlap": one.overlap, "bm25_rank": one.bm25_rank, "checks": one.checks,
                   "passage": "\n\n".join(place.chunk.text for place in one.places)}  # fmt: skip
            found += [{**question_line(one.question, dataset.page_base), "draft": how}]
        return [line for line in found if line["id"] not in reviewed]

    reasons = {draft.name: {"filter": name, "reason": why} for draft, name, why in drafted.fallen}
    fell = [line | {"fell": reasons[line["id"]]} for line in new(draft for draft, _, _ in drafted.fallen)]
    _write(dataset.path / QUESTIONS_FILE, [*kept, *new(drafted.stood)])
    _write(dataset.path / FALLEN_FILE, [*fallen, *fell])
    _write(dataset.path / TOPICS_FILE, new(drafted.topics))
    readme = dataset.path / README_FILE
    before = readme.read_text(encoding="utf-8").split(_TITLE)[0] if readme.exists() else ""
    with whole_file(readme) as partial:
        text = f"{before}{_TITLE}\n\nBy {model}, prompt {VERSION}.\n\n```\n{drafted}\n```\n\n{GOOD_FOR}\n"
        partial.write_text(text, encoding="utf-8")


def write_places(dataset: Dataset, places: Sequence[Place]) -> Path:
    """Write the places worth asking about, for somebody who writes the questions by hand."""
    path = dataset.path / PLACES_FILE
    _write(path, [{**_place(one), "names": one.entities, "passage": one.chunk.text} for one in places])
    return path


def _place(place: Place) -> Line:
    one = place.chunk
    return {"source": one.source, "page": one.page, "section": one.section, "span": place.span,
            "language": place.language}  # fmt: skip


def _lines(path: Path) -> list[Line]:
    text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _write(path: Path, lines: Sequence[Line]) -> None:
    with whole_file(path) as partial:
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        partial.write_text(text, encoding="utf-8", newline="\n")
