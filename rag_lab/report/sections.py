"""The sections of a report, which page, Markdown, terminal and notebook show alike: a section is one entry here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from markupsafe import Markup

from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings import conclusions, evidence_sentences, search_sentences
from rag_lab.report.figures import page_figures
from rag_lab.report.tables import score_tables, study_tables
from rag_lab.report.tables.table import Table
from rag_lab.runs.race_record import cost_of

Place = Literal["page", "paper", "markdown", "notebook"]
Group = Literal["Verdict", "Evidence", "Scores", "Questions", "Method"]
Named = Mapping[str, Sequence[Table]]
Titled = Sequence[tuple[str, Markup]]
EVERYWHERE: tuple[Place, ...] = get_args(Place)


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
    places: tuple[Place, ...] = ("page", "markdown", "notebook")
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


def _effects(comparison: Comparison) -> list[str]:
    metric, found = comparison.main_metric, comparison.effects
    return [*([found.note] if found.note else []), *(found.sentences(metric) if metric else [])]


def _routing(comparison: Comparison) -> list[str]:
    sentences = []
    for study in comparison.routing:
        sentences += conclusions.study_sentences(study)
        if study.learned is not None:
            sentences += study.learned.sentences()
            sentences.append(f"`{study.file_name}` beside the report holds the pipeline of that rule.")
    return sentences


SECTIONS = (
    Section(
        "race",
        "{c.race.title}",
        "Verdict",
        EVERYWHERE,
        lambda c: c.race is not None and bool(c.race.rounds),
        sentences=lambda c: search_sentences.race_sentences(c.race, cost_of(c.run)) if c.race else [],
        tables=lambda c: {"race": study_tables.race_tables(c)},
        template="race.html",
    ),
    Section(
        "evidence",
        "Where evidence is lost",
        "Evidence",
        applies=lambda c: not c.is_unlabelled,
        sentences=evidence_sentences.evidence_sentences,
        tables=lambda c: {"evidence": study_tables.evidence_tables(c)},
        figures=page_figures.evidence_figures,
        template="evidence.html",
    ),
    Section(
        "gain",
        "What retrieval can bring",
        "Evidence",
        applies=lambda c: bool(study_tables.gain_table(c).rows),
        note="A reader that reads nothing, and one that reads the labelled evidence, bound what retrieval can bring. "
        "The share is (variant − closed book) / (evidence − closed book), on the questions that all three have a score "
        "on.",
        tables=lambda c: {"gain": [study_tables.gain_table(c)]},
    ),
    Section(
        "scores",
        "Scores",
        "Scores",
        ("page", "paper", "markdown"),
        _is_scored,
        tables=score_tables.scores_tables,
        figures=page_figures.quality_figures,
        template="scores_section.html",
    ),
    Section(
        "effects",
        "What each module adds",
        "Scores",
        EVERYWHERE,
        lambda c: _is_scored(c) and c.effects.is_grid,
        sentences=_effects,
        tables=lambda c: {"effects": score_tables.effect_tables(c.effects, c.main_metric) if c.main_metric else []},
        figures=page_figures.effect_figures,
        template="effects.html",
    ),
    Section(
        "costs",
        "What quality costs",
        "Scores",
        sentences=conclusions.front_sentences,
        tables=lambda c: {"front": [study_tables.front_table(c)], "costs": [score_tables.bill_table(c)]},
        figures=page_figures.front_figures,
        template="costs.html",
    ),
    Section(
        "routing",
        "Does routing HyDE by class pay",
        "Scores",
        applies=lambda c: bool(c.routing),
        sentences=_routing,
        tables=lambda c: {"routing": [t for one in c.routing for t in study_tables.routing_tables(one)]},
        template="routing.html",
    ),
    Section(
        "classes",
        "By query class and tag",
        "Scores",
        ("page",),
        _is_scored,
        figures=page_figures.class_figures,
        template="groups.html",
    ),
    Section(
        "changes",
        "What changed against the baseline",
        "Questions",
        EVERYWHERE,
        tables=lambda c: {
            "changes": study_tables.change_tables(c),
            "preferences": [study_tables.preferences_table(c)],
        },
        template="changes.html",
    ),
    Section("questions", "Question by question", "Questions", ("page",), template="questions.html"),
    Section(
        "coverage",
        "Complete cases",
        "Method",
        EVERYWHERE,
        note="Variants are compared only on questions that both have a score for. Where scores failed, the means stand "
        "there as they would be if all of these had been the worst, or the best, value of the metric; a dash where the "
        "metric has no such bound.",
        tables=lambda c: {"coverage": [score_tables.coverage_table(c)]},
    ),
    Section(
        "noise",
        "Noise",
        "Method",
        applies=_is_scored,
        sentences=conclusions.noise_sentences,
        tables=lambda c: {"noise": [score_tables.noise_table(c)]},
        template="noise.html",
    ),
    Section("stages", "Stages", "Method", ("page",), template="stages.html"),
    Section("variants", "Variants and what differs", "Method", ("page",), template="variants.html"),
    Section("method", "Method", "Method", ("page", "paper"), template="method.html"),
)
