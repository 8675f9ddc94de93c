"""What is believed of a remote model's reply: its shape, as much text as was asked for, counts of tokens that can be.

A gateway in between may send anything with status 200.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, NotRequired, TypeVar

from pydantic import Field, FiniteFloat, StrictInt, StrictStr, ValidationError
from typing_extensions import TypedDict

from rag_lab._kit.config_file import adapter_of
from rag_lab.models.protocols import ChatReply, ChatRequest
from rag_lab.models.remote.failures import BadReply
from rag_lab.models.truncation import estimated_tokens, request_texts, request_tokens, truncated_in_prompt
from rag_lab.redaction import one_line

Shape = TypeVar("Shape")
_EXCERPT_CHARS = 80
_HEAD_CHARS = 4000  # of a web page, which may open a title a million times and close none
_WEB_PAGE = re.compile(rb"(?i)\s*<(!doctype|html|head|body|\?xml)")
_TITLE = re.compile(r"(?is)<(?:title|h1)[^>]*>(.*?)</(?:title|h1)>")


_Text = StrictStr | None
_Count = StrictInt | None
Vector = Annotated[list[FiniteFloat], Field(min_length=1)]
_CHARS_A_TOKEN = 32  # a word of English has five; a token of spaces may have more than a hundred
_CHARS_AROUND = 1000
_PROMPT_AROUND = 1000  # what a server may put around a prompt
_TOKENS_OF_AN_IMAGE = 50_000  # at the dearest service


class _Message(TypedDict):
    role: StrictStr
    content: NotRequired[StrictStr | list[dict[str, Any]] | None]


class _Choice(TypedDict):
    message: _Message
    finish_reason: NotRequired[_Text]


class _Usage(TypedDict):
    prompt_tokens: StrictInt
    completion_tokens: StrictInt


class _Completion(TypedDict):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: NotRequired[_Usage | None]


class _Part(TypedDict):
    text: NotRequired[_Text]
    thought: NotRequired[bool | None]


class _Content(TypedDict):
    parts: NotRequired[list[_Part] | None]


class _Candidate(TypedDict):
    content: NotRequired[_Content | None]
    finishReason: NotRequired[_Text]


class _GeminiUsage(TypedDict):
    promptTokenCount: NotRequired[_Count]
    candidatesTokenCount: NotRequired[_Count]
    thoughtsTokenCount: NotRequired[_Count]


class _Candidates(TypedDict):
    candidates: Annotated[list[_Candidate], Field(min_length=1)]
    usageMetadata: NotRequired[_GeminiUsage | None]


class _Feedback(TypedDict):
    blockReason: StrictStr


class _Blocked(TypedDict):
    promptFeedback: _Feedback


class _Values(TypedDict):
    values: Vector


class _Embeddings(TypedDict):
    embeddings: Annotated[list[_Values], Field(min_length=1)]


def check_candidates(content: bytes) -> None:
    """Check the body of a Gemini reply: candidates, or why the prompt was blocked."""
    try:
        adapter_of(_Blocked).validate_json(content)
    except ValidationError:
        read_as(content, _Candidates, "reply of Gemini")


def check_embeddings(content: bytes) -> None:
    """Check the body of a batch of Gemini's embeddings: finite vectors of one length."""
    found = read_as(content, _Embeddings, "batch of embeddings")
    check_lengths([each["values"] for each in found["embeddings"]])


def check_lengths(rows: Sequence[Sequence[float]]) -> None:
    """Check that the vectors of a batch have one length."""
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        raise BadReply(f"the server answered with embeddings of different lengths ({lengths[0]} and {lengths[-1]})")


def read_as(content: bytes, shape: type[Shape], what: str) -> Shape:
    """Return a reply's body as `shape`, which users call `what`."""
    try:
        found: Shape = adapter_of(shape).validate_json(content)
        return found
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
    if problem["type"] == "json_invalid":
        raise BadReply(_not_json(content))
    body = adapter_of(Any).validate_json(content)
    told = body.get("error") if isinstance(body, dict) else None  # what some gateways send with status 200
    if isinstance(told, dict):
        told = told.get("message", told)
    if told:
        raise BadReply(f"the server answered with an error under status 200: {one_line(str(told))}")
    where = ".".join(map(str, problem["loc"]))
    raise BadReply(f"the server answered with JSON that is no {what} ({f'{where}: ' if where else ''}{problem['msg']})")


def check_of(shape: Any, what: str) -> Callable[[bytes], None]:
    """Return the check of a reply's body: that it is of `shape`, which users call `what`; see `read_as`."""

    def check(content: bytes) -> None:
        read_as(content, shape, what)

    return check


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


check_completion = check_of(_Completion, "chat completion")  # of OpenAI's interface


def bounded(request: ChatRequest, reply: ChatReply) -> ChatReply:
    """Return `reply` without what goes far beyond `request.most_tokens_out`, `truncated` where that was cut off.

    A server that keeps to `max_tokens` would have cut there, too; one that does not never will, so that trying again
    would cure nothing.
    """
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
