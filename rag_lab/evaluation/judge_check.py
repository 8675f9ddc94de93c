"""What a trial of a judge found: numbers, the sentence they come to, and the record of it that is kept."""

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from rag_lab._kit.digest import digest, whole_file
from rag_lab._kit.home import PRIVATE, home
from rag_lab._kit.wording import counted, text_table
from rag_lab.evaluation.metric import model_name
from rag_lab.redaction import NO_FORMULAS, hide_known_json

ALL = "all"  # perturbations together
CHANCE = 0.5
MIN_QUESTIONS = 20  # for a judge to pass: with fewer, an interval is wider than what it should tell
ENOUGH_OBJECTS = 0.9  # below this share of usable replies a metric cannot be believed
_LOG = logging.getLogger(__name__)
FOLDER = "judge_checks"
_COMMAND = "rag-lab judge check"
_FAMILY = re.compile(r"(?:.*[:/])?([a-zA-Z]+)")  # the first letters of a model's name, as `gemma`, `gpt`, `qwen`


@dataclass(frozen=True, slots=True)
class Objects:
    """How often the judge gave a metric what it needs; `reasons` are those of the failures, commonest first."""

    metric: str
    n_scored: int
    n_asked: int
    reasons: tuple[tuple[str, int], ...] = ()

    @property
    def suffices(self) -> bool:
        """Whether nearly all replies could be used."""
        return self.n_scored >= ENOUGH_OBJECTS * self.n_asked


@dataclass(frozen=True, slots=True)
class Discrimination:
    """How well a metric's score tells right answers from perturbed ones: the area under the ROC curve."""

    metric: str
    perturbation: str
    auc: float | None  # None where nothing could be compared
    low: float | None  # of its 95% interval, see `auc_interval`
    high: float | None
    n_questions: int
    n_wrong: int
    reason: str = ""

    @property
    def beats_chance(self) -> bool:
        """Whether the interval lies above one half."""
        return self.low is not None and self.low > CHANCE

    def __str__(self) -> str:
        if self.auc is None:
            return self.reason
        interval = "" if self.low is None else f" [{self.low:.2f}, {self.high:.2f}]"
        return f"{self.auc:.2f}{interval}"


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often a second judgement of the same answer gave the same score, and how far they lay apart on average."""

    metric: str
    n_pairs: int
    exact_share: float | None
    mean_absolute_difference: float | None
    n_failed: int = 0  # pairs of which one judgement, or both, failed

    def __str__(self) -> str:
        if self.exact_share is None or self.mean_absolute_difference is None:
            return "no answer was scored twice"
        apart = f"{self.mean_absolute_difference:.3f} apart on average"
        return f"the same score {self.exact_share:.0%} of the time, {apart} ({self.n_pairs} answers judged twice)"


@dataclass(frozen=True)
class JudgeCheck:
    """A judge on trial: what it was, what it was tried on, and how it did."""

    judge: str
    identity: dict[str, Any]
    dataset: str
    dataset_digest: str
    n_questions: int
    checked_at: str  # ISO 8601, UTC
    objects: tuple[Objects, ...]
    telling: tuple[Discrimination, ...]
    agreement: Agreement
    calls: int
    seconds: float
    ragas: str = ""
    language: str = ""  # of the examples in the prompts; English where empty

    @property
    def passes(self) -> bool:
        """Whether its scores can be believed as far as this trial can tell."""
        return (
            self._does_well
            and min((each.n_questions for each in self._overall), default=MIN_QUESTIONS) >= MIN_QUESTIONS
        )

    @property
    def verdict(self) -> str:
        """Say in a sentence or two whether the judge's scores can be believed."""
        parts = []
        for each in self._overall:
            by, size = f"by {each.metric}", f"(AUC {each}, {counted(each.n_questions, 'question')})"
            if each.auc is None:
                parts.append(f"could not be seen to tell right from wrong {by} ({each.reason})")
            elif each.beats_chance:
                parts.append(f"tells right answers from wrong ones {by} {size}")
            elif each.high is not None and each.high < CHANCE:
                parts.append(f"is worse than chance {by} {size}")
            else:
                compared = "is no better than" if each.n_questions >= MIN_QUESTIONS else "could not be told from"
                parts.append(f"{compared} chance {by} {size}")
        for one in self.objects:
            if not one.suffices:
                why = f", mostly because {one.reasons[0][0]}" if one.reasons else ""
                parts.append(f"gave {one.metric} a usable reply for only {one.n_scored} of {one.n_asked} answers{why}")
        asked, fewest = (
            counted(self.n_questions, "question"),
            min((each.n_questions for each in self._overall), default=MIN_QUESTIONS),
        )
        if fewest < MIN_QUESTIONS:
            if self.n_questions < MIN_QUESTIONS:
                parts.append(f"was tried on too few to pass: {asked}, at least {MIN_QUESTIONS}")
            else:
                few = f"{fewest} of {asked}, at least {MIN_QUESTIONS}"
                parts.append(f"scored a right and a wrong answer to too few to pass: {few}")
        advice = "its scores can be used"
        if not self.passes:
            advice = "do not build on its scores" + (" before it has passed on more" if self._does_well else "")
        return f"{self.judge} {'; it '.join(parts)}: {advice}."

    @property
    def _does_well(self) -> bool:
        return all(each.suffices for each in self.objects) and all(each.beats_chance for each in self._overall)

    def __str__(self) -> str:
        prompts = f", prompts in {self.language}" if self.language else ""
        head = f"{self.judge} on {self.n_questions} questions of {self.dataset}{prompts}"
        effort = f"{self.calls} calls, {self.seconds:.0f} s"
        tables = [text_table(*table) for table in self._tables()]
        return "\n\n".join([f"{head} ({effort})", *tables, f"Agreement with itself: {self.agreement}", self.verdict])

    def _repr_html_(self) -> str:
        tables = ""
        for head, rows in self._tables():
            cells = [[f"<th>{escape(cell)}</th>" for cell in head]]
            cells += [[f"<td>{escape(cell)}</td>" for cell in row] for row in rows]
            lines = ("".join(row) for row in cells)
            tables += f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
        agreement = f"<p>Agreement with itself: {escape(str(self.agreement))}</p>"
        return f'<div class="{NO_FORMULAS}"><p><strong>{escape(self.verdict)}</strong></p>{tables}{agreement}</div>'

    @property
    def _overall(self) -> list[Discrimination]:
        return [each for each in self.telling if each.perturbation == ALL]

    def _tables(self) -> list[tuple[list[str], list[list[str]]]]:
        objects = [
            [o.metric, f"{o.n_scored} of {o.n_asked}", "; ".join(f"{n} x {reason}" for reason, n in o.reasons[:2])]
            for o in self.objects
        ]
        telling = [[t.perturbation, t.metric, str(t), str(t.n_wrong), str(t.n_questions)] for t in self.telling]
        return [
            (["metric", "usable", "commonest failures"], objects),
            (["perturbation", "score", "AUC", "wrong answers", "questions"], telling),
        ]


