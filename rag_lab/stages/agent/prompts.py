"""What the nodes of agents are asked. Results are remembered by `VERSION`: change it with the wording."""

from collections.abc import Sequence

from rag_lab.models.protocols import Message
from rag_lab.records import Trace
from rag_lab.stages.context import render_passages
from rag_lab.stages.generate import earlier_messages
from rag_lab.stages.stage import few_shot

VERSION = 1
NOTHING = "none yet"

_SUPERVISOR = """\
You direct two workers that answer a question from documents: "context" searches for more passages, "generate" writes \
an answer from the passages so far. Reply with a JSON object {"next": "context" | "generate" | "finish"}. Finish once \
the answer is complete and says only what the passages say."""
_SUPERVISOR_EXAMPLES = (
    ("Question: How often does pump B get new oil?\n\nPassages:\nnone yet\n\nAnswer: none yet", '{"next": "context"}'),
    (
        "Question: How often does pump B get new oil?\n\nPassages:\n[1] (pumps.pdf, page 9)\nPump B: oil change every "
        "500 hours.\n\nAnswer: none yet",
        '{"next": "generate"}',
    ),
    (
        "Question: How often does pump B get new oil?\n\nPassages:\n[1] (pumps.pdf, page 9)\nPump B: oil change every "
        "500 hours.\n\nAnswer: Every 500 hours.",
        '{"next": "finish"}',
    ),
)

_TOOL = """\
You search documents for what a question needs and the passages so far do not say. Reply with a JSON object that \
calls the tool search(query, namespace): {"query": "words to search", "namespace": "one of those listed"}. Where \
nothing is missing, reply with an empty query."""
_TOOL_EXAMPLES = (
    (
        "Question: Who orders a tyre for the forklift?\n\nNamespaces: all\n\nPassages:\nnone yet\n\nSearched: none yet",
        '{"query": "forklift tyre order", "namespace": "all"}',
    ),
    (
        "Question: Who orders a tyre for the forklift?\n\nNamespaces: all\n\nPassages:\n[1] (minutes.md)\nMr Okoro "
        "will order a spare tyre for the forklift.\n\nSearched: forklift tyre order",
        '{"query": "", "namespace": "all"}',
    ),
)

_GRADE = """\
You judge which of the numbered passages help to answer a question. Reply with a JSON object that holds the numbers of \
those that do: {"relevant": [1, 3]}; an empty list where none does."""
_GRADE_EXAMPLES = (
    (
        "Question: How often does pump B get new oil?\n\nPassages:\n[1] (pumps.pdf, page 4)\nPump A: bearing BR-20.\n\n"
        "[2] (pumps.pdf, page 9)\nPump B: oil change every 500 hours.",
        '{"relevant": [2]}',
    ),
    (
        "Question: Who orders the tyre?\n\nPassages:\n[1] (pumps.pdf, page 4)\nPump A: bearing BR-20.",
        '{"relevant": []}',
    ),
)

_REFINE = """\
A search found nothing that helps to answer a question. Write another query with other words for the same things. \
Reply with a JSON object {"query": "words to search"}."""
_REFINE_EXAMPLES = (
    ("Question: How often does pump B get new oil?\n\nSearched: new oil", '{"query": "pump B lubrication interval"}'),
)

_SELF_SEARCH = """\
Answer the question. Whenever you lack knowledge, search documents by writing <search>words to search</search>; what \
is found comes back between <information> and </information>, numbered. Search as often as you need. Then write \
<answer>a short answer with the numbers of its passages, as [1]</answer>."""

DECISION = {
    "type": "object",
    "properties": {"next": {"type": "string", "enum": ["context", "generate", "finish"]}},
    "required": ["next"],
    "additionalProperties": False,
}
GRADES = {
    "type": "object",
    "properties": {"relevant": {"type": "array", "items": {"type": "integer"}, "maxItems": 100}},
    "required": ["relevant"],
    "additionalProperties": False,
}
QUERY = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
    "additionalProperties": False,
}


def supervisor_messages(trace: Trace) -> tuple[Message, ...]:
    """Return the chat that asks where to go next."""
    answer = trace.answer.text if trace.answer else NOTHING
    asked = f"{_question(trace)}\n\n{_passages(trace)}\n\nAnswer: {answer}"
    return few_shot(_SUPERVISOR, _SUPERVISOR_EXAMPLES, asked, earlier_messages(trace.remembered))


def tool_messages(trace: Trace, namespaces: Sequence[str]) -> tuple[Message, ...]:
    """Return the chat that asks for a call of the tool."""
    asked = f"{_question(trace)}\n\nNamespaces: {', '.join(namespaces)}\n\n{_passages(trace)}\n\n{_searched(trace)}"
    return few_shot(_TOOL, _TOOL_EXAMPLES, asked, earlier_messages(trace.remembered))


def grade_messages(trace: Trace) -> tuple[Message, ...]:
    """Return the chat that asks which passages are relevant."""
    return few_shot(_GRADE, _GRADE_EXAMPLES, f"{_question(trace)}\n\n{_passages(trace)}")


def refine_messages(trace: Trace) -> tuple[Message, ...]:
    """Return the chat that asks for another query."""
    return few_shot(_REFINE, _REFINE_EXAMPLES, f"{_question(trace)}\n\n{_searched(trace)}")


def self_search_messages(trace: Trace) -> tuple[Message, ...]:
    """Return the chat so far of a model that searches by itself: what it wrote, and what each search found."""
    messages = [
        Message("system", _SELF_SEARCH),
        *earlier_messages(trace.remembered),
        Message("user", f"Question: {trace.question.text}"),
    ]
    shown = 0
    for visit in trace.visits:
        if visit.node == "search":
            found = trace.passages[shown : shown + visit.n_new]
            shown += visit.n_new
            text = render_passages(found) or visit.says
            messages.append(Message("user", f"<information>\n{text}\n</information>"))
        else:
            messages.append(Message("assistant", visit.says))
    return tuple(messages)


def _question(trace: Trace) -> str:
    return f"Question: {trace.question.text}"


def _passages(trace: Trace) -> str:
    return f"Passages:\n{render_passages(trace.passages) or NOTHING}"


def _searched(trace: Trace) -> str:
    queries = [visit.query for visit in trace.visits if visit.node == "search"] or [trace.search_query or ""]
    return f"Searched: {'; '.join(filter(None, queries)) or NOTHING}"
