"""A pipeline as a `Runnable` of LangChain's: a question, or one with its history, becomes an answer with citations."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from queue import SimpleQueue
from threading import Thread
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor

from rag_lab.errors import ConfigError, RagLabError
from rag_lab.records import Question, Trace, Turn
from rag_lab.stages.run_stage import Progress

Input = str | Mapping[str, Any]
OnText = Callable[[str], object]
_ROLES = {"human": "user", "ai": "assistant"}


class PipelineRunnable(Runnable[Input, dict[str, Any]]):
    """Takes a question, or `{"question", "history"}` with messages, pairs of role and content, or `Turn`s.

    `invoke` returns `answer`, `citations` (number, source, page, quote) and `trace`. `stream` yields a `stage` with
    what is done of it as it begins and ends, the answer's `text` in pieces, then what `invoke` returns.
    """

    def __init__(self, run: Callable[[Question, Progress | None, OnText | None], Trace], asker: Question) -> None:
        self._run, self._asker = run, asker

    def invoke(self, input: Input, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:
        """Return the answer; raise a `RagLabError` where a stage failed."""
        return self._call_with_config(lambda given: self._answer(given), input, config)

    def stream(self, input: Input, config: RunnableConfig | None = None, **_: Any) -> Iterator[dict[str, Any]]:
        """Yield the stages as they run, then the answer."""
        events: SimpleQueue[dict[str, Any] | BaseException | None] = SimpleQueue()

        def work() -> None:
            try:
                found = self._answer(
                    input,
                    lambda stage, done, of: events.put({"stage": stage, "done": done, "of": of}),
                    lambda text: events.put({"text": text}),
                )
                events.put(found)
            except BaseException as error:  # raised again where it is read
                events.put(error)
            events.put(None)

        Thread(target=work, daemon=True).start()
        while (event := events.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event

    async def astream(
        self, input: Input, config: RunnableConfig | None = None, **_: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield what `stream` does, without a wait of the loop."""
        events = self.stream(input, config)
        while (event := await run_in_executor(config, next, events, None)) is not None:
            yield event

    def _answer(self, given: Input, progress: Progress | None = None, hear: OnText | None = None) -> dict[str, Any]:
        values = {"question": given} if isinstance(given, str) else dict(given)
        text = values.get("question")
        if not isinstance(text, str) or not text.strip():
            raise ConfigError('A pipeline takes a question: text, or {"question": text, "history": messages}.')
        history = tuple(map(_turn, values.get("history") or ()))
        trace = self._run(replace(self._asker, text=text.strip(), history=history), progress, hear)
        if trace.failure:
            raise RagLabError(f"The stage {trace.failure.stage} failed: {trace.failure.reason}")
        answer = trace.answer
        cited = () if answer is None else answer.citations
        return {
            "answer": None if answer is None else answer.text,
            "citations": [
                {"number": one.number, "source": one.source, "page": one.page, "quote": one.quote} for one in cited
            ],
            "trace": trace,
        }


def _turn(one: Any) -> Turn:
    if isinstance(one, Turn):
        return one
    if isinstance(one, BaseMessage):
        one = (_ROLES.get(one.type, one.type), one.content)
    if isinstance(one, Mapping):
        one = (one.get("role"), one.get("content"))
    if isinstance(one, Sequence) and len(one) == 2 and one[0] in ("user", "assistant") and isinstance(one[1], str):
        return Turn(one[0], one[1])
    raise ConfigError(
        f"{one!r:.80} is no turn of a conversation; give messages, or pairs of user or assistant and text."
    )
