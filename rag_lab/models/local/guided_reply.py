"""Guides a reply as it is written: a thought within its budget, then the reply, held to its schema."""

from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rag_lab.models.local.schema_matcher import SchemaMatcher
from rag_lab.models.protocols import ChatRequest
from rag_lab.redaction import one_line

_OPEN, _CLOSE = "<think>", "</think>"
_NEVER = -float("inf")


@dataclass(frozen=True, slots=True)
class ThinkingMarks:
    """`closing` ends a thought that has no end of its own, and `after` stands between a thought and a reply."""

    open: int
    close: int
    closing: tuple[int, ...]
    after: tuple[int, ...]

    def opened_in(self, prompt: list[int]) -> bool:
        """Tell whether the prompt leaves a thought open, as templates of models do that always think."""
        return next((token for token in reversed(prompt) if token in (self.open, self.close)), None) == self.open


@lru_cache(maxsize=4)
def thinking_marks(tokenizer: Any) -> ThinkingMarks | None:
    """Return the marks, or None for a tokenizer that has no token for each."""
    vocabulary = tokenizer.get_vocab()
    if _OPEN not in vocabulary or _CLOSE not in vocabulary:
        return None
    line, after = (tuple(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in ("\n", "\n\n"))
    return ThinkingMarks(vocabulary[_OPEN], vocabulary[_CLOSE], (*line, vocabulary[_CLOSE], *after), after)


class Thought:
    """A thought of at most `tokens`, its marks included, that the prompt has `opened` or the model may open first.

    Where it has not ended by itself, its closing mark is written at the end of its budget. `spaced` asks for the line
    break after a closed thought that templates write, where the model itself may not write it.
    """

    def __init__(self, marks: ThinkingMarks, tokens: int, opened: bool, spaced: bool) -> None:
        self.length = 0
        self.is_open = opened
        self.most_tokens = max(tokens, len(marks.closing))
        self._marks = marks
        self._budget = tokens
        self._spaced = spaced
        self._forced: deque[int] = deque()
        self._close_in_time()

    @property
    def opening(self) -> int | None:
        """The token by which the model may open it now, or None."""
        return None if self.is_open or self.length else self._marks.open

    @property
    def forced(self) -> int | None:
        """The one token that may come next, or None where the model is free."""
        return self._forced[0] if self._forced else None

    def take(self, token: int) -> None:
        """Go on by a token of the thought."""
        self.is_open = True
        self.length += 1
        if self._forced:
            self._forced.popleft()
            self.is_open = bool(self._forced)
        elif token == self._marks.close:
            self._forced.extend(self._marks.after if self._spaced else ())
            self.is_open = bool(self._forced)
        else:
            self._close_in_time()

    def _close_in_time(self) -> None:
        if self.is_open and self.length >= self._budget - len(self._marks.closing):
            self._forced.extend(self._marks.closing)


class ReplyGuide:
    """Says which token may come next, and when the reply is over; every token is told to it by `take`.

    `max_tokens` is of the reply alone. `ends` are the tokens that end it, which a thought cannot.
    """

    def __init__(
        self,
        max_tokens: int,
        ends: tuple[int, ...],
        matcher: SchemaMatcher | None = None,
        thought: Thought | None = None,
    ) -> None:
        self.thought_ids: list[int] = []  # with the marks
        self.reply_ids: list[int] = []
        self.over = False
        self.truncated = False  # the reply had no room left
        self.most_tokens = max_tokens + (0 if thought is None else thought.most_tokens)
        self._max_tokens = max_tokens
        self._ends = ends
        self._matcher = matcher
        self._thought = thought

    @property
    def problem(self) -> str:
        """Why the reply could not be held to its schema to the end, or ''."""
        return "" if self._matcher is None else self._matcher.problem

    def restrict(self, scores: Any) -> None:
        """Take from `scores`, a tensor (vocabulary,), every token that may not come next."""
        thought = self._thought
        if self.over:
            return
        if thought is not None and thought.forced is not None:
            scores.fill_(_NEVER)
            scores[thought.forced] = 0.0
        elif thought is not None and thought.is_open:
            scores[list(self._ends)] = _NEVER
        elif self._matcher is not None:
            import torch

            allowed = self._matcher.allowed(scores.shape[0])
            if self._opening is not None:
                allowed[self._opening] = True
            scores.masked_fill_(~torch.from_numpy(allowed).to(scores.device), _NEVER)

    def take(self, token: int) -> None:
        """Go on by the token that was written."""
        thought = self._thought
        if self.over:
            return
        if thought is not None and (thought.is_open or token == self._opening):
            thought.take(token)
            self.thought_ids.append(token)
            return
        self.reply_ids.append(token)
        if token in self._ends:
            self.over = True
            return
        if self._matcher is not None:
            self._matcher.take(token)
            self.over = self._matcher.complete
        if not self.over and len(self.reply_ids) >= self._max_tokens:
            self.over = self.truncated = True

    @property
    def _opening(self) -> int | None:
        return None if self._thought is None or self.reply_ids else self._thought.opening


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

    Where the context is too small for both, the reply keeps its length and the thought gets what is left. Raises
    `PromptError`, or `SchemaError` where its schema cannot be followed.
    """
    from jinja2 import TemplateError

    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    switch = {"enable_thinking": request.thinking} if has_switch(tokenizer) else {}
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **switch)
    except TemplateError as error:  # a faulty template, or one that takes no system message
        raise PromptError(f"The model's chat template refuses the messages: {one_line(str(error))}") from error
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]  # the template wrote the special tokens
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
    thought, matcher = None, None
    if marks is not None:
        tokens = min(request.thinking_tokens, room - max_tokens)
        if opened or tokens > len(marks.closing):  # a prompt may have opened a thought that nobody asked for
            thought = Thought(marks, tokens, opened, request.json_schema is not None)
    if not blind and request.json_schema is not None:
        barred = () if marks is None else (marks.open, marks.close)
        matcher = SchemaMatcher(request.json_schema, tokenizer, ends, barred)
    return GuidedPrompt(request, ids, ReplyGuide(max_tokens, ends, matcher, thought))


def has_switch(tokenizer: Any) -> bool:
    """Return whether the chat template has a thinking switch."""
    return "enable_thinking" in str(tokenizer.chat_template or "")


def can_think(tokenizer: Any) -> bool:
    """Return whether the template has a switch for thinking, or the tokenizer the marks of thought."""
    return has_switch(tokenizer) or thinking_marks(tokenizer) is not None
