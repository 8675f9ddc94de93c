"""Guides a reply as it is written: a thought within its budget, then the reply, held to its JSON schema (llguidance).

Between its tokens the JSON has the spaces that `json.dumps` writes and no others: a small model that may write spaces
freely can go on writing them to the end of its budget.
"""

import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_lab.models.protocols import ChatRequest
from rag_lab.models.requirements import require_package
from rag_lab.redaction import one_line

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_WORD_START = "▁"  # how SentencePiece writes a space
_UNFIT = "The reply cannot be held to its schema: {}"
_SPACES = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


class PromptError(Exception):
    """Why a model cannot be asked a request, or a reply not held to its schema, in a user's words."""


def token_bytes(tokenizer: Any) -> list[bytes] | None:
    """Return what each token writes, by its number, or None where the tokenizer is of neither common kind.

    Byte-level BPE (GPT-2, Qwen, SmolLM, Llama 3) has a letter for each byte; SentencePiece (Gemma, Llama 2, Mistral)
    marks spaces and has tokens for single bytes. A number without a token writes nothing.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return None
    todo, steps = [json.loads(backend.to_str()).get("decoder") or {}], set()
    while todo:
        step = todo.pop()
        steps.add(step.get("type", ""))
        todo += step.get("decoders", ())
    # GPT-2's alphabet: printable bytes are themselves, others from 256 on (Radford et al. 2019, `encoder.py`)
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}
    written: dict[int, bytes] = {}
    for token, number in tokenizer.get_vocab().items():
        if "ByteLevel" in steps:  # one with a letter outside of the alphabet was added, and is written as it stands
            is_added = any(letter not in alphabet for letter in token)
            written[number] = token.encode() if is_added else bytes(alphabet[letter] for letter in token)
        elif steps & {"ByteFallback", "Metaspace", "Replace"}:
            single = _BYTE_TOKEN.fullmatch(token)
            written[number] = bytes([int(single[1], 16)]) if single else token.replace(_WORD_START, " ").encode()
        else:
            return None
    return [written.get(number, b"") for number in range(max(written) + 1)]


class SchemaMatcher:
    """One reply's way through a schema. `ends` are the tokens that end a reply, `barred` those it may never hold."""

    def __init__(
        self, schema: Mapping[str, Any], tokenizer: Any, ends: tuple[int, ...], barred: tuple[int, ...] = ()
    ) -> None:
        library = require_package("llguidance", "llguidance")
        try:
            grammar = library.LLMatcher.grammar_from_json_schema(json.dumps(dict(schema)), overrides=_SPACES)
            vocabulary = _vocabulary(tokenizer, ends, barred)
        except ValueError as error:
            raise PromptError(_UNFIT.format(one_line(str(error)))) from error
        self._matcher = library.LLMatcher(vocabulary, grammar, log_level=0)
        if self.problem:
            raise PromptError(self.problem)

    @property
    def problem(self) -> str:
        """Why the schema cannot be followed, or no further, or ''."""
        return _UNFIT.format(one_line(self._matcher.get_error())) if self._matcher.is_error() else ""

    def allowed(self, width: int) -> npt.NDArray[np.bool_]:
        """Return for each of `width` tokens whether it may come next."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        known = np.unpackbits(bits, bitorder="little")[:width].astype(bool)
        return np.pad(known, (0, width - len(known)))  # a model may have room for more tokens than its tokenizer has

    def take(self, token: int) -> None:
        """Go on by a token that was allowed."""
        self._matcher.consume_token(token)

    @property
    def complete(self) -> bool:
        """Whether the JSON is whole and nothing can follow it."""
        return bool(self._matcher.is_stopped())


@lru_cache(maxsize=4)
def _vocabulary(tokenizer: Any, ends: tuple[int, ...], barred: tuple[int, ...]) -> Any:
    """Return the tokens as llguidance knows them; to build them takes half a second."""
    library = require_package("llguidance", "llguidance")
    written = token_bytes(tokenizer)
    if written is None:
        raise PromptError("The tokenizer does not say which bytes its tokens write, so no reply can follow a schema.")

    def tokens(text: str | bytes) -> list[int]:
        text = text if isinstance(text, str) else text.decode("utf-8", "ignore")
        ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    special = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special} | {*ends, *barred}
    # what llguidance reads of a tokenizer, next to calling it
    vars(tokens).update(bos_token_id=None, eos_token_id=ends[0], tokens=written, special_token_ids=sorted(special))
    return library.LLTokenizer(library.TokenizerWrapper(tokens), eos_token=list(ends))


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
        self.forced: deque[int] = deque()  # tokens that must come next; none where the model is free
        self._close_in_time()

    @property
    def opening(self) -> int | None:
        """The token by which the model may open it now, or None."""
        return None if self.is_open or self.length else self._marks.open

    def take(self, token: int) -> None:
        """Go on by a token of the thought."""
        self.is_open = True
        self.length += 1
        if self.forced:
            self.forced.popleft()
            self.is_open = bool(self.forced)
        elif token == self._marks.close:
            self.forced.extend(self._marks.after if self._spaced else ())
            self.is_open = bool(self.forced)
        else:
            self._close_in_time()

    def _close_in_time(self) -> None:
        if self.is_open and self.length >= self._budget - len(self._marks.closing):
            self.forced.extend(self._marks.closing)


@dataclass(eq=False)
class ReplyGuide:
    """Says which token may come next, and when a reply of `max_tokens`, ended by `ends`, is over; `take` tells it."""

    max_tokens: int
    ends: tuple[int, ...]
    matcher: SchemaMatcher | None = None
    thought: Thought | None = None
    thought_ids: list[int] = field(default_factory=list, init=False)  # with the marks
    reply_ids: list[int] = field(default_factory=list, init=False)
    over: bool = field(default=False, init=False)
    truncated: bool = field(default=False, init=False)  # the reply had no room left

    def __post_init__(self) -> None:
        self.most_tokens = self.max_tokens + (0 if self.thought is None else self.thought.most_tokens)

    def restrict(self, scores: Any) -> None:
        """Take from `scores`, a tensor (vocabulary,), every token that may not come next."""
        thought = self.thought
        if self.over:
            return
        if thought is not None and thought.forced:
            scores.fill_(_NEVER)
            scores[thought.forced[0]] = 0.0
        elif thought is not None and thought.is_open:
            scores[list(self.ends)] = _NEVER
        elif self.matcher is not None:
            import torch

            allowed = self.matcher.allowed(scores.shape[0])
            if self._opening is not None:
                allowed[self._opening] = True
            scores.masked_fill_(~torch.from_numpy(allowed).to(scores.device), _NEVER)

    def take(self, token: int) -> None:
        """Go on by the token that was written."""
        thought = self.thought
        if self.over:
            return
        if thought is not None and (thought.is_open or token == self._opening):
            thought.take(token)
            self.thought_ids.append(token)
            return
        self.reply_ids.append(token)
        if token in self.ends:
            self.over = True
            return
        if self.matcher is not None:
            self.matcher.take(token)
            self.over = self.matcher.complete
        if not self.over and len(self.reply_ids) >= self.max_tokens:
            self.over = self.truncated = True

    @property
    def _opening(self) -> int | None:
        return None if self.thought is None or self.reply_ids else self.thought.opening


def guided_prompt(
    tokenizer: Any, ends: tuple[int, ...], request: ChatRequest, context_tokens: int
) -> tuple[list[int], ReplyGuide]:
    """Return the tokens of the prompt, and the guide of a reply that fits into the context and that one of `ends` ends.

    Where the context is too small for both, the reply keeps its length and the thought gets what is left. Raises
    `PromptError`, also where its schema cannot be followed.
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
    return ids, ReplyGuide(max_tokens, ends, matcher, thought)


def has_switch(tokenizer: Any) -> bool:
    """Return whether the chat template has a thinking switch."""
    return "enable_thinking" in str(tokenizer.chat_template or "")


def can_think(tokenizer: Any) -> bool:
    """Return whether the template has a switch for thinking, or the tokenizer the marks of thought."""
    return has_switch(tokenizer) or thinking_marks(tokenizer) is not None
