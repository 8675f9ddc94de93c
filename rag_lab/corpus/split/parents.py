"""Parents: what the reader is given around a child that was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.spans import Span, trimmed
from rag_lab.corpus.split.markdown import section_spans
from rag_lab.corpus.split.recursive import split_spans
from rag_lab.records import Document


def parents_identity(config: CorpusConfig) -> Mapping[str, Any]:
    """Return whatever changes the parents beside the text and the children."""
    relevant = {
        "page": {"size": config.parent_size},
        "section": {"size": config.parent_size},
        "fixed": {"size": config.parent_size},
        "neighbours": {"around": config.neighbours},
        "none": {},
    }
    return {"name": config.parents, "version": 1, **relevant[config.parents]}


def given_parents(document: Document, config: CorpusConfig) -> list[Span] | None:
    """Return the parents that do not depend on the children, in order; None where they do.

    They hold each character that is not whitespace exactly once. `page` is a page of a PDF, `section` a section of a
    text that has headings; where there is no such thing they are pieces of about `parent_size` characters, as `fixed`
    ones are. A sheet of a workbook is no page: it may have any length.
    """
    text = document.text
    if config.parents == "page" and document.page is not None and not document.section:
        return trimmed(text, [(0, len(text))])
    if config.parents == "section" and len(sections := section_spans(text)) > 1:
        return trimmed(text, sections)
    if config.parents in ("page", "section", "fixed"):
        return split_spans(text, [(0, len(text))], config.parent_size, 0)
    return None


def parents_of_children(children: Sequence[Span], config: CorpusConfig) -> list[Span]:
    """Return for each child its parent: the child itself, or with it the `neighbours` before and after it."""
    around = config.neighbours if config.parents == "neighbours" else 0
    last = len(children) - 1
    windows = [children[max(0, n - around) : min(last, n + around) + 1] for n in range(len(children))]
    return [(window[0][0], max(end for _, end in window)) for window in windows]
