"""One call of a RAGAs class: its value, or why there is none, since RAGAs raises, swallows errors, and returns NaN.

RAGAs is imported late, told to report nothing, and run in a thread of its own.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from rag_lab.errors import RagLabError
from rag_lab.evaluation.judge.reply import JudgeError
from rag_lab.evaluation.ragas.spec import RagasSpec
from rag_lab.redaction import one_line

Result = TypeVar("Result")

_LANGUAGE = "rag_lab.evaluation.ragas.language"
_ROUNDING = 1e-5  # of float32 vectors of unit length


@dataclass(frozen=True)
class RagasCall:
    """A RAGAs class with the models that one score asks; `translator` puts its prompts into `language`, where set."""

    spec: RagasSpec
    session: Any = None
    embeddings: Any = None
    language: str = ""
    translator: Any = None

    async def value(self, arguments: Mapping[str, Any]) -> tuple[float | None, JudgeError | None]:
        """Return RAGAs' value, or the error that stands for it."""
        try:
            value = await self._ragas_value(arguments)
        except JudgeError as error:
            return None, error
        except RagLabError as error:
            return None, JudgeError(str(error), lasting=False)
        except Exception as error:  # one trace's trouble inside RAGAs is that trace's failed score
            return None, JudgeError(f"RAGAs gave up: {_first_line(error)}", lasting=False)
        if self.session and self.session.error:
            return None, self.session.error
        if not math.isfinite(value):
            return None, JudgeError("RAGAs gave no number")
        if not self.spec.low - _ROUNDING <= value <= 1 + _ROUNDING:
            return None, JudgeError(f"RAGAs gave {value:g}, which is outside its range")
        return value, None

    async def _ragas_value(self, arguments: Mapping[str, Any]) -> float:
        models = {"llm": self.session, "embeddings": self.embeddings}
        wanted = {name: model for name, model in models.items() if model is not None}
        metric = getattr(ragas_module(self.spec.module), self.spec.class_name)(**wanted, **self.spec.settings)
        if self.translator is not None:
            adapted = await ragas_module(_LANGUAGE).adapted_prompts(metric, self.language, self.translator)
            vars(metric).update(adapted)
        if self.spec.is_legacy:
            sample = ragas_module("ragas.dataset_schema").SingleTurnSample(**arguments)
            return float(await metric.single_turn_ascore(sample))
        return float((await metric.ascore(**arguments)).value)


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return one_line(text.splitlines()[0], 200) if text else type(error).__name__


def ragas_module(name: str) -> ModuleType:
    """Import a module of RAGAs, or one of ours that does, which would report its use where it is not told otherwise."""
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    return import_module(name)


def run_to_end(coroutine: Coroutine[Any, Any, Result], stop: Callable[[], None]) -> Result:
    """Run to the end in a thread of its own: a notebook's thread already runs an event loop.

    An interruption reaches the waiting thread alone, so `stop` must bring the coroutine to its end.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="ragas") as thread:
        future = thread.submit(copy_context().run, asyncio.run, coroutine)
        try:
            return future.result()
        except BaseException:
            stop()
            raise
