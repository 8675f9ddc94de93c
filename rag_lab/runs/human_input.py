"""What people add to a run: margins (how much worse a variant may be and still be left out), preferences and ratings.

A margin counts where it was declared before anything was scored. One that came later, when the scores could be looked
at, is *post hoc*, and stays so. Preferences are a file of the run folder that only grows: a line a choice, a line where
one is undone.

Ratings of answers are `labels.jsonl`, a line a rating: {question_id, shown, rating, by, made, note, star}. `shown` is
the digest of the answer that was read, so that one rating holds for all variants that gave this answer. The last rating
of a person on an answer counts. `labels_asked.json` names what was drawn for the main comparison: only labels of such a
draw can correct a judge.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from rag_lab._kit.section import adapter_of
from rag_lab._kit.wording import counted, listing
from rag_lab.errors import ConfigError, RagLabError, unknown_name
from rag_lab.evaluation.metric import MetricInfo
from rag_lab.redaction import redact_value
from rag_lab.runs.run_folder import DONE_FILE, MANIFEST_FILE, RunFolder, strict_json

NOTHING_MEASURED = "Labels, or a metric of quality, were added after a first run, which had none"


def margin_problems(margins: Mapping[str, float], infos: Mapping[str, MetricInfo | None]) -> list[str]:
    """Return a sentence for each margin that cannot be, of the metrics of `infos`; None where no range is known."""
    problems = []
    for metric, margin in margins.items():
        if metric not in infos:
            problems.append(f"margin: {unknown_name('metric', metric, infos)}")
            continue
        info = infos[metric]
        low, high = (info.low, info.high) if info else (None, None)
        width = None if low is None or high is None else high - low
        allowed = "a number above 0" + ("" if width is None else f" and at most {width:g}")
        problem = ""
        if not math.isfinite(margin) or margin <= 0:
            problem = "is no loss that could be borne"
        elif width is not None and margin > width:
            problem = f"is wider than the metric's range, {low:g} to {high:g}, so that nothing could fail it"
        if problem:
            problems.append(f"margin: {metric} = {margin:g} {problem}; give {allowed}.")
    return problems


def parse_margins(texts: Iterable[str]) -> dict[str, float]:
    """Return the margins written as `METRIC=VALUE`; one error names each that is not written so."""
    margins, problems = {}, []
    for text in texts:
        metric, _, value = text.rpartition("=")
        try:
            margins[metric.strip()] = float(value)
        except ValueError:
            metric = ""
        if not metric.strip():
            problems.append(f"--margin takes METRIC=VALUE, as in retrieval.ndcg@5=0.05, got {redact_value(text)!r}")
    if problems:
        raise ConfigError("; ".join(problems) + ".")
    return margins


def with_margins(run: RunFolder, margins: Mapping[str, float]) -> RunFolder:
    """Return the run with margins that somebody gave when it had been run; nothing is recorded."""
    if problems := margin_problems(margins, {metric: run.metric(metric) for metric in run.metrics}):
        raise ConfigError(" ".join(problems))
    late = [metric for metric, margin in margins.items() if run.margins.get(metric) != margin]
    known = tuple(dict.fromkeys([*run.post_hoc_margins, *late]))
    return replace(run, margins={**run.margins, **margins}, post_hoc_margins=known)


def dated(run: RunFolder, replaced: Path | None = None) -> RunFolder:
    """Return the plan of a run that is to start, or to replace a finished one, with what is post hoc in it marked.

    That are margins that the folder has no record of, or another value, though a variant in it is whole; what else
    decides what is concluded and was changed then (the primary metric, the pairs of variants that were there, whether
    it is strict); and what was post hoc before.
    """
    if replaced is not None:
        is_scored = (replaced / MANIFEST_FILE).is_file()
    else:
        is_scored = any(any(run.path.glob(f"{where}variants/*/{DONE_FILE}")) for where in ("", "*/"))
    if not is_scored:
        return run
    try:
        before = RunFolder.open(replaced or run.path)
    except RagLabError:  # what was declared cannot be known any more
        return replace(run, post_hoc_margins=tuple(run.margins), changed_late=())
    was, decides = _primary(before), _primary(run)
    late = [
        metric
        for metric, margin in run.margins.items()
        if metric in before.post_hoc_margins or (was is not None and before.margins.get(metric) != margin)
    ]
    changed = list(before.changed_late)
    if was != decides:
        changed.append("the primary metric" if was else NOTHING_MEASURED)
    known = {one.variant_id for one in before.variants} & {one.variant_id for one in run.variants}
    declared = ({pair for pair in one.pairs if known.issuperset(pair)} for one in (before, run))
    if next(declared) != next(declared):
        changed.append("the pairs")
    if before.strict != run.strict:
        changed.append("strict")
    return replace(run, post_hoc_margins=tuple(late), changed_late=tuple(dict.fromkeys(changed)))


def _primary(run: RunFolder) -> str | None:
    """Return the first metric that is no cost: without labels there may be none."""
    infos = {metric: run.metric(metric) for metric in run.metrics}
    return next((metric for metric, info in infos.items() if info is None or not info.is_cost), None)


def post_hoc_sentence(run: RunFolder) -> str:
    """Say which margins, and what else, are post hoc, or ''."""
    late = [f"the margin of {metric}" for metric in run.post_hoc_margins]
    late += [one for one in run.changed_late if one != NOTHING_MEASURED]
    if late:
        are = f"{listing(late)} {'is' if len(late) == 1 else 'are'}"
        return f"{are[:1].upper()}{are[1:]} post hoc: declared or changed when variants of this run had been scored."
    if NOTHING_MEASURED in run.changed_late:
        return f"{NOTHING_MEASURED}. That is fine for exploring; confirm on new questions."
    return ""


PREFERENCES_FILE = "preferences.jsonl"
Choice = Literal["left", "right", "same", "skip", "undo"]
CHOICES: tuple[Choice, ...] = get_args(Choice)


@dataclass(frozen=True, slots=True)
class Preference:
    """One choice between what two variants did with a question."""

    question_id: str
    left: str  # the variant that was shown on the left
    right: str
    choice: Choice
    shown: str  # digest of what both sides showed; a choice between other texts is no choice between these
    made: str = ""  # when, in ISO 8601

    @property
    def preferred(self) -> str | None:
        """The variant that was preferred; None where none was."""
        return {"left": self.left, "right": self.right}.get(self.choice)

    @property
    def about(self) -> tuple[str, frozenset[str]]:
        """The question and the pair of variants."""
        return self.question_id, frozenset((self.left, self.right))


def read_preferences(run: Path) -> list[Preference]:
    """Return the choices that stand in a run folder, in order; of several on one question and pair the last.

    What was undone, and a line that a crash has cut, is left out.
    """
    try:
        lines = (run / PREFERENCES_FILE).read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    choices: list[Preference] = []
    for line in lines:
        try:
            one = adapter_of(Preference).validate_python(strict_json(line))
        except ValueError:
            continue
        if one.choice != "undo":
            choices.append(one)
        elif undone := next((earlier for earlier in reversed(choices) if earlier.about == one.about), None):
            choices.remove(undone)
    last = {one.about: one for one in choices}
    return [one for one in choices if one is last[one.about]]


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


def add_record(run: Path, record: Preference | AnswerLabel) -> None:
    """Write a choice or a rating behind those that are there, at once and whole.

    A choice `undo` takes back the last on its question and pair.
    """
    line = json.dumps(asdict(record), ensure_ascii=False).encode() + b"\n"
    with (run / (PREFERENCES_FILE if isinstance(record, Preference) else LABELS_FILE)).open("ab+") as file:
        if file.tell():  # a line of its own also where a crash has cut the last one
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else b"\n" + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


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
                add_record(run, one)
    return len(known) - n_known, problems


def read_asked(run: Path) -> Asked | None:
    """Return what was drawn; None where nothing was, or the file is no such draw."""
    try:
        found: Asked = adapter_of(Asked).validate_python(strict_json((run / ASKED_FILE).read_bytes()))
        return found
    except (FileNotFoundError, ValueError):
        return None
