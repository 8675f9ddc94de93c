"""The prompt of a closed book: what the model answers out of what it knows, where `answer.context` is `none`.

The usual prompt would forbid that, as it asks for what stands in the passages only.
"""

from __future__ import annotations

import json

from rag_lab.models.protocols import Message
from rag_lab.records import Remembered
from rag_lab.stages.answer.prompts import NOT_FOUND, earlier_messages

VERSION = 1

_SYSTEM = f"""\
You answer questions briefly, out of what you know. Reply with a JSON object that holds the answer and an empty list \
of citations. If you cannot answer, reply {{"answer": "{NOT_FOUND}", "citations": []}}"""

# Another subject than any documents of a user, so that nothing of them is given away.
_EXAMPLES = (
    ("How many days has a leap year?", "A leap year has 366 days."),
    ("Which is the largest ocean?", "The Pacific is the largest ocean."),
)


def closed_book_messages(question: str, said: Remembered) -> tuple[Message, ...]:
    """Return the chat that asks for an answer without passages, after the examples and the earlier turns."""
    shots = (
        message
        for asked, answer in _EXAMPLES
        for message in (
            Message("user", _ask(asked)),
            Message("assistant", json.dumps({"answer": answer, "citations": []})),
        )
    )
    return (Message("system", _SYSTEM), *shots, *earlier_messages(said), Message("user", _ask(question)))


def _ask(question: str) -> str:
    return f"Question: {question}"
