"""What drafting leaves in the folder of a data set, and the review of its drafts by people.

A line an object:

- `questions.jsonl`: the project's lines. A drafted one has the tags `drafted` and its kind, evidence with quotes, and
  `draft`: {model, prompt, kind, span, section, language, wording, overlap, bm25_rank, passage, checks}. Lines that no
  model drafted, and drafts with a `review`, stay as they are; the other drafts are written anew.
- `fallen.jsonl`: the same keys, and `fell`: {filter, reason}. What fell by `review` stays, and is not drafted again.
- `topics.jsonl`: topics for the report writer: `question` is the topic, `answers` are the facts that a report must
  state, `evidence` has a quote for each.
- `places.jsonl`, without a model: places worth asking about, the first ones first: {source, page, section, span,
  language, names, passage}.

`review` of a line has a verdict a person: {anna: {verdict, made, class}}. A draft falls where half of its reviewers, or
more, drop it: it then stands in `fallen.jsonl`, and comes back where the majority changes. Each reviewer sees the
drafts as they are, and not what others found.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from rag_lab._kit.digest import whole_file
from rag_lab.data.dataset import Dataset
from rag_lab.data.questions_file import QUESTIONS_FILE, question_line
from rag_lab.errors import ConfigError, DatasetError, unknown_name
from rag_lab.questions.drafting import DraftedSet
from rag_lab.questions.writer import DRAFTED, VERSION, Draft, Place
from rag_lab.records import QUERY_CLASSES, Question
from rag_lab.statistics.shares import krippendorff_alpha

FALLEN_FILE, TOPICS_FILE, PLACES_FILE, README_FILE = "fallen.jsonl", "topics.jsonl", "places.jsonl", "README.md"
REVIEW = "review"  # the key of a line that a person has seen, and the filter by which he or she let it fall
_TITLE = "## Drafted questions"
GOOD_FOR = (
    "Drafted questions are good for ranking retrieval variants. They are not good for absolute quality, as people ask "
    "harder ones, and not for comparing readers, as a model favours its own kind (arXiv 2411.19710, 2508.11758)."
)
Line = dict[str, Any]


def settled(dataset: Dataset) -> tuple[dict[str, Line], dict[str, Line], list[Question]]:
    """Return the lines of questions.jsonl and fallen.jsonl that stay, and the questions that need no second one."""
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
    for n, line in enumerate(text.split("\n"), start=1):
        try:
            found |= {line: dict(json.loads(line))} if line.strip() else {}
        except (ValueError, TypeError):
            raise DatasetError(f"{path}, line {n} is no JSON object; mend it, as lines of yours are kept.") from None
    return found


def write_lines(path: Path, lines: Iterable[Line | str]) -> None:
    """Write lines, as they stand or as objects, whole in place of those of a file."""
    with whole_file(path) as partial:
        texts = (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines)
        partial.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8", newline="\n")


Verdict = Literal["keep", "drop", ""]
_SUSPECT = 10  # verdicts of one person that are all to keep


def drafts(dataset: Dataset) -> list[Line]:
    """Return the lines of drafts, those that fell by a review among them, in the order of their files."""
    standing = [line for line in read_lines(dataset.path / QUESTIONS_FILE).values() if "draft" in line]
    known = {line.get("id") for line in standing}
    fallen = read_lines(dataset.path / FALLEN_FILE).values()
    return standing + [
        line for line in fallen if line.get("fell", {}).get("filter") == REVIEW and line.get("id") not in known
    ]


def verdict_of(line: Line, by: str) -> Line:
    """Return what a person found of a draft, {verdict, made, class}; empty where nothing."""
    found = line.get(REVIEW, {}).get(by, {})
    return found if isinstance(found, dict) else {}


def write_verdict(
    dataset: Dataset, name: str, by: str, verdict: Verdict, question: str = "", answer: str = "", query_class: str = ""
) -> str:
    """Write a person's verdict ('': none) of a draft, and changes; return it, `edit` where words were changed."""
    if verdict not in get_args(Verdict):
        raise ConfigError(unknown_name("verdict", str(verdict), ["keep", "drop"]))
    if query_class and query_class not in QUERY_CLASSES:
        raise ConfigError(unknown_name("class", query_class, QUERY_CLASSES))
    standing = read_lines(dataset.path / QUESTIONS_FILE)
    fallen = read_lines(dataset.path / FALLEN_FILE)
    both = {str(line.get("id")): line for line in (*fallen.values(), *standing.values())}
    if name not in both:
        raise ConfigError(unknown_name("draft", name, both))
    line = both[name]
    found: str = verdict
    changes: dict[str, Any] = {"question": question.strip()} if question.strip() else {}
    changes |= {"answers": [answer.strip(), *line.get("answers", [])[1:]]} if answer.strip() else {}
    changes |= {"class": query_class} if query_class else {}
    changes = {key: value for key, value in changes.items() if line.get(key) != value}
    if verdict == "keep" and changes:
        if "question" in changes:
            line.setdefault("draft", {}).setdefault("written", line["question"])
        line |= changes
        found = "edit" if changes.keys() - {"class"} else found
    reviews = {who: each for who, each in line.get(REVIEW, {}).items() if who != by}
    if verdict:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        reviews[by] = {"verdict": found, "made": now, "class": line.get("class")}
    line.pop(REVIEW, None)
    line |= {REVIEW: reviews} if reviews else {}
    dropped = [who for who in reviews if verdict_of(line, who).get("verdict") == "drop"]
    line.pop("fell", None)
    receiver, files = QUESTIONS_FILE, {QUESTIONS_FILE: standing, FALLEN_FILE: fallen}
    if reviews and 2 * len(dropped) >= len(reviews):
        line["fell"] = {"filter": REVIEW, "reason": f"dropped by {', '.join(dropped)}"}
        receiver = FALLEN_FILE
    # The file that receives the line first: where this is interrupted it stands in both, and none is missing.
    for file in sorted(files, key=lambda one: one != receiver):
        lines = [line if each.get("id") == name else text for text, each in files[file].items()]
        if file == receiver:
            write_lines(dataset.path / file, lines if line in lines else [*lines, line])
        elif line in lines:
            write_lines(dataset.path / file, [one for one in lines if one is not line])
    return found


def review_sentences(lines: Sequence[Line]) -> list[str]:
    """Return how many drafts each person has seen and dropped, how far people agree, and what is to be doubted."""
    people = dict.fromkeys(who for line in lines for who in line.get(REVIEW, {}) if verdict_of(line, who))
    found = []
    for who in people:
        verdicts = [one["verdict"] for line in lines if (one := verdict_of(line, who))]
        counts = ", ".join(f"{verdicts.count(name)} {name}" for name in ("keep", "edit", "drop"))
        found.append(f"{who}: {len(verdicts)} of {len(lines)} reviewed ({counts}).")
        if len(verdicts) >= _SUSPECT and set(verdicts) == {"keep"}:
            found.append(f"All {len(verdicts)} verdicts of {who} are keep: were the questions read?")
    for what, key in (("keep or drop", "verdict"), ("the class", "class")):
        units = [[verdict_of(line, who).get(key) for who in people if verdict_of(line, who)] for line in lines]
        units = [["drop" if one == "drop" else "keep" for one in unit] for unit in units] if key == "verdict" else units
        both = sum(len(unit) > 1 for unit in units)
        if both and (alpha := krippendorff_alpha(units)) is not None:
            found.append(f"Agreement on {what}, of {both} that several reviewed: Krippendorff's alpha {alpha:.2f}.")
    return found
