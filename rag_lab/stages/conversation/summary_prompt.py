"""The prompt that asks for a summary. Results are remembered by `VERSION`: change it with the wording."""

from __future__ import annotations

from collections.abc import Sequence

from rag_lab.models.protocols import Message
from rag_lab.records import Turn

VERSION = 1

_SYSTEM = """\
You keep the notes of a conversation about technical documents. Write what was asked and what was found out, in one to \
four short sentences. Keep every name, number, code and unit; name things, do not write "it". Write only the notes."""

# Earlier notes, turns, notes: a small model learns the form from examples alone.
_EXAMPLES: tuple[tuple[str, str, str], ...] = (
    (
        "",
        "user: How often does pump B get new oil?\nassistant: Every 500 hours.\nuser: And its bearing?\n"
        "assistant: BR-31.",
        "Pump B was talked about: it gets new oil every 500 hours, and its bearing is BR-31.",
    ),
    (
        "Pump B was talked about: it gets new oil every 500 hours, and its bearing is BR-31.",
        "user: Who repaired the forklift?\nassistant: Mr Okoro, on Monday.",
        "Pump B was talked about: it gets new oil every 500 hours, and its bearing is BR-31. Then the forklift: Mr "
        "Okoro repaired it on Monday.",
    ),
)


def summary_messages(earlier: str, turns: Sequence[Turn]) -> tuple[Message, ...]:
    """Return the chat that asks for a summary of `turns`, which extends the one of the turns before them."""
    shots = [
        message
        for before, said, notes in _EXAMPLES
        for message in (Message("user", _ask(before, said)), Message("assistant", notes))
    ]
    said = "\n".join(f"{turn.role}: {turn.content}" for turn in turns)
    return (Message("system", _SYSTEM), *shots, Message("user", _ask(earlier, said)))


def _ask(earlier: str, said: str) -> str:
    return f"Notes so far: {earlier or 'none'}\n\nConversation:\n{said}\n\nNotes:"
