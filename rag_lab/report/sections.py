"""The sections of a report, which page, Markdown, terminal and notebook show alike, and the box on top of them.

A section is one entry of `SECTIONS`: its texts stand in sections.yaml, and here what it shows. Figures are SVG
elements, each with a text alternative.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from markupsafe import Markup

from rag_lab._kit.config_file import read_shipped
from rag_lab._kit.wording import signed
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings import conclusions, search_sentences, trace_findings, verdict
from rag_lab.comparison.findings.recommendation import Recommendation, recommendation
from rag_lab.comparison.findings.verdict_sentences import Verdict, module_rows
from rag_lab.report import effect_figures, figures, score_tables, study_tables
from rag_lab.report.table import Table
from rag_lab.runs.run_manifest import cost_of

Place = Literal["page", "paper", "markdown", "notebook"]
Group = Literal["Verdict", "Evidence", "Scores", "Questions", "Method"]
Named = Mapping[str, Sequence[Table]]
Titled = Sequence[tuple[str, Markup]]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report, in the order of `SECTIONS`.

    id: its anchor.
    title: which may name the comparison, `c`, as a format string.
    group: under which the page's navigation names it.
    places: where it is shown, beside the terminal, which has all tables.
    applies: whether a run has it.
    note: how to read it.
    tables: by the name that `rag-lab compare --table` takes; those without rows are left out.
    figures: each with its caption.
    template: of the page and the notebook, where sentences, figures and tables in their order are not enough.
    """

    id: str
    title: str
    group: Group
    places: Sequence[Place] = ("page", "markdown", "notebook")
    applies: Callable[[Comparison], bool] = lambda comparison: True
    note: str = ""
    sentences: Callable[[Comparison], Sequence[str]] = lambda comparison: ()
    tables: Callable[[Comparison], Named] = lambda comparison: {}
    figures: Callable[[Comparison], Titled] = lambda comparison: ()
    template: str = ""


def sections(comparison: Comparison, place: Place) -> list[Section]:
    """Return what a run has to show in a place, in order: without labels first what changed."""
    found = [one for one in SECTIONS if place in one.places and one.applies(comparison)]
    return sorted(found, key=lambda one: one.id != "changes") if comparison.is_unlabelled else found


def groups(shown: Sequence[Section]) -> list[tuple[Group, str]]:
    """Return the groups of the navigation, in order, each with the section that it leads to."""
    first = {one.group: one.id for one in reversed(shown)} | {"Verdict": "verdict"}
    return [(name, "questions" if name == "Questions" else first[name]) for name in get_args(Group) if name in first]


def named_tables(comparison: Comparison) -> dict[str, Sequence[Table]]:
    """Return the tables of a run by the name that one asks for them, in the order of the sections."""
    return {name: tables for section in SECTIONS for name, tables in section.tables(comparison).items()}


def _is_scored(comparison: Comparison) -> bool:
    return comparison.main_metric is not None or not comparison.is_unlabelled


def draw_effects(comparison: Comparison) -> Titled:
    """Return the effects on the main metric, and a figure for each order of two factors with a measured interaction."""
    main, found = comparison.main_metric, comparison.effects
    if main is None or found.table.empty:
        return []
    forest = effect_figures.forest_figure(found.table, main)
    drawn = []
    if comparison.parts:
        bars = figures.to_svg(effect_figures.parts_figure(comparison.parts), "parts")
        drawn.append(("The changes one by one, added up, and all together", bars))
    drawn += [(f"Effects on {comparison.directed(main)}", figures.to_svg(forest, "forest"))]
    both_ways = [way for pair in found.interactions(main) for way in (pair, pair[::-1])]
    for number, (factor, other) in enumerate(both_ways):
        figure = effect_figures.interaction_figure(found.table, main, factor, other)
        title = f"The effect of {factor} at each level of {other}"
        drawn.append((title, figures.to_svg(figure, f"interaction{number}")))
    return drawn


