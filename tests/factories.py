"""Small traces for tests: everything has a sensible default, and a test names only what it is about."""

from __future__ import annotations

from typing import Any

from rag_lab.records import Answer, Citation, Evidence, Hit, Passage, Question, StageRecord, Trace

SOURCE = "manuals/oven.pdf"
TEXT = "The oven is heated to 180 degrees before the first batch."


def make_evidence(page: int | None = 1, start: int | None = None, end: int | None = None, **changes: Any) -> Evidence:
    return Evidence(**({"source": SOURCE, "page": page, "start": start, "end": end, "context": TEXT} | changes))


def make_question(question_id: str = "q1", **changes: Any) -> Question:
    """An answerable question with one reference and one evidence item, page 1."""
    defaults = {"text": "How hot is the oven?", "answers": ("180 degrees",), "evidence": (make_evidence(),)}
    return Question(question_id, **(defaults | changes))


def make_hit(page: int | None = 1, start: int = 0, end: int = 100, source: str = SOURCE, score: float = 1.0) -> Hit:
    parent_id = f"{source}:{page}:{start}"
    return Hit(parent_id, f"{parent_id}:c", source, page, start, end, score)


def make_passage(number: int = 1, page: int | None = 1, text: str = TEXT, **changes: Any) -> Passage:
    place = {"parent_id": f"{SOURCE}:{page}:0", "source": SOURCE, "page": page, "start": 0, "end": 100}
    return Passage(number=number, text=text, **(place | changes))


def make_answer(text: str = "It is 180 degrees.", cites: tuple[int, ...] = (1,), **changes: Any) -> Answer:
    return Answer(text, tuple(Citation(number, SOURCE, 1) for number in cites), **changes)


def make_trace(question: Question | None = None, **changes: Any) -> Trace:
    """A trace that went well: one hit and one passage on the evidence, one cited answer."""
    stages = (
        StageRecord("rerank", seconds=0.5, tokens_in=10),
        StageRecord("context"),
        StageRecord("generate", seconds=1.5, tokens_in=100, tokens_out=20, cost_usd=0.25, remembered=True),
    )
    defaults = {"ranked": (make_hit(),), "passages": (make_passage(),), "answer": make_answer(), "stages": stages}
    return Trace(question or make_question(), **(defaults | changes))


def make_failed_trace(stage: str, reason: str = "out of memory", **changes: Any) -> Trace:
    """A trace that ended in `stage`; what that stage and later ones write is empty."""
    failed = (StageRecord(stage, "failed", reason, seconds=0.1),)
    return make_trace(**({"ranked": (), "passages": (), "answer": None, "stages": failed} | changes))
