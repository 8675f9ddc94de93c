"""How long this machine works on a plan beside the calls of chat models: embedding, notebooks, scores and report.

What a sweep took of each is kept among the rates; until one has been measured here, it is assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_lab.experiment.forecast.foreseen_work import Work
from rag_lab.experiment.forecast.rates import Key, Rate
from rag_lab.experiment.manifest import VariantState

if TYPE_CHECKING:
    from rag_lab.experiment.plan import Plan

EMBEDDING, NOTEBOOKS, REPORT = "embedding", "notebooks", "report"
_CHARS = 1000  # of text, that a rate of embedding is told for
_EMBEDDING_S = 0.08  # for so many characters: a small model of six layers on one core
_VARIANT_S, _QUESTION_S = 3.0, 0.003  # that a notebook takes with a search by words, and a question in it
_RUN_S, _CARD_S = 5.0, 0.002  # that start and report of a sweep take, and a question of one variant in the report
_UNITS = 1000  # of a rate's `n` are what is assumed to take a second


@dataclass(frozen=True, slots=True)
class MachineMinutes:
    """Minutes of one variant after the other; `assumed` names what no sweep has measured here."""

    embedding: float
    notebooks: float
    report: float
    assumed: tuple[str, ...]

    @property
    def total(self) -> float:
        """All of them."""
        return self.embedding + self.notebooks + self.report


def machine_minutes(plan: Plan, work: Iterable[Work], rates: Mapping[Key, Rate]) -> MachineMinutes | None:
    """Return the minutes of a plan with this work to do; None for a race, whose rounds nobody knows before.

    Variants that a run folder holds already are counted as if they ran.
    """
    if plan.rounds:
        return None
    chars: dict[str, int] = {}
    for row in work:
        chars[row.model] = chars.get(row.model, 0) + row.chars_to_embed
    to_embed = {model: n for model, n in chars.items() if n}
    assumed = [] if all((EMBEDDING, model) in rates for model in to_embed) else [EMBEDDING]
    assumed += [part for part in (NOTEBOOKS, REPORT) if (part, "") not in rates]
    n_variants, n_asked = len(plan.variants), len(plan.questions) * plan.experiment.repeats
    return MachineMinutes(
        sum(n / _CHARS * _per_unit(rates.get((EMBEDDING, model)), _EMBEDDING_S) for model, n in to_embed.items()) / 60,
        _expected_s(n_variants, n_asked) * _factor(rates.get((NOTEBOOKS, ""))) / 60,
        _expected_report_s(n_variants, n_asked) * _factor(rates.get((REPORT, ""))) / 60,
        tuple(assumed),
    )


def machine_rates(plan: Plan, states: Sequence[VariantState], report_s: float, *, called: bool) -> list[Rate]:
    """Return what a sweep has measured; its notebooks where all ran now, and none waited for a chat model.

    Args:
        plan: that was swept.
        states: how its variants ended.
        report_s: seconds that its start, its scores and its report took.
        called: whether any variant asked a chat model.
    """
    embedded: dict[str, tuple[int, float]] = {}
    for state in states:
        made = (state.record or {}).get("embedded") if not state.resumed else None
        if made:
            chars, seconds = embedded.get(made["model"], (0, 0.0))
            embedded[made["model"]] = (chars + int(made["chars"]), seconds + float(made["seconds"]))
    rates = [
        Rate(EMBEDDING, model, chars // _CHARS, seconds)
        for model, (chars, seconds) in embedded.items()
        if chars >= 50 * _CHARS  # of less, loading the model is most
    ]
    n_variants, n_asked = len(plan.variants), len(plan.questions) * plan.experiment.repeats
    if called or any(state.status != "ok" or state.resumed for state in states):
        return rates
    embedding_s = sum(seconds for _, seconds in embedded.values())
    notebooks_s = max(0.0, sum(state.seconds for state in states) - embedding_s)
    return [
        *rates,
        Rate(NOTEBOOKS, "", round(_expected_s(n_variants, n_asked) * _UNITS), notebooks_s),
        Rate(REPORT, "", round(_expected_report_s(n_variants, n_asked) * _UNITS), report_s),
    ]


def _expected_s(n_variants: int, n_asked: int) -> float:
    return n_variants * (_VARIANT_S + n_asked * _QUESTION_S)


def _expected_report_s(n_variants: int, n_asked: int) -> float:
    return _RUN_S + n_variants * n_asked * _CARD_S


def _per_unit(rate: Rate | None, assumed_s: float) -> float:
    return assumed_s if rate is None else rate.seconds / rate.n


def _factor(rate: Rate | None) -> float:
    """Return how much longer than assumed it took."""
    return 1.0 if rate is None else rate.seconds / rate.n * _UNITS
