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
from rag_lab.errors import DatasetError
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


def settled(dataset: Dataset) -> tuple[dict[str, Line], dict[str, Line], list[Question]]:
    """Return the lines of questions.jsonl and fallen.jsonl that stay, and the questions that need no second one.

    A draft without a review goes, and so does what was made of a heading, and nobody has labelled.
    """
    lines, kept = read_lines(dataset.path / QUESTIONS_FILE), {}
    for text, line in lines.items():
        is_stub = DRAFTED in line.get("tags", ()) and not line.get("evidence", line.get("answers"))
        if REVIEW in line or not ("draft" in line or is_stub):
            kept[text] = line
    fallen = read_lines(dataset.path / FALLEN_FILE)
    fallen = {text: line for text, line in fallen.items() if line.get("fell", {}).get("filter") == REVIEW}
    names = {line.get("id") for text, line in lines.items() if text not in kept}
    return kept, fallen, [question for question in dataset.questions if question.question_id not in names]


def write_set(dataset: Dataset, drafted: DraftedSet, model: str) -> None:
    """Write the files of a set into its folder; what stays is taken from there."""
    kept, fallen, _ = settled(dataset)
    reviewed = {line.get("id") for line in (*kept.values(), *fallen.values())}

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
    write_lines(dataset.path / QUESTIONS_FILE, [*kept, *new(drafted.stood)])
    write_lines(dataset.path / FALLEN_FILE, [*fallen, *fell])
    write_lines(dataset.path / TOPICS_FILE, new(drafted.topics))
    readme = dataset.path / README_FILE
    before = readme.read_text(encoding="utf-8").split(_TITLE)[0] if readme.exists() else ""
    write_lines(readme, [f"{before}{_TITLE}\n\nBy {model}, prompt {VERSION}.\n\n```\n{drafted}\n```\n\n{GOOD_FOR}"])


def write_places(dataset: Dataset, places: Sequence[Place]) -> Path:
    """Write the places worth asking about, for somebody who writes the questions by hand."""
    path = dataset.path / PLACES_FILE
    write_lines(path, [{**_place(one), "names": one.entities, "passage": one.chunk.text} for one in places])
    return path


def _place(place: Place) -> Line:
    one = place.chunk
    return {"source": one.source, "page": one.page, "section": one.section, "span": place.span,
            "language": place.language}  # fmt: skip


def read_lines(path: Path) -> dict[str, Line]:
    """Return the lines of a file, as they stand there, with their objects."""
    text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    found: dict[str, Line] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            found |= {line: dict(json.loads(line))} if line.strip() else {}
        except (ValueError, TypeError):
            raise DatasetError(
                f"{path}, line {number} is no JSON object; mend it, as lines of yours are kept."
            ) from None
    return found


def write_lines(path: Path, lines: Iterable[Line | str]) -> None:
    """Write lines, as they stand or as objects, whole in place of those of a file."""
    with whole_file(path) as partial:
        texts = (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines)
        partial.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8", newline="\n")
