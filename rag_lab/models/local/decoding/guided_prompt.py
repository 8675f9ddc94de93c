"""A request as a causal model reads it, with the guide of its reply: thought, schema and length within the context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_lab.models.local.decoding.reply_guide import ReplyGuide
from rag_lab.models.local.decoding.schema_matcher import SchemaMatcher
from rag_lab.models.local.decoding.thinking_marks import ThinkingMarks, thinking_marks
from rag_lab.models.local.decoding.thought import Thought
from rag_lab.models.protocols import ChatRequest
from rag_lab.redaction import one_line


class PromptError(Exception):
    """Why a model cannot be asked a request, in a user's words."""


@dataclass(frozen=True, slots=True)
class GuidedPrompt:
    """The tokens that the model reads, and what its reply must keep to."""

    request: ChatRequest
    ids: list[int]
    guide: ReplyGuide


def guided_prompt(tokenizer: Any, ends: tuple[int, ...], request: ChatRequest, context_tokens: int) -> GuidedPrompt:
    """Return prompt and guide of a reply that fits into the context and that one of `ends` ends.

    Where the context is too small for both, the reply keeps its length and the thought gets what is left.

    Raises:
        PromptError: if there is no room for a reply, or the template refuses the messages.
        SchemaError: if its schema cannot be followed.
    """
    ids = _prompt_ids(tokenizer, request)
    marks = thinking_marks(tokenizer)
    opened = marks is not None and marks.opened_in(ids)
    room = context_tokens - len(ids)
    for_reply = room - (len(marks.closing) if marks is not None and opened else 0)
    if for_reply < 1:
        raise PromptError(
            f"The prompt has {len(ids)} tokens and the context holds {context_tokens}; shorten it or choose another "
            "model."
        )
    blind = request.thinking and marks is None and has_switch(tokenizer)  # where its thought ends cannot be known
    max_tokens = min(request.most_tokens_out if blind else request.max_tokens, for_reply)
    thought = None if marks is None else _thought(marks, opened, room - max_tokens, request)
    matcher = None if blind else _matcher(tokenizer, ends, request, marks)
    return GuidedPrompt(request, ids, ReplyGuide(max_tokens, ends, matcher, thought))


def has_switch(tokenizer: Any) -> bool:
    """Return whether the chat template has a thinking switch."""
    return "enable_thinking" in str(tokenizer.chat_template or "")


def can_think(tokenizer: Any) -> bool:
    """Return whether the template has a switch for thinking, or the tokenizer the marks of thought."""
    return has_switch(tokenizer) or thinking_marks(tokenizer) is not None


def _prompt_ids(tokenizer: Any, request: ChatRequest) -> list[int]:
    from jinja2 import TemplateError

    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    switch = {"enable_thinking": request.thinking} if has_switch(tokenizer) else {}
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **switch)
    except TemplateError as error:  # a faulty template, or one that takes no system message
        raise PromptError(f"The model's chat template refuses the messages: {one_line(str(error))}") from error
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]  # the template wrote the special tokens
    return ids


def _thought(marks: ThinkingMarks, opened: bool, room: int, request: ChatRequest) -> Thought | None:
    """Return the thought that a reply may begin with: a prompt may have opened one that nobody asked for."""
    tokens = min(request.thinking_tokens, room)
    wanted = tokens > len(marks.closing)
    return Thought(marks, tokens, opened, request.json_schema is not None) if opened or wanted else None


def _matcher(
    tokenizer: Any, ends: tuple[int, ...], request: ChatRequest, marks: ThinkingMarks | None
) -> SchemaMatcher | None:
    if request.json_schema is None:
        return None
    return SchemaMatcher(request.json_schema, tokenizer, ends, () if marks is None else (marks.open, marks.close))
