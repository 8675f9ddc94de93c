"""What a successful HTTP reply of a provider must look like. A gateway in between may send anything with status 200."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, FiniteFloat, StrictInt, StrictStr, TypeAdapter, ValidationError

from rag_lab.models.remote.failures import BadReply
from rag_lab.redaction import one_line

Shape = TypeVar("Shape")
_EXCERPT_CHARS = 80
_HEAD_CHARS = 4000  # of a web page, which may open a title a million times and close none
_WEB_PAGE = re.compile(rb"(?i)\s*<(!doctype|html|head|body|\?xml)")
_TITLE = re.compile(r"(?is)<(?:title|h1)[^>]*>(.*?)</(?:title|h1)>")


class _Any(BaseModel):
    error: Any = None  # what some gateways put into a reply with status 200


class _Message(BaseModel):
    role: StrictStr
    content: StrictStr | list[dict[str, Any]] | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: StrictStr | None = None


class _Usage(BaseModel):
    prompt_tokens: StrictInt
    completion_tokens: StrictInt


class _Completion(BaseModel):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: _Usage | None = None


class _Part(BaseModel):
    text: StrictStr | None = None
    thought: bool | None = None


class _Content(BaseModel):
    parts: list[_Part] | None = None


class _Candidate(BaseModel):
    content: _Content | None = None
    finishReason: StrictStr | None = None  # noqa: N815 - the service's name


class _GeminiUsage(BaseModel):
    promptTokenCount: StrictInt | None = None  # noqa: N815
    candidatesTokenCount: StrictInt | None = None  # noqa: N815
    thoughtsTokenCount: StrictInt | None = None  # noqa: N815


class _Candidates(BaseModel):
    candidates: Annotated[list[_Candidate], Field(min_length=1)]
    usageMetadata: _GeminiUsage | None = None  # noqa: N815


class _Feedback(BaseModel):
    blockReason: StrictStr  # noqa: N815


class _Blocked(BaseModel):
    promptFeedback: _Feedback  # noqa: N815


class _Values(BaseModel):
    values: Annotated[list[FiniteFloat], Field(min_length=1)]


class _Embeddings(BaseModel):
    embeddings: Annotated[list[_Values], Field(min_length=1)]


def check_candidates(content: bytes) -> None:
    """Check the body of a Gemini reply: candidates, or why the prompt was blocked."""
    try:
        _Blocked.model_validate_json(content)
    except ValidationError:
        read_as(content, _Candidates, "reply of Gemini")


def check_embeddings(content: bytes) -> None:
    """Check the body of a batch of Gemini's embeddings: finite vectors of one length."""
    found = read_as(content, _Embeddings, "batch of embeddings")
    check_lengths([each.values for each in found.embeddings])


def check_lengths(rows: Sequence[Sequence[float]]) -> None:
    """Check that the vectors of a batch have one length."""
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        raise BadReply(f"the server answered with embeddings of different lengths ({lengths[0]} and {lengths[-1]})")


def read_as(content: bytes, shape: type[Shape], what: str) -> Shape:
    """Return a reply's body as `shape`, which users call `what`.

    Raises:
        BadReply: if it is anything else, in a user's words.
    """
    try:
        return TypeAdapter(shape).validate_json(content)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
    if problem["type"] == "json_invalid":
        raise BadReply(_not_json(content))
    told = _error_text(content)
    if told:
        raise BadReply(f"the server answered with an error under status 200: {told}")
    where = ".".join(map(str, problem["loc"]))
    raise BadReply(f"the server answered with JSON that is no {what} ({f'{where}: ' if where else ''}{problem['msg']})")


def check_of(shape: Any, what: str) -> Callable[[bytes], None]:
    """Return the check of a reply's body: that it is of `shape`, which users call `what`; see `read_as`."""

    def check(content: bytes) -> None:
        read_as(content, shape, what)

    return check


def _error_text(content: bytes) -> str:
    """Return the words of an error inside the reply, or ''."""
    try:
        error = _Any.model_validate_json(content).error
    except ValidationError:
        return ""
    message = error.get("message", error) if isinstance(error, dict) else error
    return one_line(str(message)) if message else ""


def _not_json(content: bytes) -> str:
    said = partial(one_line, limit_chars=_EXCERPT_CHARS)
    if not content.strip():
        return "the server answered with nothing instead of JSON"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "the server answered with bytes that are not UTF-8 text instead of JSON"
    if _WEB_PAGE.match(content):
        title = _TITLE.search(text[:_HEAD_CHARS])
        return "the server answered with a web page instead of JSON" + (f": {said(title[1])}" if title else "")
    if text.lstrip().startswith(("data:", "event:")):
        return "the server sent a stream of events where one reply was asked for"
    if text.lstrip().startswith("{") and not text.rstrip().endswith("}"):
        return f"the server's reply ends in the middle: {said(text)!r}"
    return f"the server answered with something that is not JSON: {said(text)!r}"


check_completion = check_of(_Completion, "chat completion")  # of OpenAI's interface
