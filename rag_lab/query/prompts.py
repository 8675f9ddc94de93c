"""Prompts of query understanding and HyDE. Results are remembered by `VERSION`: change it with the wording."""

from __future__ import annotations

from rag_lab.models.base import Message
from rag_lab.records import QUERY_CLASSES, Question

VERSION = 1

UNDERSTANDING = """\
You prepare questions for a search in technical and company documents. For each question give:
- class: one of specific (one fact, value or name), fuzzy (vague or colloquial wording), comparative (two or more \
things set against each other), procedural (how to do something, steps), creative (open ideas, drafts, advice)
- rewritten: the question as a complete, self-contained search query; keep every name, number and code exactly
- hyde: true if an imagined answer passage would help the search, else false"""

# Question, reply: small models classify by example far better than by definition.
EXAMPLES: tuple[tuple[str, str], ...] = (
    (
        "What is the torque for the M8 bolts on gearbox G-12?",
        '{"class": "specific", "rewritten": "torque for M8 bolts on gearbox G-12", "hyde": false}',
    ),
    (
        "the saw thing keeps making that noise, what's up with that",
        '{"class": "fuzzy", "rewritten": "possible causes of unusual noise from the saw", "hyde": true}',
    ),
    (
        "Which lasts longer between services, pump A or pump B?",
        '{"class": "comparative", "rewritten": "service interval of pump A compared with pump B", "hyde": false}',
    ),
    (
        "How do I change the belt on conveyor C4?",
        '{"class": "procedural", "rewritten": "steps to change the belt on conveyor C4", "hyde": true}',
    ),
    (
        "Write a short safety talk about forklifts.",
        '{"class": "creative", "rewritten": "forklift safety rules and hazards for a safety talk", "hyde": true}',
    ),
)

GENERAL = "general"

# By route: the single prompt of plain HyDE, and one for each class.
HYDE: dict[str, str] = {
    GENERAL: "Write one short passage of a technical document that answers the question. Write only the passage.",
    "specific": "Write one sentence of a data sheet or specification that states the exact fact asked for, with a "
    "plausible value and unit. Write only the sentence.",
    "fuzzy": "The question is worded vaguely. Write a short passage of a manual that names the likely subject in the "
    "proper technical terms and explains it. Write only the passage.",
    "comparative": "Write a short passage of a document that describes each of the things being compared, one sentence "
    "each, with the property in question. Write only the passage.",
    "procedural": "Write a short excerpt of a work instruction that answers the question: numbered steps in the "
    "imperative, with tools and checks. Write only the steps.",
    "creative": "Write a short passage of company documentation with the facts, rules and experience that an answer "
    "could draw on. Write only the passage.",
}


def understanding_messages(question: Question) -> tuple[Message, ...]:
    """Return the chat that asks for class, rewrite and HyDE suggestion; the history stands before the question."""
    shots = [
        message
        for asked, reply in EXAMPLES
        for message in (Message("user", f"Question: {asked}"), Message("assistant", reply))
    ]
    history = "".join(f"{turn.role}: {turn.content}\n" for turn in question.history)
    earlier = f"Conversation so far:\n{history}" if history else ""
    return (Message("system", UNDERSTANDING), *shots, Message("user", f"{earlier}Question: {question.text}"))


def hyde_messages(instruction: str, query: str) -> tuple[Message, ...]:
    """Return the chat that asks for a hypothetical document."""
    return (Message("system", instruction), Message("user", f"Question: {query}"))


UNDERSTANDING_SCHEMA = {
    "type": "object",
    "properties": {
        "class": {"type": "string", "enum": list(QUERY_CLASSES)},
        "rewritten": {"type": "string", "maxLength": 200},
        "hyde": {"type": "boolean"},
    },
    "required": ["class", "rewritten", "hyde"],
    "additionalProperties": False,
}
