"""The box on top of a report: what to use, what to leave out, what cannot be told, what to do next; a line each."""

from collections.abc import Sequence
from dataclasses import dataclass

from rag_lab._kit.wording import signed
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.caveats import measures_cutting
from rag_lab.comparison.findings.conclusions import topics
from rag_lab.comparison.findings.recommendation import Recommendation, recommendation
from rag_lab.comparison.findings.statements import Verdict, module_rows

_FIRST = {"Use ": "Use", "Undecided: ": "Undecided"}
_CAVEATS = {
    "Not read": "Text that the embedding model does not read",
    "Labels": "Labels",
    "Cut-offs": "Unequal depth of text",
    "Clusters": "Clusters of questions",
    "Margin": "Declared late",
    "Run once": "Combinations that are the same",
    "Models": "Failover of models",
    "Answers": "A small model answers",
    "Judge": "The judge",
}  # topics that can change a verdict, and what a chip calls them
_DETAILS = ("Labels", "Modules", "Variants", "Measured", "What changed", "Preferred", "Reach")
_MOST = 6  # variants that a line names


@dataclass(frozen=True, slots=True)
class VerdictBox:
    """What a reader sees first.

    lines: term and sentences, the headline first.
    chips: caveats as (title, sentences); they fold.
    reasons: what the verdict stands on, beside what the lines hold.
    details: sentences with p, wins and losses behind the table; they fold.
    """

    found: Recommendation
    rows: tuple[Verdict, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    chips: tuple[tuple[str, tuple[str, ...]], ...]
    reasons: tuple[str, ...]
    details: tuple[str, ...]


def verdict_box(comparison: Comparison) -> VerdictBox:
    """Return the box of a run; lines of which there is nothing to say are left out."""
    found, rows, by_topic = recommendation(comparison), module_rows(comparison), topics(comparison)
    prefix = next((start for start in _FIRST if found.headline.startswith(start)), "")
    headline = found.headline.removeprefix(prefix)
    prices, base, used = comparison.prices, comparison.run.baseline, found.variant_id
    price = f"{prices[used].text} a question" if used is not None and used in prices else ""
    if price and used != base and base in prices:
        price += f"; with {comparison.called(base)} {prices[base].text}"
    following = [*filter(None, (found.first, found.margin_hint)), *found.labels]
    lines = {
        _FIRST.get(prefix, "Verdict"): [headline[:1].upper() + headline[1:]],
        "Leave out": _named(comparison, [row for row in rows if "may be left out" in row.why or row.word == "worse"]),
        "Cannot tell": _named(comparison, [row for row in rows if row.word in ("cannot tell", "no difference")]),
        "Without scores": _named(comparison, [row for row in rows if row.effect is None]),
        "Answers": list(filter(None, [found.answers])),
        "Price": [f"{price}."] if price else [],
        "Do next": list(dict.fromkeys([*by_topic.get("Next", []), *following])),
    }
    reasons = [line for line in found.reasons if line not in following]
    caveats = {topic: by_topic.pop(topic) for topic in _CAVEATS if topic in by_topic and not comparison.is_unlabelled}
    truncating = measures_cutting(comparison)
    if truncating and "Not read" in caveats:
        caveats["Not read"] = [*truncating, *caveats["Not read"]]
    details = [
        *(one for one in reasons if one not in truncating or "Not read" not in caveats),
        *(sentence for topic in _DETAILS for sentence in by_topic.get(topic, [])),
    ]
    chips = tuple((_CAVEATS[topic], tuple(sentences)) for topic, sentences in caveats.items())
    kept = tuple((term, tuple(sentences)) for term, sentences in lines.items() if sentences)
    return VerdictBox(found, tuple(rows), kept, chips, tuple(reasons), tuple(dict.fromkeys(details)))


def _named(comparison: Comparison, rows: Sequence[Verdict]) -> list[str]:
    """Return one line that names modules or variants, each with its effect or why there is none."""
    named = []
    for row in rows[:_MOST]:
        name = comparison.called(row.variant_id) if row.variant_id else row.name
        named.append(f"{name} {signed(row.effect)}" if row.effect is not None else f"{name}, {row.why}")
        if "may be left out" in row.why:
            named[-1] += f", {row.word} {row.why.partition(':')[0]}"
    return ["; ".join([*named, *([f"{len(rows) - _MOST:,} more"] if len(rows) > _MOST else [])])] if named else []
