"""The templates of this room, with escaping always on."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markupsafe import Markup, escape

from rag_lab._kit import numbers
from rag_lab.comparison import hyde_sentences as routing_text
from rag_lab.comparison.advice.module_rows import module_rows
from rag_lab.comparison.advice.recommendation import recommendation
from rag_lab.comparison.advice.set_apart import set_apart, set_apart_sentences
from rag_lab.comparison.advice.statements import difference_said
from rag_lab.comparison.conclusions import NOT_MEASURED, noise_sentences
from rag_lab.comparison.evidence.state_names import evidence_told, state_names
from rag_lab.comparison.front.front_sentences import MEANING, fronts_told
from rag_lab.comparison.marked_text import pieces
from rag_lab.comparison.questions.passage_table import holds_evidence
from rag_lab.comparison.questions.replies import place
from rag_lab.comparison.race_sentences import race_sentences
from rag_lab.comparison.verdict_caveats import families_told
from rag_lab.redaction import shown
from rag_lab.report.figures.plan_tree_figure import plan_tree_of
from rag_lab.report.page.anchors import anchors
from rag_lab.report.page.effect_axis import EffectAxis
from rag_lab.report.page.passages import STAR, marked, passage, rank_cells
from rag_lab.report.tables import coverage_tables as coverage
from rag_lab.report.tables.changes_tables import changed_most_table, changes_table, preferences_table
from rag_lab.report.tables.comparison_tables import effect_tables, noise_table
from rag_lab.report.tables.evidence_tables import evidence_by_class_table, moved_table
from rag_lab.report.tables.front_table import front_table
from rag_lab.report.tables.hyde_tables import routing_tables, rule_table
from rag_lab.report.tables.race_tables import race_tables
from rag_lab.runs.omissions import asked_sentence
from rag_lab.runs.race_record import cost_of
from rag_lab.visible import NO_FORMULAS, visible

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment

    from rag_lab.comparison.comparison import Comparison
    from rag_lab.comparison.questions.question_cards import Line
    from rag_lab.runs.run_folder import VariantPlan

FOLDER = Path(__file__).parent
MOST_ROWS = 12  # of the first table; the others fold


@cache
def _environment() -> Environment:
    """Return the environment of the templates; every value is escaped, a missing one is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    made.filters |= {
        "plain": numbers.plain,
        "signed": numbers.signed,
        "seconds": numbers.seconds,
        "p": numbers.p_value,
        "soft": soft,
        "prose": prose,
        "setting": setting,
        "cells": cells,
        "address": address,
        "numbers": line_numbers,
    }
    made.globals |= {"interval": numbers.interval, "signed_interval": numbers.signed_interval, "place": place}
    made.globals |= {"rl": f"rl {NO_FORMULAS}", "pieces": pieces, "holds_evidence": holds_evidence}
    made.globals |= {"STAR": STAR, "marked": marked, "passage": passage, "rank_cells": rank_cells}
    made.globals |= {"is_open": coverage.is_open, "judged": judged, "ranked": ranked}
    made.globals |= {"asked_sentence": asked_sentence, "effect_tables": effect_tables, "noise_table": noise_table}
    made.globals |= {"routing_tables": routing_tables, "rule_table": rule_table}
    made.globals |= {"changes_table": changes_table, "changed_most_table": changed_most_table}
    made.globals |= {"evidence_told": evidence_told, "state_names": state_names}
    made.globals |= {"moved_table": moved_table, "evidence_by_class_table": evidence_by_class_table}
    made.globals |= {"preferences_table": preferences_table, "anchors": anchors}
    made.globals |= {"routing": routing_text, "coverage": coverage}
    made.globals |= {"recommendation": recommendation, "module_rows": module_rows, "effect_axis": EffectAxis.around}
    made.globals |= {"families_told": families_told, "difference_said": difference_said}
    made.globals |= {"MOST_ROWS": MOST_ROWS, "set_apart": set_apart, "set_apart_sentences": set_apart_sentences}
    made.globals |= {"fronts_told": fronts_told, "front_table": front_table, "FRONT_MEANING": MEANING}
    made.globals |= {"race_tables": race_tables, "cost_of": cost_of, "race_sentences": race_sentences}
    made.globals |= {"plan_tree": plan_tree_of}
    made.globals |= {"noise_sentences": noise_sentences, "NOT_MEASURED": NOT_MEASURED}
    return made


def compile_templates(names: Sequence[str]) -> None:
    """Compile templates before they are needed, as where processes that need them are forked."""
    for name in names:
        _environment().get_template(name)


def render(template: str, **values: Any) -> str:
    """Render one of this folder's templates; no secret and no control character stands in what it gives."""
    return shown(_environment().get_template(template).render(**values))


@cache
def macro(template: str, name: str) -> Callable[..., Markup]:
    """Return a macro of one of this folder's templates; it hides nothing, as the page that it stands in does."""
    found: Callable[..., Markup] = getattr(_environment().get_template(template).make_module(), name)
    return found


def script_digest(script: str) -> str:
    """Return a script's digest in the form that a content security policy wants."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def asset(name: str) -> Markup:
    """Return a style sheet or script of this folder, to be written into a page as it is."""
    return Markup((FOLDER / name).read_text(encoding="utf-8"))  # noqa: S704 -- our own file


def soft(text: str) -> Markup:
    """Escape `text` and let long names break after dots, commas, slashes and underscores."""
    return Markup(re.sub(r"([._/=@,])(?=[^\W\d])", r"\1<wbr>", str(escape(text))))  # noqa: S704 -- escaped before


def prose(text: str) -> Markup:
    """Escape a sentence, set what stands between backticks as code, and write real minus signs."""
    signed = re.sub(r"(?<![\w.-])-(?=\d)", numbers.MINUS, str(escape(text)))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", signed))  # noqa: S704 -- escaped before


def setting(value: Any) -> str:
    """Write a value of the configuration for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {setting(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(setting(inner) for inner in value)
    return "none" if value is None else str(value)


def cells(table: pd.DataFrame, column: str, metric: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the rows of `metric` as group (a value of `column`) -> variant_id -> row."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in table[table["metric"] == metric].to_dict("records"):
        found.setdefault(str(row[column]), {})[str(row["variant_id"])] = {str(key): row[key] for key in row}
    return found


def line_numbers(line: Line) -> Markup:
    """Return the cells of a variant's scores, seconds and tokens."""
    failed = '<td><span class="below">failed</span></td>'
    scores = (failed if status == "failed" else f"<td>{numbers.plain(value)}</td>" for value, status in line.scores)
    costs = f"<td>{numbers.seconds(line.seconds)}</td><td>{line.tokens_in:,}</td><td>{line.tokens_out:,}</td>"
    return Markup("".join(scores) + costs)  # noqa: S704 -- numbers only


def address(wanted: Mapping[str, str | None]) -> str:
    """Write filters of the questions as they stand in the page's address: `variant=B&metric=retrieval.ndcg%405`."""
    return urlencode({name: visible(value) for name, value in wanted.items() if value})


def judged(comparison: Comparison) -> set[str]:
    """Return the metrics that a judge gave."""
    return {metric for note in comparison.judges for metric in note.metrics}


def ranked(comparison: Comparison) -> list[VariantPlan]:
    """Return the variants in their order in the main metric, those without scores last."""
    rank = {row["variant_id"]: place for place, row in enumerate(comparison.ranking.to_dict("records"))}
    return sorted(comparison.variants, key=lambda plan: rank.get(plan.variant_id, len(rank)))
