"""What is believed of a remote model's reply: its shape, as much text as was asked for, counts of tokens that can be.

A gateway in between may send anything with status 200.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_core import CoreSchema, SchemaValidator, ValidationError, from_json
from pydantic_core import core_schema as shape

from rag_lab.models.protocols import ChatReply, ChatRequest
from rag_lab.models.remote.http import BadReply
from rag_lab.models.truncation import estimated_tokens, request_texts, request_tokens, truncated_in_prompt
from rag_lab.redaction import one_line

_EXCERPT_CHARS = 80
_HEAD_CHARS = 4000  # of a web page, which may open a title a million times and close none
_WEB_PAGE = re.compile(rb"(?i)\s*<(!doctype|html|head|body|\?xml)")
_TITLE = re.compile(r"(?is)<(?:title|h1)[^>]*>(.*?)</(?:title|h1)>")
_CHARS_A_TOKEN = 32  # a word of English has five; a token of spaces may have more than a hundred
_CHARS_AROUND = 1000
_PROMPT_AROUND = 1000  # what a server may put around a prompt
_TOKENS_OF_AN_IMAGE = 50_000  # at the dearest service


def object_of(needed: Mapping[str, CoreSchema], more: Mapping[str, CoreSchema] | None = None) -> CoreSchema:
    """Return the shape of a JSON object that has the keys `needed`; those of `more` may be missing, or null."""
    fields = {key: shape.typed_dict_field(kind) for key, kind in needed.items()}
    for key, kind in (more or {}).items():
        fields[key] = shape.typed_dict_field(shape.nullable_schema(kind), required=False)
    return shape.typed_dict_schema(fields)


TEXT, COUNT, ANY = shape.str_schema(strict=True), shape.int_schema(strict=True), shape.any_schema()
NUMBER = shape.float_schema(allow_inf_nan=False)
VECTOR = shape.list_schema(NUMBER, min_length=1)
_CONTENT = shape.union_schema([TEXT, shape.list_schema(shape.dict_schema(shape.str_schema(), ANY))])
_CHOICE = object_of({"message": object_of({"role": TEXT}, {"content": _CONTENT})}, {"finish_reason": TEXT})
_USAGE = object_of({"prompt_tokens": COUNT, "completion_tokens": COUNT})
_PART = object_of({}, {"text": TEXT, "thought": shape.bool_schema()})
_CANDIDATE = object_of({}, {"content": object_of({}, {"parts": shape.list_schema(_PART)}), "finishReason": TEXT})
_GEMINI_USAGE = object_of({}, dict.fromkeys(("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"), COUNT))
_CANDIDATES = object_of({"candidates": shape.list_schema(_CANDIDATE, min_length=1)}, {"usageMetadata": _GEMINI_USAGE})
_BLOCKED = SchemaValidator(object_of({"promptFeedback": object_of({"blockReason": TEXT})}))


def check_lengths(rows: Sequence[Sequence[float]]) -> None:
    """Check that the vectors of a batch have one length."""
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        raise BadReply(f"the server answered with embeddings of different lengths ({lengths[0]} and {lengths[-1]})")


def check_of(kind: CoreSchema, what: str, check: Callable[[Any], None] | None = None) -> Callable[[bytes], None]:
    """Return the check of a reply's body: that it has this shape, which users call `what`, and passes `check`."""
    reader = SchemaValidator(kind)

    def check_body(content: bytes) -> None:
        try:
            found = reader.validate_json(content)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
        else:
            return check(found) if check else None
        if problem["type"] == "json_invalid":
            raise BadReply(_not_json(content))
        body = from_json(content)
        told = body.get("error") if isinstance(body, dict) else None  # what some gateways send with status 200
        if isinstance(told, dict):
            told = told.get("message", told)
        if told:
            raise BadReply(f"the server answered with an error under status 200: {one_line(str(told))}")
        where = ".".join(map(str, problem["loc"]))
        raise BadReply(f"the server answered JSON that is no {what} ({f'{where}: ' if where else ''}{problem['msg']})")

    return check_body


