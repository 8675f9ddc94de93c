"""What `rag-lab datasets check` counted, as a page that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rag_lab.report.page.templates import render

if TYPE_CHECKING:
    from rag_lab.data.check import DatasetCheck


def dataset_page(check: DatasetCheck) -> str:
    """Return the HTML page; every value is escaped."""
    shares = {"classes": _shares(check.by_class), "tags": _shares(check.by_tag)}
    return render("dataset.html", check=check, facts=_facts(check), **shares)


def _facts(check: DatasetCheck) -> dict[str, str]:
    n_unanswerable = check.n_questions - check.n_answerable
    share = "" if check.unanswerable_share is None else f" ({check.unanswerable_share:.0%})"
    return {
        "files": str(check.n_files),
        "questions": str(check.n_questions),
        "unanswerable": f"{n_unanswerable}{share}",
        "evidence items": str(check.n_evidence),
        "found in the corpus": f"{check.n_found} of {check.n_evidence}",
        "with page": str(check.n_with_page),
        "with quote": str(check.n_with_quote),
        **({"grades": check.grades} if check.grades else {}),
        "answerable questions without evidence": str(check.n_without_evidence),
        **{f"missing ({number})": part for number, part in enumerate(check.missing, start=1)},
    }


def _shares(counts: Mapping[str, int]) -> list[tuple[str, int, float]]:
    """Return name, count and the width of its bar in percent of the largest."""
    most = max(counts.values(), default=1)
    return [(name, count, 100 * count / most) for name, count in counts.items()]
