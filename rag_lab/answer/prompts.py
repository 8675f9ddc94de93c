"""The prompt that asks for an answer. Results are remembered by `VERSION`: change it with the wording."""

from __future__ import annotations

from collections.abc import Sequence

from rag_lab.models.base import Message
from rag_lab.records import Passage, Turn

VERSION = 1

# The one phrase for "cannot tell", shared by prompt, parser and metrics.
NOT_FOUND = "The documents do not say."

SYSTEM = f"""\
You answer questions from numbered passages of documents. Use only the passages. Reply with a JSON object:
{{"answer": "the answer in one to three sentences", "citations": [numbers of the passages that you used]}}
If the passages do not contain the answer, reply {{"answer": "{NOT_FOUND}", "citations": []}}"""

SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "citations": {"type": "array", "items": {"type": "integer"}, "maxItems": 5},
    },
    "required": ["answer", "citations"],
    "additionalProperties": False,
}


def render_passage(passage: Passage) -> str:
    """Return a passage as the model reads it: number, source, page, text."""
    where = passage.source if passage.page is None else f"{passage.source}, page {passage.page}"
    return f"[{passage.number}] ({where})\n{passage.text}"


def render_passages(passages: Sequence[Passage]) -> str:
    """Return the context as the model reads it."""
    return "\n\n".join(render_passage(passage) for passage in passages)


def answer_messages(question: str, history: Sequence[Turn], passages: Sequence[Passage]) -> tuple[Message, ...]:
    """Return the chat that asks for an answer: the user's own wording, after the earlier turns."""
    turns = (Message(turn.role, turn.content) for turn in history)
    user = f"Passages:\n\n{render_passages(passages)}\n\nQuestion: {question}"
    return (Message("system", SYSTEM), *turns, Message("user", user))