_PARTS: dict[str, dict[str, Any]] = {
    "race": {
        "applies": lambda c: c.race is not None and bool(c.race.rounds),
        "sentences": lambda c: search_sentences.race_sentences(c.race, cost_of(c.run)) if c.race else [],
        "tables": lambda c: {"race": study_tables.race_tables(c)},
    },
    "evidence": {
        "applies": lambda c: not c.is_unlabelled,
        "sentences": trace_findings.evidence_sentences,
        "tables": lambda c: {"evidence": study_tables.evidence_tables(c)},
        "figures": lambda c: (
            [] if c.evidence.items.empty else [("", figures.to_svg(figures.evidence_figure(c), "evidence"))]
        ),
    },
    "gain": {
        "applies": lambda c: bool(study_tables.gain_table(c).rows),
        "tables": lambda c: {"gain": [study_tables.gain_table(c)]},
    },
    "labels": {
        "applies": lambda c: c.rated is not None and bool(c.rated.read[0]),
        "sentences": lambda c: c.rated.sentences if c.rated else [],
        "tables": lambda c: {"labels": [study_tables.labels_table(c)]},
    },
    "claims": {"applies": lambda c: bool(c.run.claims), "tables": lambda c: {"claims": [study_tables.claims_table(c)]}},
    "scores": {
        "applies": _is_scored,
        "tables": score_tables.scores_tables,
        "figures": lambda c: [
            (metric, figures.to_svg(figures.quality_figure(c, metric), f"quality{number}"))
            for number, metric in enumerate(
                one for one in c.quality_metrics if one in set(c.summary[c.summary["scored"] > 0]["metric"])
            )
        ],
    },
    "effects": {
        "applies": lambda c: _is_scored(c) and c.effects.is_grid,
        "sentences": lambda c: [
            *filter(None, [c.effects.note, c.parts.sentence if c.parts else ""]),
            *(c.effects.sentences(c.main_metric) if c.main_metric else []),
        ],
        "tables": lambda c: {"effects": score_tables.effect_tables(c.effects, c.main_metric) if c.main_metric else []},
        "figures": draw_effects,
    },
    "costs": {
        "sentences": conclusions.front_sentences,
        "tables": lambda c: {"front": [study_tables.front_table(c)], "costs": [score_tables.bill_table(c)]},
        "figures": lambda c: [
            (cost, figures.to_svg(effect_figures.front_figure(c, cost), f"front-{cost}")) for cost in c.front.costs
        ],
    },
    "growth": {
        "applies": lambda c: c.growth is not None,
        "sentences": lambda c: c.growth.sentences if c.growth else [],
        "tables": lambda c: {"growth": [score_tables.growth_table(c)]},
        "figures": lambda c: (
            [(c.directed(c.growth.metric), figures.to_svg(effect_figures.growth_figure(c), "growth"))]
            if c.growth
            else []
        ),
    },
    "routing": {
        "applies": lambda c: bool(c.routing),
        "sentences": lambda c: [
            sentence
            for study in c.routing
            for sentence in [
                *conclusions.study_sentences(study),
                *(study.learned.sentences() if study.learned else ()),
                f"`{study.file_name}` beside the report holds the pipeline of that rule." * (study.learned is not None),
            ]
            if sentence
        ],
        "tables": lambda c: {"routing": [t for one in c.routing for t in study_tables.routing_tables(one)]},
    },
    "classes": {
        "applies": _is_scored,
        "figures": lambda c: (
            [("", figures.to_svg(figures.class_figure(c, c.main_metric), "classes"))]
            if c.main_metric is not None and not c.by_class.empty
            else []
        ),
    },
    "changes": {
        "tables": lambda c: {
            "changes": study_tables.change_tables(c),
            "preferences": [study_tables.preferences_table(c)],
            "answers": [score_tables.answers_table((c.name(one), *rest) for one, *rest in c.changes.states)],
        }
    },
    "coverage": {"tables": lambda c: {"coverage": [score_tables.coverage_table(c)]}},
    "noise": {
        "applies": _is_scored,
        "sentences": conclusions.noise_sentences,
        "tables": lambda c: {"noise": [score_tables.noise_table(c)]},
    },
}
SECTIONS = tuple(
    Section(name, **texts, **_PARTS.get(name, {}))
    for name, texts in read_shipped(Path(__file__).with_suffix(".yaml")).items()
)


_FIRST = {"Use ": "Use", "Undecided: ": "Undecided"}
_CAVEATS: dict[str, str] = read_shipped(Path(__file__).with_name("caveats.yaml"))
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
    found, rows, by_topic = recommendation(comparison), module_rows(comparison), conclusions.topics(comparison)
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
        "Cannot tell": _named(comparison, [row for row in rows if row.word == "cannot tell"]),
        "No difference": _named(comparison, [row for row in rows if row.word == "no difference"]),
        "Without scores": _named(comparison, [row for row in rows if row.effect is None]),
        "Answers": list(filter(None, [found.answers])),
        "Price": [f"{price}."] if price else [],
        "Do next": list(dict.fromkeys([*following, *by_topic.get("Next", [])])),
    }
    reasons = [line for line in found.reasons if line not in following]
    folded = {topic: by_topic.pop(topic) for topic in _CAVEATS if topic in by_topic and not comparison.is_unlabelled}
    truncating = verdict.measures_cutting(comparison)
    if truncating and "Not read" in folded:
        folded["Not read"] = [*truncating, *folded["Not read"]]
    details = [
        *(one for one in reasons if one not in truncating or "Not read" not in folded),
        *(sentence for topic in _DETAILS for sentence in by_topic.get(topic, [])),
    ]
    chips = tuple((_CAVEATS[topic], tuple(sentences)) for topic, sentences in folded.items())
    kept = tuple((term, tuple(sentences)) for term, sentences in lines.items() if sentences)
    return VerdictBox(found, tuple(rows), kept, chips, tuple(reasons), tuple(dict.fromkeys(details)))


def _named(comparison: Comparison, rows: Sequence[Verdict]) -> list[str]:
    """Return one line that names modules or variants, each with its effect or why there is none."""
    named = []
    for row in rows[:_MOST]:
        name = comparison.called(row.variant_id) if row.variant_id else row.name
        if row.word == "no difference":
            named.append(f"{name}, {row.why}" if row.unchanged else name)
            continue
        named.append(f"{name} {signed(row.effect)}" if row.effect is not None else f"{name}, {row.why}")
        if "may be left out" in row.why:
            named[-1] += f", {row.word} {row.why.partition(':')[0]}"
    return ["; ".join([*named, *([f"{len(rows) - _MOST:,} more"] if len(rows) > _MOST else [])])] if named else []
