"""The evidence of questions, found in an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.records import Evidence, Problem, Question


def locate_all(index: CorpusIndex, questions: Sequence[Question]) -> tuple[list[Question], list[Problem]]:
    """Return the questions with their evidence located, and a problem for each piece of evidence that was not found.

    Evidence in a document that the asker may not see is taken off the question, and its answers in words with it:
    nothing of such a document may stand in a trace, be it as a label.
    """
    located, problems = [], []
    for question in questions:
        found = [_locate(index, question, evidence) for evidence in question.evidence]
        kept = tuple(evidence for evidence, _ in found if evidence)
        answers = question.answers if len(kept) == len(found) else ()
        located.append(replace(question, evidence=kept, answers=answers))
        problems += [
            Problem(str(index.corpus_dir / given.source), f"evidence of question {question.question_id!r}: {reason}")
            for given, (_, reason) in zip(question.evidence, found, strict=True)
            if reason
        ]
    return located, problems


def _locate(index: CorpusIndex, question: Question, evidence: Evidence) -> tuple[Evidence | None, str]:
    if index.is_visible(evidence.source, question):
        found, reason = index.try_locate(evidence)
        copies = tuple(source for source in index.copies(found.source) if index.is_visible(source, question))
        return replace(found, copies=copies) if copies else found, reason
    return None, "its asker may not see this file, so it was left out; give may_see or namespace as the file asks for."
