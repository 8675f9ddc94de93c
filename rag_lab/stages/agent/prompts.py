"""What the nodes of agents are asked. Results are remembered by `VERSION`: change it with the wording."""

from collections.abc import Sequence

from rag_lab.models.protocols import Message
from rag_lab.records import Trace
from rag_lab.stages.chat_template import SHIPPED_PROMPTS
from rag_lab.stages.context import render_passages
from rag_lab.stages.generate import earlier_messages
from rag_lab.stages.stage import shipped_chat

VERSION = 1
NOTHING = "none yet"

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
    return shipped_chat("supervisor", asked, earlier_messages(trace.remembered))


def tool_messages(trace: Trace, namespaces: Sequence[str]) -> tuple[Message, ...]:
    """Return the chat that asks for a call of the tool."""
    asked = f"{_question(trace)}\n\nNamespaces: {', '.join(namespaces)}\n\n{_passages(trace)}\n\n{_searched(trace)}"
    return shipped_chat("tool_call", asked, earlier_messages(trace.remembered))


def grade_messages(trace: Trace) -> tuple[Message, ...]:
    """Return the chat that asks which passages are relevant."""
    return shipped_chat("grade", f"{_question(trace)}\n\n{_passages(trace)}")


def refine_messages(trace: Trace) -> tuple[Message, ...]:
    """Return the chat that asks for another query."""
    return shipped_chat("refine", f"{_question(trace)}\n\n{_searched(trace)}")


def self_search_messages(trace: Trace) -> tuple[Message, ...]:
    """Return the chat so far of a model that searches by itself: what it wrote, and what each search found."""
    messages = [
        Message("system", SHIPPED_PROMPTS["self_search"]["system"]),
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
