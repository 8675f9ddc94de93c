"""Prompts of query understanding and HyDE. Results are remembered by `VERSION`: change it with the wording."""

import json
from typing import Any

from rag_lab.models.protocols import Message
from rag_lab.records import QUERY_CLASSES, QueryClass, Remembered
from rag_lab.stages.stage import few_shot

VERSION = 1

UNDERSTANDING = """\
You prepare questions for a search in technical documents. Classes: specific (one fact, value or name), fuzzy (vague \
or colloquial), comparative (two things set against each other), procedural (how to do something), creative (write, \
draft, suggest). Reply with class, rewritten (a complete, self-contained search query that keeps every name, number \
and code) and hyde (whether an imagined passage would help the search)."""

# Question, class, rewrite, hyde. Small models classify by example far better than by definition, and prefer whichever
# class came first or last; so each class stands twice, mixed.
EXAMPLES: tuple[tuple[str, QueryClass, str, bool], ...] = (
    ("How do I change the belt on conveyor C4?", "procedural", "steps to change the belt on conveyor C4", True),
    ("Who approves a deviation?", "specific", "who approves a deviation", False),
    ("that smell near the tank, is it bad?", "fuzzy", "hazard of odour near the tank", True),
    ("Which lasts longer, pump A or pump B?", "comparative", "service life of pump A compared with pump B", False),
    ("Write a short safety talk about forklifts.", "creative", "forklift safety rules and hazards", True),
    ("the saw keeps making that weird noise", "fuzzy", "causes of unusual noise of the saw", True),
    ("What is the torque for the bolts on gearbox G-12?", "specific", "torque for the bolts on gearbox G-12", False),
    ("Suggest ideas to reduce waste in packing.", "creative", "ways to reduce waste in packing", True),
    ("What are the steps to calibrate scale S1?", "procedural", "steps to calibrate scale S1", True),
    (
        "Is the old gasket thicker than the new one?",
        "comparative",
        "thickness of the old gasket compared with the new gasket",
        False,
    ),
)

# What was said before, question, class, rewrite, hyde: shown where something was said, since a small model otherwise
# repeats the question as it is. The last changes the subject.
FOLLOW_UPS: tuple[tuple[str, str, QueryClass, str, bool], ...] = (
    (
        "Conversation so far:\nuser: How often does pump B get new oil?\nassistant: Every 500 hours.\n",
        "And its bearing?",
        "specific",
        "bearing of pump B",
        False,
    ),
    (
        "Conversation so far:\nuser: How thick is the gasket of pump A?\nassistant: 2 mm.\n",
        "Is that of pump B thicker?",
        "comparative",
        "thickness of the gasket of pump B compared with the gasket of pump A",
        False,
    ),
    (
        "Conversation so far:\nuser: Which belt has conveyor C4?\nassistant: Belt CB-40.\n",
        "Something else: who orders tyres?",
        "specific",
        "who orders tyres",
        False,
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
PHRASING = """\
You reword questions for a search in technical documents. Each phrasing asks for the same thing in other words: \
synonyms, technical terms, another sentence. Keep every name, number and code. Reply with phrasings."""
PHRASING_EXAMPLES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "How often is the oil of pump A changed?",
        ("oil change interval of pump A", "When does pump A need new oil?", "lubrication schedule pump A"),
    ),
    (
        "Who approves a deviation?",
        (
            "responsible for the approval of deviations",
            "Which role releases a deviation?",
            "deviation release authority",
        ),
    ),
)
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


def understanding_messages(question: str, remembered: Remembered) -> tuple[Message, ...]:
    """Return the chat that asks for class, rewrite and HyDE suggestion; what was said stands before the question."""
    lines = [f"summary: {remembered.summary}\n"] if remembered.summary else []
    lines += [f"{turn.role}: {turn.content}\n" for turn in remembered.turns]
    examples = [("", *example) for example in EXAMPLES] + (list(FOLLOW_UPS) if lines else [])
    shots = (
        (f"{before}Question: {asked}", json.dumps({"class": query_class, "rewritten": rewritten, "hyde": hyde}))
        for before, asked, query_class, rewritten, hyde in examples
    )
    so_far = f"Conversation so far:\n{''.join(lines)}" if lines else ""
    return few_shot(UNDERSTANDING, shots, f"{so_far}Question: {question}")


def hyde_messages(instruction: str, query: str) -> tuple[Message, ...]:
    """Return the chat that asks for a hypothetical document."""
    return few_shot(instruction, (), f"Question: {query}")


def phrasing_messages(query: str, n: int) -> tuple[Message, ...]:
    """Return the chat that asks for `n` other phrasings of the query; the examples show up to three."""
    shots = (
        (f"Question: {asked}\nPhrasings: {min(n, len(others))}", json.dumps({"phrasings": others[:n]}))
        for asked, others in PHRASING_EXAMPLES
    )
    return few_shot(PHRASING, shots, f"Question: {query}\nPhrasings: {n}")


def phrasing_schema(n: int) -> dict[str, Any]:
    """Return the schema of an object with `n` phrasings."""
    phrasings = {"type": "array", "items": {"type": "string", "maxLength": 160}, "minItems": n, "maxItems": n}
    return {
        "type": "object",
        "properties": {"phrasings": phrasings},
        "required": ["phrasings"],
        "additionalProperties": False,
    }
