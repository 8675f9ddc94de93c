"""The review of drafted questions by people: each draft is kept, edited or dropped, with who and when.

`review` of a line has a verdict a person: {anna: {verdict, made, class}}. A draft falls where half of its reviewers, or
more, drop it: it then stands in `fallen.jsonl`, and comes back where the majority changes. Each reviewer sees the
drafts as they are, and not what others found.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from rag_lab.data.dataset import Dataset
from rag_lab.data.questions_file import QUESTIONS_FILE
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.questions.draft_files import FALLEN_FILE, REVIEW, Line, read_lines, write_lines
from rag_lab.records import QUERY_CLASSES
from rag_lab.statistics.shares import krippendorff_alpha

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
    """Write what a person found of the draft with an id, and what he or she changed in it; return the verdict.

    Kept with other words it is `edit`; its first words stay in `draft.written`. '' takes a verdict back.
    """
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
