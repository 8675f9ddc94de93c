"""The figure of several rankings of one question: each hit as a line from list to list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rag_lab.evaluation.measures.coverage import covers
from rag_lab.report.figures.figure_style import ABOVE, FONT_SIZE, INK, LABEL_CHARS, MUTED, SAME, literal, new_figure

if TYPE_CHECKING:
    from rag_lab.records import Hit, Question
    from rag_lab.report.figures.figure_style import ShownFigure


def rank_figure(lists: Mapping[str, Sequence[Hit]], question: Question, first: int = 10) -> ShownFigure:
    """Plot where each hit stands in each list, the hits that hold evidence in colour.

    A hit that is not among the first of a list is drawn below its last line.

    `lists` are rankings of the same parents by name, in the order in which they are drawn, of each the `first` hits;
    the evidence of `question` is located, as a trace has it.
    """
    shown = {name: list(hits[:first]) for name, hits in lists.items()}
    hits = {hit.parent_id: hit for found in shown.values() for hit in found}
    evidence = {parent for parent, hit in hits.items() if any(covers(hit, one) for one in question.evidence)}
    ranks = [{hit.parent_id: rank for rank, hit in enumerate(found, 1)} for found in shown.values()]
    texts = []
    for name, one in zip(shown, ranks, strict=True):
        found = sorted(rank for parent, rank in one.items() if parent in evidence)
        texts.append(f"{name}: " + (f"at {', '.join(map(str, found))}" if found else "nowhere"))
    lowest = max((len(one) for one in ranks), default=1)
    alt = f"Ranks of what was found for {question.text!r}. Evidence stands, in {'; '.join(texts)}."
    figure, axes = new_figure(3.8 + 1.2 * len(shown), 0.6 + 0.26 * (lowest + 1), alt)
    for parent in sorted(hits, key=lambda parent: parent in evidence):
        is_evidence, found_at = parent in evidence, [one.get(parent, lowest + 1) for one in ranks]
        line: dict[str, Any] = {"color": SAME, "lw": 0.8}
        dot: dict[str, Any] = {"marker": "o", "markersize": 5, "color": MUTED}
        if is_evidence:
            line = {"color": ABOVE, "linewidth": 2.4, "zorder": 3}
            dot = {"marker": "D", "markersize": 8, "color": ABOVE}
        for column, (here, there) in enumerate(pairwise(found_at)):  # of what is no evidence, where both lists have it
            if is_evidence or max(here, there) <= lowest:
                axes.plot([column, column + 1], [here, there], **line)
        for column, rank in enumerate(found_at):
            if is_evidence or rank <= lowest:
                axes.plot([column], [rank], zorder=4, **dot)
    # Beside the first and the last list: rank and place of each hit.
    for column, side in ((0, "right"), (len(ranks) - 1, "left")) if ranks else ():
        for parent, rank in ranks[column].items():
            source, page = hits[parent].source, hits[parent].page
            name = literal(source.rsplit("/", 1)[-1] + ("" if page is None else f", p. {page}"), LABEL_CHARS)
            text, offset = (f"{name}  {rank}", -9) if side == "right" else (f"{rank}  {name}", 9)
            style: dict[str, Any] = {"color": ABOVE, "fontweight": "bold"} if parent in evidence else {"color": INK}
            style |= {"ha": side, "va": "center", "fontsize": FONT_SIZE}
            axes.annotate(text, (column, rank), (offset, 0), textcoords="offset points", **style)
    axes.set_xticks(range(len(shown)), [literal(name, 24) for name in shown])
    axes.xaxis.tick_top()
    axes.set_yticks([lowest + 1], [f"not in\nthe first {lowest}"], color=MUTED)
    axes.set_ylim(lowest + 1.4, 0.5)
    axes.spines[:].set_visible(False)
    return figure
