"""What the nodes of agents are asked. Results are remembered by `VERSION`: change it with the wording."""

from collections.abc import Sequence

from rag_lab.models.protocols import Message
from rag_lab.records import Trace
from rag_lab.stages.chat_template import SHIPPED_PROMPTS
from rag_lab.stages.context import render_passages
from rag_lab.stages.generate import earlier_messages
from rag_lab.stages.stage import object_schema, shipped_chat

VERSION = 1
NOTHING = "none yet"
_PARTS = {  # what each node is shown, in order
    "supervisor": ("question", "passages", "answer"),
    "tool_call": ("question", "namespaces", "passages", "searched"),
    "grade": ("question", "passages"),
    "refine": ("question", "searched"),
}
_WITH_EARLIER = ("supervisor", "tool_call")  # which also read the conversation

DECISION = object_schema(next={"type": "string", "enum": ["context", "generate", "finish"]})
GRADES = object_schema(relevant={"type": "array", "items": {"type": "integer"}, "maxItems": 100})
QUERY = object_schema(query={"type": "string"})


def node_messages(node: str, trace: Trace, namespaces: Sequence[str] = ()) -> tuple[Message, ...]:
    """Return the chat of a node: where to go next, a call of the tool, which passages are relevant, another query."""
    queries = [visit.query for visit in trace.visits if visit.node == "search"] or [trace.search_query or ""]
    answer = trace.answer.text if trace.answer else NOTHING
    says = {
        "question": f"Question: {trace.question.text}",
        "namespaces": f"Namespaces: {', '.join(namespaces)}",
        "passages": f"Passages:\n{render_passages(trace.passages) or NOTHING}",
        "searched": f"Searched: {'; '.join(filter(None, queries)) or NOTHING}",
        "answer": f"Answer: {answer}",
    }
    earlier = earlier_messages(trace.remembered) if node in _WITH_EARLIER else ()
    return shipped_chat(node, "\n\n".join(says[part] for part in _PARTS[node]), earlier)


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
