"""What is remembered of the turns before a question: the last ones, or a summary of those before them.

In a running summary every so many turns are summed up, each summary extending the one before; the turns since the last
one stay word for word. A summary is remembered by the turns that it sums up and the summary that it extends, so that
the next question of a conversation, and one that began alike, find it made.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from rag_lab._kit.digest import digest
from rag_lab.memory.results import Memory, Replayed, Work
from rag_lab.models.protocols import ChatReply, ChatRequest
from rag_lab.records import Remembered, Trace, Turn
from rag_lab.stages import stage as base
from rag_lab.stages.chat_template import SHIPPED_PROMPTS, ChatTemplate

REMEMBER = "remember"
Turns = tuple[Turn, ...]

_EXCHANGE = 2  # turns: a question and its answer
_REPLY: TypeAdapter[ChatReply] = TypeAdapter(ChatReply)

PROMPT_VERSION = 1  # of the wording below: results are remembered by it

_SYSTEM = SHIPPED_PROMPTS["summary"]["system"]

# Earlier notes, turns, notes: a small model learns the form from examples alone.
_EXAMPLES: tuple[tuple[str, str, str], ...] = SHIPPED_PROMPTS["summary"]["examples"]
_ASKED = "Notes so far: {}\n\nConversation:\n{}\n\nNotes:"


def conversation_stage(parts: base.Parts) -> base.Stage:
    """Return what remembers the turns before a question."""
    conversation = parts.conversation
    if conversation.memory in _SUMMARIES:
        return _SUMMARIES[conversation.memory](
            parts.chat("understanding", REMEMBER),
            conversation.summary_every,
            conversation.summary_tokens,
            parts.seed,
            parts.prompts.get("summary"),
            parts.memory,
            parts.replayed,
        )
    turns = {"none": 0, "last_exchange": _EXCHANGE, "window": conversation.window_turns}
    return LastTurns(turns[conversation.memory])


@dataclass(frozen=True)
class LastTurns(base.BuiltInStage):
    """Remember the last `n` turns before each question; what was said before them is forgotten, as the record says."""

    n: int

    name = REMEMBER
    reads = ("question.history",)
    writes = ("remembered",)

    def outcome(self, trace: Trace) -> base.Outcome:
        """Keep the last turns of one trace."""
        history = trace.question.history
        kept = history[max(0, len(history) - self.n) :]
        reason = "" if len(kept) == len(history) else f"{len(kept)} of {len(history)} turns are remembered"
        return base.Outcome({"remembered": Remembered(len(history), kept)}, reason=reason, seconds=0.0)


@dataclass
class _Conversation:
    """One history on its way: what is still to be summed up, the summary so far, and what it took."""

    blocks: list[Turns]
    rest: Turns
    n_summed: int  # turns in the blocks
    seed: int
    summary: str = ""
    replies: list[ChatReply] = field(default_factory=list)
    error: str = ""


@dataclass(frozen=True)
class Summarize(base.ChatStage):
    """Sum up every `every` turns by `model`, in at most `max_tokens`; else the last turns are remembered."""

    every: int
    max_tokens: int
    seed: int = 0
    prompt: ChatTemplate | None = None  # in place of the one that is built in
    memory: Memory | None = field(default=None, compare=False)
    replayed: Replayed = field(default_factory=Replayed, compare=False)

    LEFT: ClassVar[int] = 1  # turns that stay as they were said, at least
    PROMPTS = PROMPT_VERSION
    name = REMEMBER
    reads = ("question.history",)
    writes = ("remembered",)

    def run(self, traces: Sequence[Trace]) -> list[base.Outcome]:
        """Return a summary with the turns since, or the last turns alone, for each trace."""
        conversations = [self._conversation(trace) for trace in traces]
        while waiting := [one for one in conversations if one.blocks and not one.error]:
            for one, reply in zip(waiting, self._extended(waiting), strict=True):
                one.replies.append(reply)
                one.error = reply.error or ("" if reply.text.strip() else base.nothing_written(reply))
                if not one.error:
                    one.summary = " ".join(reply.text.split())
                    del one.blocks[0]
        outcomes = []
        for trace, one in zip(traces, conversations, strict=True):
            history, total = trace.question.history, base.summed(one.replies)  # what they cost when they were made
            n = len(history)
            if one.error:
                kept = history[max(0, n - self.every) :]
                reason = f"no summary: {one.error}; {len(kept)} of {n} turns are remembered"
                outcomes.append(base.chat_outcome(total, {"remembered": Remembered(n, kept)}, "fallback", reason))
                continue
            reason = f"{one.n_summed} of {n} turns are summed up" if one.n_summed else ""
            outcomes.append(
                base.chat_outcome(total, {"remembered": Remembered(n, one.rest, one.summary)}, reason=reason)
            )
        return outcomes

    def requests(self, traces: Sequence[Trace]) -> list[ChatRequest]:
        """Return one request for each summary; of one that extends another, with the longest that this can be."""
        longest = " ".join(["summary"] * self.max_tokens)
        return [
            self._request(longest if n else "", block, one.seed)
            for one in map(self._conversation, traces)
            for n, block in enumerate(one.blocks)
        ]

    def _conversation(self, trace: Trace) -> _Conversation:
        history = trace.question.history
        n = max(0, len(history) - self.LEFT) // self.every * self.every
        blocks = [history[start : start + self.every] for start in range(0, n, self.every)]
        rest = history[n:] if self.LEFT else history[-_EXCHANGE:]
        return _Conversation(blocks, rest, n, self.seed + trace.repeat)

    def _extended(self, waiting: Sequence[_Conversation]) -> list[ChatReply]:
        """Return what the model writes of the next turns of each conversation, or has written of them before."""
        identity = digest(dict(self.identity()))
        asked = {}
        keys = []
        for one in waiting:
            said = [to_jsonable_python(turn) for turn in one.blocks[0]]
            keys.append(digest({"summary": identity, "seed": one.seed, "earlier": one.summary, "turns": said}))
            asked[keys[-1]] = self._request(one.summary, one.blocks[0], one.seed)

        work = Work(
            "summary",
            lambda some: dict(zip(some, self.model.generate([asked[key] for key in some]), strict=True)),
            lambda reply: None if reply.transient else _REPLY.dump_json(reply).decode(),
            _REPLY.validate_json,
            batch_size=self.batch_size,
        )
        found = work.recall(self.memory, asked)
        self.replayed.seconds += sum(reply.seconds for reply in found.values())
        found |= work.do(self.memory, [key for key in asked if key not in found])
        return [found[key] for key in keys]

    def _request(self, earlier: str, turns: Turns, seed: int) -> ChatRequest:
        if self.prompt:
            messages = self.prompt.messages({"summary": earlier, "turns": turns})
        else:
            said = "\n".join(f"{turn.role}: {turn.content}" for turn in turns)
            shots = ((_ASKED.format(before or "none", told), notes) for before, told, notes in _EXAMPLES)
            messages = base.few_shot(_SYSTEM, shots, _ASKED.format(earlier or "none", said))
        return ChatRequest(messages, max_tokens=self.max_tokens, seed=seed)


class SummarizeAll(Summarize):
    """Sum up every full block of turns; beside the summary stands the last exchange alone, as in the system copied."""

    LEFT = 0


_SUMMARIES = {"summary": Summarize, "summary_and_exchange": SummarizeAll}
