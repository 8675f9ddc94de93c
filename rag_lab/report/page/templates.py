"""The templates of this room, with escaping always on, and what they call; style sheets and scripts."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markupsafe import Markup, escape

from rag_lab._kit import wording as numbers
from rag_lab.comparison.by_question import place
from rag_lab.comparison.findings import conclusions, trace_findings, verdict, verdict_sentences
from rag_lab.comparison.passages import Piece, Rank, holds_evidence, opening, pieces
from rag_lab.comparison.tables import costs
from rag_lab.records import Hit, Question
from rag_lab.redaction import NO_FORMULAS, shown, visible
from rag_lab.report import plan_tree, score_tables, study_tables
from rag_lab.runs.omissions import asked_sentence

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment

    from rag_lab.comparison.by_question import Line, Shared
    from rag_lab.comparison.comparison import Comparison
    from rag_lab.runs.run_folder import VariantPlan

MOST_ROWS = 12  # of the first table; the others fold
_LONGEST = 80  # characters of an id that are kept: with what is added a file name that every file system takes
_DIGEST = re.compile(r"-[0-9a-f]{8}$")
STAR = Markup('<span class="gold" title="holds evidence">★<span class="hear"> holds evidence</span></span>')
_KEPT = 4096  # passages as they are written, most of which stand in many rankings
_LETTER: Callable[[str], Markup] = lru_cache(_KEPT)(Markup('<b class="letter">{}</b>').format)  # of a variant
_INSET = 4.0  # percent of an axis that are left free on either side
_MOST_TICKS = 5


@cache
def environment() -> Environment:
    """Return the environment of the templates; every value is escaped, a missing one is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    environment.filters |= {
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
    functions = (
        anchors, asked_sentence, verdict_sentences.difference_text, score_tables.effect_tables,
        verdict.families_sentence,
        holds_evidence, costs.index_cells, score_tables.is_open, marked, passage, pieces, place, rank_cells,
        source_link, who, ranked, study_tables.routing_tables, verdict.sparse_metrics, verdict.sparse_metric_sentences,
        costs.stage_cells, costs.stage_incidents, costs.stage_names,
        trace_findings.state_names, conclusions.study_conclusion, conclusions.study_sentences,
    )  # fmt: skip
    environment.globals |= {one.__name__: one for one in functions}
    environment.globals |= {
        "interval": numbers.interval,
        "signed_interval": numbers.signed_interval,
        "effect_axis": EffectAxis,
        "plan_tree": plan_tree.plan_tree_of,
        "rl": f"rl {NO_FORMULAS}",
        "MOST_ROWS": MOST_ROWS,
        "SHOWN_S": costs.SHOWN_S,
        "STAR": STAR,
        "letter": _LETTER,
        "FRONT_MEANING": conclusions.MEANING,
        "NOT_MEASURED": conclusions.NOT_MEASURED,
    }
    return environment


def render(template: str, **values: Any) -> str:
    """Render one of this folder's templates; no secret and no control character stands in what it gives."""
    return shown(environment().get_template(template).render(**values))


@cache
def macro(template: str, name: str) -> Callable[..., Markup]:
    """Return a macro of one of this folder's templates; it hides nothing, as the page that it stands in does."""
    found: Callable[..., Markup] = getattr(environment().get_template(template).make_module(), name)
    return found


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


def who(shared: Shared) -> Markup:
    """Return the letters of those that have something in common."""
    letters = Markup("all variants") if shared.everyone else Markup("").join(map(_LETTER, shared.who))
    return Markup(f'<span class="who">{letters}</span>')  # noqa: S704 -- escaped before


def ranked(comparison: Comparison) -> list[VariantPlan]:
    """Return the variants in their order in the main metric, those without scores last."""
    rank = {row["variant_id"]: place for place, row in enumerate(comparison.ranking.to_dict("records"))}
    return sorted(comparison.variants, key=lambda plan: rank.get(plan.variant_id, len(rank)))


def anchors(question_ids: Iterable[str]) -> dict[str, str]:
    """Return `q-` and the id for each of `question_ids`, of the letters, digits and marks that are safe anywhere.

    An id that had to be changed, or that another one equals but for upper and lower case, ends in a digest of it, so
    that no two are alike, also where file names ignore case.
    """
    ids = list(dict.fromkeys(question_ids))
    safe = {one: re.sub(r"[^A-Za-z0-9._-]+", "-", one)[:_LONGEST] for one in ids}
    alike = Counter(name.lower() for name in safe.values())
    kept = {one for one, name in safe.items() if one == name and alike[name.lower()] == 1 and not _DIGEST.search(name)}
    digests = {one: hashlib.sha256(one.encode(errors="surrogatepass")).hexdigest()[:8] for one in safe}
    return {one: f"q-{name}" if one in kept else f"q-{name}-{digests[one]}" for one, name in safe.items()}


def marked(parts: Sequence[Piece]) -> Markup:
    """Return a text in pieces, its evidence marked."""
    written = (f"<mark>{escape(part.text)}</mark>" if part.marked else escape(part.text) for part in parts)
    return Markup(f"<bdi>{''.join(written)}</bdi>")  # noqa: S704 -- escaped before


def passage(hit: Hit, text: str, question: Question) -> Markup:
    """Return one line that tells where a passage stands and how it goes, at its evidence; opened, all of it.

    `text` is in full, or "" where that is not known; the evidence of `question` is marked in it.
    """
    if holds_evidence(hit, question):
        return _passage(place(hit.source, hit.page), tuple(pieces(hit, text, question)), f"{STAR} ")
    return _passage(place(hit.source, hit.page), (Piece(text),) if text else (), "")


def rank_cells(ranks: Sequence[Rank | None]) -> Markup:
    """Return the cells of a passage's row: where each ranking has it."""
    cells = []
    for one in ranks:
        text = "·" if one is None else str(one.rank)
        if one is not None and one.dropped:
            text = f"({text})"
        elif one is not None and one.in_context:
            text = f"<b>{text}</b>"
        cells.append(f'<td class="num">{text}</td>')
    return Markup("".join(cells))  # noqa: S704 -- numbers only


def source_link(where: str, url: str, kind: str = "") -> Markup:
    """Return where something stands, as a link where people can open it."""
    named = Markup("<bdi{}>{}</bdi>").format(Markup(' class="{}"').format(kind) if kind else "", where)
    return Markup('<a href="{}" rel="noopener noreferrer">{}</a>').format(url, named) if url else named


@lru_cache(_KEPT)
def _passage(where: str, parts: tuple[Piece, ...], sign: str) -> Markup:
    begin = f'{sign}<bdi class="where">{escape(where)}</bdi>'
    if not parts:
        return Markup(f'<p class="passage">{begin}</p>')  # noqa: S704 -- escaped before
    return Markup(  # noqa: S704 -- escaped before
        f'<details class="passage"><summary>{begin} <span class="opening">{marked(opening(parts))}</span></summary>\n'
        f'<p class="text">{marked(parts)}</p></details>'
    )


class EffectAxis:
    """An axis that holds zero and every interval of `rows`; from -1 to 1 where none has an effect."""

    def __init__(self, rows: Sequence[verdict_sentences.Verdict]) -> None:
        ends = [value for row in rows for value in (row.effect, row.low, row.high) if value is not None]
        low, high = min([0.0, *ends]), max([0.0, *ends])
        self._low, self._high = (low, high) if high > low else (-1.0, 1.0)
        rough = (self._high - self._low) / _MOST_TICKS
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough)
        # Round numbers within the axis, zero among them.
        self._ticks = [step * k for k in range(math.ceil(self._low / step), math.floor(self._high / step) + 1)]

    def head(self) -> Markup:
        """Return the numbers above the column."""
        texts = "".join(
            f'<text x="{self._place(tick)}" y="1em" text-anchor="middle">{numbers.signed(tick) if tick else 0}</text>'
            for tick in self._ticks
        )
        return _drawn("ticks", texts)

    def drawing(self, row: verdict_sentences.Verdict | None = None) -> Markup:
        """Return the zero line, and on it the interval of a row, of which the numbers stand beside it."""
        parts = []
        for tick in self._ticks:
            x, kind = self._place(tick), "zero" if tick == 0 else "grid"
            parts.append(f'<line class="{kind}" x1="{x}" x2="{x}" y1="0" y2="100%"/>')
        if row is not None and row.low is not None and row.high is not None:
            ends = f'x1="{self._place(row.low)}" x2="{self._place(row.high)}"'
            parts.append(f'<line class="reach" {ends} y1="50%" y2="50%"/>')
        if row is not None and row.effect is not None:
            parts.append(f'<circle cx="{self._place(row.effect)}" cy="50%" r="4.5"/>')
        return _drawn(row.word.replace(" ", "-") if row is not None else "none", "".join(parts))

    def _place(self, value: float) -> str:
        share = (value - self._low) / (self._high - self._low)
        return f"{_INSET + share * (100 - 2 * _INSET):.2f}%"


def _drawn(name: str, inner: str) -> Markup:
    return Markup(f'<svg class="effect {name}" aria-hidden="true" focusable="false">{inner}</svg>')  # noqa: S704 -- numbers


FOLDER = Path(__file__).parent
_POLICY = "script-src '"  # of a page, where one more script is allowed


def asset(name: str) -> Markup:
    """Return a style sheet or script of this folder, to be written into a page as it is."""
    return Markup((FOLDER / name).read_text(encoding="utf-8"))  # noqa: S704 -- our own file


def script_digest(script: str) -> str:
    """Return a script's digest in the form that a content security policy wants."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def with_script(page: str, notice: str, script: str) -> str:
    """Return a page with a notice at its end, and with a script of it allowed, which may ask the page's own server."""
    allowed = page.replace(_POLICY, f"connect-src 'self'; {_POLICY}{script_digest(script)}' '", 1)
    head, end, rest = allowed.rpartition("</body>")
    return f"{head}{notice}{end}{rest}" if end else allowed


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


def address(wanted: Mapping[str, str | None]) -> str:
    """Write filters of the questions as they stand in the page's address: `variant=B&metric=retrieval.ndcg%405`."""
    return urlencode({name: visible(value) for name, value in wanted.items() if value})