_CHECK: TypeAdapter[JudgeCheck] = TypeAdapter(JudgeCheck)


def save_check(check: JudgeCheck, folder: Path | str | None = None) -> Path:
    """Write the record where `judge_banner` finds it, below `home()`; return its path."""
    path = _record_path(check.identity, check.language, Path(folder or home()))
    path.parent.mkdir(PRIVATE, parents=True, exist_ok=True)
    with whole_file(path) as partial:
        partial.write_text(hide_known_json(_CHECK.dump_json(check, indent=2).decode()), encoding="utf-8")
    return path


def load_check(
    judge: Mapping[str, Any] | str, folder: Path | str | None = None, language: str = ""
) -> JudgeCheck | None:
    """Return the record of a judge's last trial, by identity or by `provider:name` (the latest); None without one."""
    root = Path(folder or home())
    if not isinstance(judge, str):
        return _read(_record_path(judge, language, root))
    found = [check for path in (root / FOLDER).glob("*.json") if (check := _read(path)) and check.judge == judge]
    found = [check for check in found if check.language == language]
    return max(found, key=lambda check: check.checked_at, default=None)


def judge_banner(judge: Mapping[str, Any] | str, folder: Path | str | None = None, language: str = "") -> str:
    """Return what a report says of a judge, by identity or `provider:name`: its trial's verdict, or that none was."""
    if not judge:  # nothing was judged
        return ""
    name = judge if isinstance(judge, str) else model_name(judge)
    check = load_check(judge, folder, language)
    if check is None:
        command = f"{_COMMAND} {name}{f' --language {language}' if language else ''}"
        return f"The judge {name} was not checked: run `{command}` before its scores are believed."
    prompts = f"prompts in {language}, " if language else ""
    tried = f"{_COMMAND}, {prompts}{check.n_questions} questions of {check.dataset}, {check.checked_at[:10]}"
    again = f" Asked again: {check.agreement}." if check.agreement.n_pairs else ""
    return f"{check.verdict} ({tried}){again}"


def judge_warnings(judge: str, writers: Iterable[str], design: str) -> list[str]:
    """Return what to doubt in a judge beside its trial; `design` is that of the run if it gives the main metric."""
    families = {found[1].lower() for one in writers if (found := _FAMILY.search(one))}
    found, warnings = _FAMILY.search(judge), list[str]()
    if found and found[1].lower() in families:
        family = f"The judge {judge} is of the family of a writer, {found[1]}"
        warnings.append(f"{family}, and models favour their own: take another judge.")
    if design in ("racing", "staged", "optuna"):
        warnings.append("The search chooses by this judge alone, whom its choice may please more than people.")
    return warnings


def _record_path(identity: Mapping[str, Any], language: str, root: Path) -> Path:
    return root / FOLDER / f"{digest({'judge': dict(identity), 'language': language})}.json"


def _read(path: Path) -> JudgeCheck | None:
    if not path.is_file():
        return None
    try:
        return _CHECK.validate_json(path.read_bytes())
    except ValueError:
        _LOG.warning("%s is no record of a judge's trial: run `%s` again.", path, _COMMAND)
        return None