def _not_json(content: bytes) -> str:
    if not content.strip():
        return "the server answered with nothing instead of JSON"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "the server answered with bytes that are not UTF-8 text instead of JSON"
    if _WEB_PAGE.match(content):
        title = _TITLE.search(text[:_HEAD_CHARS])
        return "the server answered with a web page instead of JSON" + (
            f": {one_line(title[1], _EXCERPT_CHARS)}" if title else ""
        )
    if text.lstrip().startswith(("data:", "event:")):
        return "the server sent a stream of events where one reply was asked for"
    if text.lstrip().startswith("{") and not text.rstrip().endswith("}"):
        return f"the server's reply ends in the middle: {one_line(text, _EXCERPT_CHARS)!r}"
    return f"the server answered with something that is not JSON: {one_line(text, _EXCERPT_CHARS)!r}"


check_completion = check_of(
    object_of({"choices": shape.list_schema(_CHOICE, min_length=1)}, {"usage": _USAGE}), "chat completion"
)
_check_candidates = check_of(_CANDIDATES, "reply of Gemini")
check_embeddings = check_of(
    object_of({"embeddings": shape.list_schema(object_of({"values": VECTOR}), min_length=1)}),
    "batch of embeddings",
    lambda found: check_lengths([each["values"] for each in found["embeddings"]]),
)


def check_candidates(content: bytes) -> None:
    """Check the body of a Gemini reply: candidates, or why the prompt was blocked."""
    try:
        _BLOCKED.validate_json(content)
    except ValidationError:
        _check_candidates(content)


def bounded(request: ChatRequest, reply: ChatReply) -> ChatReply:
    """Return `reply` without what goes far beyond `request.most_tokens_out`, `truncated` where that was cut off."""
    most = _CHARS_A_TOKEN * request.most_tokens_out + _CHARS_AROUND
    if max(len(reply.text), len(reply.thinking)) <= most:
        return reply
    return replace(reply, text=reply.text[:most], thinking=reply.thinking[:most], truncated=True)


def counted(request: ChatRequest, reply: ChatReply) -> tuple[ChatReply, str]:
    """Return `reply` with counts of tokens that can be, and why they are estimates ('' where they are the server's).

    No token is shorter than a byte, so the server cannot have read more tokens than bytes were sent, nor written more
    than it was allowed to or than bytes have come. An estimate is an upper one, within what the request allows. Where
    the server's own count is less than what was sent, the rest is `truncated_tokens`.
    """
    n_sent = sum(len(text.encode()) for text in request_texts(request)) + _PROMPT_AROUND
    n_sent += _TOKENS_OF_AN_IMAGE * sum(len(message.images) for message in request.messages)
    written = reply.text + reply.thinking
    most_out = max(request.most_tokens_out, len(written.encode()))
    if 0 < reply.tokens_in <= n_sent and 0 <= reply.tokens_out <= most_out:
        unread = reply.truncated_tokens or truncated_in_prompt(request, reply.tokens_in)
        return replace(reply, thinking_tokens=_thinking_tokens(reply), truncated_tokens=unread), ""
    told = f"{reply.tokens_in} read, {reply.tokens_out} written"
    estimate = replace(
        reply, tokens_in=request_tokens(request), tokens_out=min(estimated_tokens(written), request.most_tokens_out)
    )
    estimate = replace(estimate, thinking_tokens=_thinking_tokens(replace(estimate, thinking_tokens=0)))
    return estimate, f"the server's counts of tokens are missing or cannot be ({told})"


def _thinking_tokens(reply: ChatReply) -> int:
    """Return what the server counted as thinking, or where it does not tell, the thought's share by estimate."""
    if 0 < reply.thinking_tokens <= reply.tokens_out:
        return reply.thinking_tokens
    n_thought, n_text = estimated_tokens(reply.thinking), estimated_tokens(reply.text)
    return round(reply.tokens_out * n_thought / (n_thought + n_text)) if n_thought else 0
