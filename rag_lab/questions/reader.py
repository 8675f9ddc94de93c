"""What a second call finds: the answer in its place alone, none without it, and none in the whole index.

The calls are those of the pipeline's own reader: passages in, an answer or an abstention out.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from rag_lab.models.protocols import ChatModel
from rag_lab.questions.filters import agrees
from rag_lab.questions.writer import Draft, Kind, Run
from rag_lab.records import Passage, Remembered, Trace
from rag_lab.stages.generate import Generate, Parse

Passages = tuple[Passage, ...]
_ANSWERED: tuple[Kind, ...] = ("single", "two_passages", "follow_up")
_TOKENS = 160


class Check(NamedTuple):
    """A question to the reader about drafts of some kinds; each of `reads` is one call, with these passages.

    Where `finds`, an answer must agree with the draft's. Else none may; of a draft without, there may be none at all.
    """

    name: str
    kinds: tuple[Kind, ...]
    reads: Callable[[Draft], Sequence[Passages]]
    finds: bool = False
    closed_book: bool = False


CHECKS = (
    Check("answerable", _ANSWERED, lambda draft: [draft.passages], finds=True),
    Check("closed_book", _ANSWERED, lambda draft: [()], closed_book=True),
    Check("needs_both", ("two_passages",), lambda draft: [(one,) for one in draft.passages]),
)


def nowhere(found: Callable[[Draft], Passages]) -> Check:
    """Return the check that nothing in the whole index answers; `found` searches it."""
    return Check("nowhere", ("unanswerable", "forbidden"), lambda draft: [found(draft)])


def checked(check: Check, drafts: Sequence[Draft], model: ChatModel, run: Run) -> list[tuple[Draft, str]]:
    """Return each draft with what the reader said noted on it, and why it falls, or ''."""
    asked = [(draft, passages) for draft in drafts for passages in check.reads(draft)]
    traces = [
        Trace(draft.question, remembered=Remembered(0, draft.question.history), passages=passages)
        for draft, passages in asked
    ]
    answered = run(Parse(), run(Generate(model, _TOKENS, 0.0, closed_book=check.closed_book), traces))
    notes: dict[str, list[str]] = {draft.name: [] for draft in drafts}
    reasons = dict.fromkeys(notes, "")
    for (draft, _), trace in zip(asked, answered, strict=True):
        answer = trace.answer
        said = answer.text if answer and not answer.abstained else ""
        notes[draft.name].append(said or "no answer")
        is_found = bool(said) and (not draft.question.answers or agrees(said, draft.question.answers, draft.language))
        if answer is None:
            reasons[draft.name] = f"the reader failed: {trace.stages[-1].reason}"
        elif is_found != check.finds:
            reasons[draft.name] = f"the reader says {said!r}" if said else "the reader finds no answer"
    return [
        (replace(one, checks={**one.checks, check.name: "; ".join(notes[one.name])}), reasons[one.name])
        for one in drafts
    ]
