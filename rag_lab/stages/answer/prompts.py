"""The prompt that asks for an answer. Results are remembered by `VERSION`: change it with the wording."""

import json
from collections.abc import Sequence

from rag_lab.models.protocols import Message
from rag_lab.records import Passage, Remembered
from rag_lab.stages.stage import few_shot

VERSION = 2

# The one phrase for "cannot tell", shared by prompt, parser and metrics.
NOT_FOUND = "The documents do not say."

SYSTEM = f"""\
You answer questions from numbered passages of documents, briefly and only from the passages. Reply with a JSON object \
that holds the answer and the numbers of the passages you used. If no passage has the answer, reply \
{{"answer": "{NOT_FOUND}", "citations": []}}"""

SYSTEM_TEXT = f"""\
You answer questions from numbered passages of documents, briefly and only from the passages. If no passage has the \
answer, reply: {NOT_FOUND}"""

# Passages, question, answer, citations: a small model learns the form, and where to stop, from examples alone.
EXAMPLES: tuple[tuple[str, str, str, list[int]], ...] = (
    (
        "[1] (pumps.pdf, page 4)\nPump A: bearing BR-20, oil change every 2,000 hours.\n\n"
        "[2] (pumps.pdf, page 9)\nPump B: bearing BR-31, oil change every 500 hours.",
        "How often does pump B get new oil?",
        "Pump B gets an oil change every 500 hours.",
        [2],
    ),
    (
        "[1] (minutes.md)\nThe forklift was repaired on Monday. Mr Okoro will order a spare tyre.",
        "Who orders the tyre?",
        "Mr Okoro orders the spare tyre.",
        [1],
    ),
)

SEPARATOR = "\n\n"  # between passages

SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "citations": {"type": "array", "items": {"type": "integer"}, "maxItems": 5},
    },
    "required": ["answer", "citations"],
    "additionalProperties": False,
}
# A closed book: what the model answers out of what it knows, where `answer.context` is `none`. The usual prompt would
# forbid that, as it asks for what stands in the passages only.
_CLOSED_BOOK = f"""\
You answer questions briefly, out of what you know. Reply with a JSON object that holds the answer and an empty list \
of citations. If you cannot answer, reply {{"answer": "{NOT_FOUND}", "citations": []}}"""
# Another subject than any documents of a user, so that nothing of them is given away.
_CLOSED_BOOK_EXAMPLES = (
    ("How many days has a leap year?", "A leap year has 366 days."),
    ("Which is the largest ocean?", "The Pacific is the largest ocean."),
)


def render_passage(passage: Passage) -> str:
    """Return a passage as the model reads it: number, source, page, text."""
    where = passage.source if passage.page is None else f"{passage.source}, page {passage.page}"
    return f"[{passage.number}] ({where})\n{passage.text}"


def render_passages(passages: Sequence[Passage]) -> str:
    """Return the context as the model reads it."""
    return SEPARATOR.join(render_passage(passage) for passage in passages)


def answer_messages(
    question: str, remembered: Remembered, passages: Sequence[Passage], as_text: bool = False
) -> tuple[Message, ...]:
    """Return the chat that asks for an answer: the user's own wording, after the examples and the earlier turns."""
    shots = (
        (_ask(context, asked), answer if as_text else json.dumps({"answer": answer, "citations": citations}))
        for context, asked, answer, citations in EXAMPLES
    )
    system, asked = SYSTEM_TEXT if as_text else SYSTEM, _ask(render_passages(passages), question)
    return few_shot(system, shots, asked, earlier_messages(remembered))


def earlier_messages(remembered: Remembered) -> tuple[Message, ...]:
    """Return what is remembered of the conversation: its summary, then the turns since as they were said."""
    summary = (Message("user", f"What we talked about so far: {remembered.summary}"), Message("assistant", "I see."))
    turns = tuple(Message(turn.role, turn.content) for turn in remembered.turns)
    return (*summary, *turns) if remembered.summary else turns


def _ask(context: str, question: str) -> str:
    return f"Passages:\n\n{context}\n\nQuestion: {question}"


def closed_book_messages(question: str, remembered: Remembered) -> tuple[Message, ...]:
    """Return the chat that asks for an answer without passages, after the examples and the earlier turns."""
    shots = (
        (f"Question: {asked}", json.dumps({"answer": answer, "citations": []}))
        for asked, answer in _CLOSED_BOOK_EXAMPLES
    )
    return few_shot(_CLOSED_BOOK, shots, f"Question: {question}", earlier_messages(remembered))
