"""What people rated of the answers of a run: `labels.jsonl` in its folder, a line a rating, and which were asked for.

A line: {question_id, shown, rating, by, made, note, star}. `shown` is the digest of the answer that was read,
so that one rating holds for all variants that gave this answer. The last rating of a person on an answer counts.
`labels_asked.json` names what was drawn for the main comparison: only labels of such a draw can correct a judge.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from rag_lab._kit.config_file import adapter_of
from rag_lab._kit.wording import counted, listing
from rag_lab.errors import ConfigError
from rag_lab.runs.human_input import add_line
from rag_lab.runs.run_folder import strict_json

LABELS_FILE, ASKED_FILE = "labels.jsonl", "labels_asked.json"
Rating = Literal["up", "down", "skip", ""]
RATINGS: tuple[Rating, ...] = get_args(Rating)
_SUSPECT = 10  # ratings of one person that are all the same


@dataclass(frozen=True, slots=True)
class AnswerLabel:
    """One rating: `up` for a good answer, `down`, `skip` where a person cannot tell, `` for one that is taken back."""

    question_id: str
    shown: str
    rating: Rating
    by: str
    made: str  # ISO 8601
    note: str = ""
    star: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The question and the answer."""
        return self.question_id, self.shown


@dataclass(frozen=True, slots=True)
class Asked:
    """The draw: of which two variants, by which metric, how many labels, and the answers in the order to be read."""

    variant_id: str
    against: str
    metric: str
    n: int
    answers: tuple[tuple[str, str], ...]  # question, and digest of what is shown


def read_labels(path: Path) -> tuple[list[AnswerLabel], list[str]]:
    """Return the ratings of a file in order, and a sentence for each line that is none."""
    labels, problems = [], []
    lines = path.read_bytes().split(b"\n") if path.is_file() else []
    for number, line in enumerate(lines, start=1):
        try:
            labels += [adapter_of(AnswerLabel).validate_python(strict_json(line))] if line.strip() else []
        except ValueError:
            problems.append(f"{path.name}, line {number} is no rating; mend it, or take it out.")
    return labels, problems


def latest(labels: Iterable[AnswerLabel]) -> tuple[list[AnswerLabel], int]:
    """Return the last rating of each person on each answer, and how many came before one that says otherwise."""
    found: dict[tuple[str, str, str], AnswerLabel] = {}
    n_changed = 0
    for one in sorted(labels, key=lambda label: label.made):
        before = found.get((*one.key, one.by))
        n_changed += before is not None and {before.rating, one.rating} == {"up", "down"}
        found[(*one.key, one.by)] = one
    return [one for one in found.values() if one.rating], n_changed


def label_problems(labels: Sequence[AnswerLabel], n_unknown: int, n_changed: int) -> list[str]:
    """Return what makes ratings doubtful, a sentence each; `n_unknown` are of answers that the run does not hold."""
    found = []
    if n_unknown:
        found.append(f"{counted(n_unknown, 'rating')} of answers that these variants did not give: not counted.")
    if n_changed:
        found.append(f"{counted(n_changed, 'answer')} rated twice by one person, the other way: the last one counts.")
    for person in dict.fromkeys(one.by for one in labels):
        ratings = [one.rating for one in labels if one.by == person and one.rating != "skip"]
        if len(ratings) >= _SUSPECT and len(set(ratings)) == 1:
            found.append(f"All {len(ratings)} ratings of {person} are {ratings[0]}: were the answers read?")
    return found


def add_label(run: Path, label: AnswerLabel) -> None:
    """Write a rating behind those that are there."""
    add_line(run / LABELS_FILE, asdict(label))


def merge_labels(run: Path, files: Sequence[Path]) -> tuple[int, list[str]]:
    """Write the ratings of other people's files that are not there yet; return how many, and what is wrong in them.

    Raises:
        ConfigError: naming every file that is not there; nothing is written then.
    """
    if missing := [str(path) for path in files if not path.is_file()]:
        raise ConfigError(f"No such file: {listing(missing)}; give the {LABELS_FILE} of other people.")
    known = set(read_labels(run / LABELS_FILE)[0])
    n_known, problems = len(known), []
    for path in files:
        labels, wrong = read_labels(path)
        problems += [f"{path.parent / sentence}" for sentence in wrong]
        for one in labels:
            if one not in known:
                known.add(one)
                add_label(run, one)
    return len(known) - n_known, problems


def read_asked(run: Path) -> Asked | None:
    """Return what was drawn; None where nothing was, or the file is no such draw."""
    try:
        found: Asked = adapter_of(Asked).validate_python(strict_json((run / ASKED_FILE).read_bytes()))
        return found
    except (FileNotFoundError, ValueError):
        return None
