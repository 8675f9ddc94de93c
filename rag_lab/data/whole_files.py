"""Labels that name a file of several passages and no more: which of these holds the answer, nobody knows."""

from __future__ import annotations

from collections.abc import Collection

from rag_lab._kit.wording import counted
from rag_lab.records import Evidence, Question


def names_file_alone(item: Evidence) -> bool:
    """Tell whether a label names neither page nor quote, of a file that is more than the one passage it may be."""
    return item.page is None and item.quote is None and not item.context


def whole_files_told(questions: Collection[Question]) -> list[str]:
    """Say of how many questions the labels name files alone; nothing where those of none do.

    Args:
        questions: located, as a pipeline has them; of others a label of a short file counts as well.
    """
    labelled = [question for question in questions if question.evidence]
    n = sum(any(map(names_file_alone, question.evidence)) for question in labelled)
    if not n:
        return []
    return [
        f"The labels of {n:,} of {counted(len(labelled), 'question')} name files of several passages, without page or "
        "quote: there a rank is a file, any passage of it counts as found, and which one holds the answer is not known."
    ]
