"""What can be said of a comparison where a margin was given: one of five statements, in a word and in a sentence.

*better*; *worse*; *worse, but by less than the margin*; *not worse by more than the margin*, with which something may
be left out where that saves something; *cannot tell*. Of an addition, which costs more and saves nothing, the last but
one is turned round: it is *not better* by more than the margin, and may be left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from rag_lab._kit.wording import counted, listing, p_text, short_verdict
from rag_lab.comparison.advice.not_worse import NotWorse
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.run_tables import RunTables
from rag_lab.statistics.effects.factors import level_text

Said = Literal["better", "worse", "not worse", "not better", "cannot tell"]
_OFF = ("none", None, False, 0, "")
_OFF_LEVELS = frozenset(map(level_text, _OFF))


def statement(verdict: str, found: NotWorse | None, removed: str = "") -> tuple[Said, str]:
    """Return what is said of a comparison in a word, and how that reads on; "" where nothing is to be added.

    Args:
        verdict: of the two-sided test, `better`, `worse` or anything else.
        found: by the margin; None where there is none.
        removed: what the variant does without; see `removed`.
    """
    if verdict == "better" or verdict == "worse":
        by = ""
        if found is not None and is_lesser(verdict, found):
            may_go = f": {_may_go(found, removed)}" if found.is_addition else ""
            by = f"but by less than {found.margin:g}{may_go}"
        return ("better" if verdict == "better" else "worse"), by
    if found is None or not found.is_found:
        return "cannot tell", ""
    told = f"by more than {found.margin:g}"
    if found.is_addition or found.price.is_saving:
        told += f": {_may_go(found, removed)}"
    return ("not better" if found.is_addition else "not worse"), told


def difference_said(comparison: Comparison, row: Mapping[str, Any]) -> str:
    """Return what is said of a row of `differences`, by test, interval and margin, as for the first table."""
    metric, pair = str(row["metric"]), (str(row["variant_id"]), str(row["against"]))
    word, why = statement(str(row["verdict"]), comparison.not_worse.get((metric, *pair)), removed(comparison, *pair))
    return short_verdict(str(row["verdict"])) if word == "cannot tell" else f"{word} {why}".rstrip()


def is_lesser(verdict: str, found: NotWorse | None) -> bool:
    """Tell whether a finding, `better` or `worse`, is shown to be smaller than the margin."""
    return found is not None and found.is_found and verdict == ("better" if found.is_addition else "worse")


def _may_go(found: NotWorse, removed: str) -> str:
    return "it may be left out" if found.is_addition else instead(removed)


def instead(removed: str) -> str:
    """Say what follows from a variant that is not worse and saves something: `removed` is what it does without."""
    return f"{removed} may be left out" if removed else "it may be used instead"


def removed(tables: RunTables, variant: str, against: str) -> str:
    """Name what a variant does without, as `rerank.name=query_likelihood`; "" where it changes anything else."""
    changes = {plan.variant_id: plan.changes for plan in tables.variants}
    ours, theirs = changes.get(variant, {}), changes.get(against, {})
    base = tables.baseline_values
    pairs = {key: (theirs.get(key, base.get(key)), ours.get(key, base.get(key))) for key in {**theirs, **ours}}
    gone = {key: was for key, (was, now) in pairs.items() if was != now}
    if not gone or any(pairs[key][1] not in _OFF for key in gone):
        return ""
    return listing([f"{key}={was}" for key, was in gone.items()])


def removed_level(factor: str, level: str, first: str) -> str:
    """Name what a level of a factor does without, as `removed` does of a variant; "" where it changes anything else."""
    return f"{factor}={first}" if level in _OFF_LEVELS else ""


def margin_sentence(name: str, against: str, metric: str, found: NotWorse, removed: str) -> str:
    """Say in full that what is called `name` is not worse, or adds less, by the margin; only where that was found."""
    p = f"one-sided corrected p {p_text(found.p_corrected)}, {counted(found.n, 'question')}{_failures(found)}"
    if found.is_addition:
        return (
            f"{name} is not better than {against} by more than {found.margin:g} in {metric} ({p}): it may be left "
            f"out, which saves {found.price.told} a question."
        )
    start = f"{name} is not worse than {against} by more than {found.margin:g} in {metric} ({p})"
    if found.price.is_saving:
        return f"{start}: {instead(removed)}, which saves {found.price.told} a question."
    return f"{start}; it {found.price.sentence}."


def _failures(found: NotWorse) -> str:
    return f", of which {found.n_failed} failed and count against it" if found.n_failed else ""
