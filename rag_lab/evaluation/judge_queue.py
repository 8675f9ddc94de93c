"""The way to a judge: reading its replies, those that are remembered, by request, and the queue of concurrent scores.

A reply becomes the object RAGAs asked for, or one sentence why not. RAGAs takes some empty or impossible replies for
perfect ones (no statement at all counts as a perfect match, a verdict of 7 as seven), so these are refused here.

Metrics and variants that ask the same thing share one reply: its key holds the judge's identity and the whole request.
The seed differs by repeat and by resample, so neither is ever answered from another's reply. A judge that takes calls
one by one, as many at a time as its `concurrency` says, gets each request as soon as it has a place free; another one
gets those that concurrent scores are waiting for in one batch, from one thread.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from rag_lab._kit.digest import digest
from rag_lab._kit.registry import unwatched
from rag_lab._kit.wording import counted
from rag_lab.errors import RagLabError
from rag_lab.memory.results import Memory, Work
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Concurrent

Reply = TypeVar("Reply", bound=BaseModel)

# RAGAs declares these as any integer and means these ranges.
_HIGHEST = {"verdict": 1, "attributed": 1, "noncommittal": 1, "rating": 2}
_RATINGS = {"AnswerAccuracyOutput": (0, 2, 4)}  # by the reply's model, where not every number up to the highest will do
_NEVER_EMPTY = frozenset({"statements", "claims", "classifications", "question"})
_CLASSES = {"TP": "in answer and reference", "FP": "in the answer alone", "FN": "in the reference alone"}
# What RAGAs' instructions mean by 0 and 1. A verdict without a statement is on a passage as a whole.
_WORDS = {
    "verdict": ("not supported", "supported"),
    "attributed": ("not attributed", "attributed"),
    "noncommittal": ("substantive", "evasive"),
}
MAX_CHARS = 10_000  # of all lines for one score: more than the longest reply


class JudgeError(Exception):
    """A reply that gives no score. `permanent` is False where another attempt may give one."""

    def __init__(self, reason: str, *, permanent: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.permanent = permanent


class UnusableReply(JudgeError):  # noqa: N818
    """A reply that came and cannot be used; a sampled one may do."""


def read_reply(reply: ChatReply, model: type[Reply]) -> Reply:
    """Return the reply's first JSON object as `model`.

    Raises:
        UnusableReply: if the prompt was read, and the reply is empty, no JSON, cut off, of another shape, or void.
        JudgeError: if the call failed.
    """
    if reply.error and reply.tokens_in and not reply.transient:
        raise UnusableReply(f"the judge failed: {reply.error}")
    if reply.error:
        raise JudgeError(f"the judge failed: {reply.error}", permanent=not reply.transient)
    start, flat = reply.text.find("{"), " ".join(reply.text.split())
    excerpt = repr(flat if len(flat) <= 80 else f"{flat[:80]}…")
    if not reply.text.strip():
        raise UnusableReply(
            "the judge thought and wrote no reply" if reply.has_thought else "the judge's reply is empty"
        )
    if start < 0:
        raise UnusableReply(f"the judge's reply holds no JSON object: {excerpt}")
    try:
        result = model.model_validate(json.JSONDecoder(strict=False).raw_decode(reply.text, start)[0])
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UnusableReply(f"the judge's reply does not fit the schema: {where}: {first['msg']}") from None
    except (ValueError, RecursionError):
        cut = "is cut off at its token limit" if reply.truncated else "is broken JSON"
        raise UnusableReply(f"the judge's reply {cut}: {excerpt}") from None
    data, ratings = result.model_dump(), _RATINGS.get(model.__name__)
    for name, value in _items(data):
        if name == "rating" and ratings:
            if value not in ratings:
                raise UnusableReply(f"the judge's rating is {value}; allowed are {', '.join(map(str, ratings))}")
        elif name in _HIGHEST and not 0 <= value <= _HIGHEST[name]:
            raise UnusableReply(f"the judge's {name} is {value}; allowed is 0 to {_HIGHEST[name]}")
        if name in _NEVER_EMPTY and not value:
            raise UnusableReply(f"the judge's reply has an empty {name!r}")
    if data.keys() >= _CLASSES.keys() and not any(data[name] for name in _CLASSES):
        raise UnusableReply("the judge classified no statement")
    return result


@cache
def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the model's JSON schema with the ranges that RAGAs means, for judges that can be held to a schema."""
    schema = model.model_json_schema()
    parts = (schema, *schema.get("$defs", {}).values())
    for name, described in (one for part in parts for one in part.get("properties", {}).items()):
        if name == "rating" and model.__name__ in _RATINGS:
            described |= {"enum": list(_RATINGS[model.__name__])}
        elif name in _HIGHEST:
            described |= {"minimum": 0, "maximum": _HIGHEST[name]}
        if name in _NEVER_EMPTY:
            described |= {"minItems": 1} if described.get("type") == "array" else {"minLength": 1}
    return schema


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every key with its value, at any depth."""
    if isinstance(value, dict):
        yield from value.items()
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _items(child)


def judgement_lines(replies: Iterable[tuple[str, Mapping[str, Any]]], arguments: Mapping[str, Any]) -> str:
    """Return what the judge said for one score, a line a judgement, as `supported (passage 2): STATEMENT — REASON`.

    White space is folded. Statements that the judge wrote and then judged stand once, with the judgement. Beyond
    `MAX_CHARS` the rest is counted and not kept. `arguments` are the metric's, by RAGAs' names: the texts that
    statements are judged against.
    """
    replies = list(replies)
    lists = [each for _, reply in replies for each in reply.values() if isinstance(each, list)]
    judged = {one.get("statement") for each in lists for one in each if isinstance(one, dict)}
    # What to call a text that the judge read alone.
    texts = {"response": "answer", "reference": "reference"}
    places: dict[str, str] = {arguments[name]: text for name, text in texts.items() if name in arguments}
    for number, text in reversed(list(enumerate(arguments.get("retrieved_contexts", ()), 1))):
        places[text] = f"passage {number}"
    lines: list[str] = []
    for prompt, reply in replies:  # the input at the end of RAGAs' prompt is JSON, and may have a `context`
        _, found, read = prompt.rpartition("\ninput: ")
        try:
            data = json.JSONDecoder().raw_decode(read)[0] if found else None
        except ValueError:
            data = None
        context = data.get("context") if isinstance(data, dict) else None
        lines += _lines(reply, places.get(context) if isinstance(context, str) else None, judged)
    length = 0
    for place, line in enumerate(lines):
        length += len(line)
        if length > MAX_CHARS:
            rest = lines[place:]
            more = f"… {counted(len(rest), 'more line')} of {sum(map(len, rest)):,} characters not kept"
            return "\n".join([*lines[:place], more])
    return "\n".join(lines)


def _lines(reply: Mapping[str, Any], place: str | None, judged: set[Any]) -> Iterator[str]:
    own = {name: value for name, value in reply.items() if not isinstance(value, list)}
    if own:
        yield _line(own, "", place)
    for name, members in reply.items():
        if isinstance(members, list):
            yield from (_line(one, _CLASSES.get(name, ""), place) for one in members if isinstance(one, dict))
            texts = [_folded(one) for one in members if not isinstance(one, dict) and one not in judged]
            if texts or (not members and name not in _CLASSES):
                yield f"{name}: {' | '.join(texts) or 'none'}"


def _line(fields: Mapping[str, Any], group: str, place: str | None) -> str:
    heads = [group] if group else []
    for name, value in fields.items():
        if name in _WORDS:
            words = ("not useful", "useful") if name == "verdict" and "statement" not in fields else _WORDS[name]
            heads.append(words[bool(value)])
        elif name not in ("statement", "question", "reason"):
            heads.append(f"{name} {_folded(value)}")
    text = ", ".join(heads) + (f" ({place})" if place else "")
    text += "".join(f": {_folded(fields[name])}" for name in ("statement", "question") if name in fields)
    reason = _folded(fields.get("reason", ""))
    return f"{text} — {reason}" if reason else text


def _folded(value: object) -> str:
    return " ".join(str(value).split())


Generate = Callable[[Sequence[ChatRequest]], list[ChatReply]]

SEEDS_PER_REPEAT = 1000  # a request of repeat n has a seed from n times this on

_REPLY: TypeAdapter[ChatReply] = TypeAdapter(ChatReply)
Result = TypeVar("Result")


@dataclass(eq=False)
class JudgeReplies:
    """Replies of one judge, for as long as this object lives, and in a memory where there is one."""

    judge: ChatModel
    memory: Memory | None = None
    _known: dict[str, ChatReply] = field(default_factory=dict, init=False, repr=False)

    def key(self, request: ChatRequest) -> str:
        """Return what a request is remembered under."""
        return digest({"judge": self._identity, "request": asdict(request)})

    def recall(self, keys: Iterable[str]) -> dict[str, ChatReply]:
        """Return the replies of those of `keys` that are known."""
        keys = list(keys)
        unknown = [key for key in keys if key not in self._known]
        if self.memory is not None and unknown:
            found = self.memory.recall(unknown)
            self._known |= {key: _REPLY.validate_json(text) for key, text in found.items()}
        return {key: self._known[key] for key in keys if key in self._known}

    def ask(self, requests: Mapping[str, ChatRequest], generate: Generate) -> list[ChatReply]:
        """Return a reply for each request, in order, and remember it at once; failed calls are asked again later."""
        work = Work(
            "judge",
            lambda keys: dict(zip(keys, generate([requests[key] for key in keys]), strict=True)),
            lambda reply: None if reply.error else _REPLY.dump_json(reply).decode(),
            _REPLY.validate_json,
            len(requests),
        )
        replies = work.do(self.memory, requests)
        self._known |= {key: reply for key, reply in replies.items() if not reply.error}
        return [replies[key] for key in requests]

    @cached_property
    def _identity(self) -> str:
        return digest(dict(self.judge.identity()))


class RememberedJudge:
    """A judge for one score of a custom metric. The same request is one call, also where it was remembered."""

    def __init__(self, judge: ChatModel, replies: JudgeReplies, repeat: int) -> None:
        self._judge, self._replies, self._first_seed = judge, replies, SEEDS_PER_REPEAT * repeat
        self.replies: dict[str, ChatReply] = {}  # by request
        self.is_troubled = False  # whether a request had no reply, which another attempt may cure
        self.constrains_json, self.context_tokens = judge.constrains_json, judge.context_tokens

    def identity(self) -> Mapping[str, Any]:
        """Return the judge's."""
        return self._judge.identity()

    def count_tokens(self, text: str) -> int:
        """Count as the judge does."""
        with unwatched():
            return self._judge.count_tokens(text)

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return one reply for each request, in order."""
        seeded = [replace(request, seed=request.seed + self._first_seed) for request in requests]
        self.is_troubled = True  # until it has replied
        with unwatched():  # the weights may be loaded now, and what is remembered is ours
            keys = [self._replies.key(request) for request in seeded]
            wanted = dict(zip(keys, seeded, strict=True))
            known = self._replies.recall(wanted)
            new = {key: request for key, request in wanted.items() if key not in known}
            if new:
                known |= dict(zip(new, self._replies.ask(new, self._judge.generate), strict=True))
        self.replies |= known
        self.is_troubled = any(reply.error for reply in known.values())
        return [known[key] for key in keys]


class JudgeQueue:
    """Takes requests from coroutines of one event loop at a time, and gives each its reply."""

    def __init__(self, judge: ChatModel, replies: JudgeReplies | None = None) -> None:
        self.judge = judge
        self._batched = not isinstance(judge, Concurrent)
        self.n_at_once = judge.concurrency if isinstance(judge, Concurrent) else 1
        self._replies = replies or JudgeReplies(judge)
        self._threads = ThreadPoolExecutor(self.n_at_once, "judge") if self.n_at_once > 1 else None
        self._waiting: dict[str, ChatRequest] = {}
        self._open: dict[str, asyncio.Future[ChatReply]] = {}
        self._broken: RagLabError | None = None

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Return the judge's reply; once the judge cannot be used at all, it is not called again."""
        loop = asyncio.get_running_loop()
        key = self._replies.key(request)
        future = self._open.get(key)
        if future is None or future.get_loop() is not loop:  # of a loop that was interrupted
            future = self._open[key] = loop.create_future()
            if not self._waiting:
                loop.call_soon(self._send)  # runs after all scores that are ready now have asked, too
            self._waiting[key] = request
        return await future

    def room_for_reply(self, prompt: str, wanted: int) -> int:
        """Return how many of `wanted` tokens the judge could write after `prompt`; 0 or less: it is too long."""
        if len(prompt.encode()) + wanted <= self.judge.context_tokens:  # no token is shorter than a byte
            return wanted
        return min(wanted, self.judge.context_tokens - self._unless_broken(lambda: self.judge.count_tokens(prompt)))

    def stop(self) -> None:
        """Make no further call: whoever waits or asks from now on gets an error."""
        self._broken = RagLabError("The evaluation was interrupted; run it again to go on.")
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _send(self) -> None:
        asked, self._waiting = self._waiting, {}
        known = self._replies.recall(asked)
        for key, reply in known.items():
            self._open.pop(key).set_result(reply)
        new = {key: request for key, request in asked.items() if key not in known}
        if self._threads is None:
            for keys in [list(new)] if self._batched else [[key] for key in new]:
                self._settle(keys, partial(self._generate, {key: new[key] for key in keys}))
            return
        for key, request in new.items():
            run = partial(copy_context().run, self._generate, {key: request})
            try:
                done = asyncio.get_running_loop().run_in_executor(self._threads, run)
            except RuntimeError:  # stopped
                self._settle([key], self._raise_broken)
            else:
                done.add_done_callback(
                    lambda done, key=key: self._settle([key], self._raise_broken if done.cancelled() else done.result)  # type: ignore[misc]
                )

    def _settle(self, keys: Sequence[str], replies: Callable[[], list[ChatReply]]) -> None:
        """Give each waiting score its reply; whatever a model raises belongs to the scores that wait for it."""
        if not keys:
            return
        try:
            found = replies()
        except Exception as error:
            for key in keys:
                self._open.pop(key).set_exception(error)
        else:
            for key, reply in zip(keys, found, strict=True):
                self._open.pop(key).set_result(reply)

    def _generate(self, requests: dict[str, ChatRequest]) -> list[ChatReply]:
        """Call the judge; what it says is kept at once, so that an interruption loses no reply."""
        return self._replies.ask(requests, lambda some: self._unless_broken(lambda: self.judge.generate(some)))

    def _raise_broken(self) -> list[ChatReply]:
        raise self._broken or RagLabError("The judge was not asked.")

    def _unless_broken(self, call: Callable[[], Result]) -> Result:
        if self._broken is not None:
            raise self._broken
        try:
            return call()
        except RagLabError as error:
            self._broken = error
            raise
