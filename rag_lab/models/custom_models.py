"""Custom models, which somebody else wrote: from a name or an object to a model as ours, called through `CustomCode`.

A name is an entry point of a package, `module:Class` or `langchain:module:factory`. What such a model does wrong costs
the questions concerned.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from rag_lab._kit import registry
from rag_lab._kit.custom_code import CustomCode, CustomCodeError, numbers
from rag_lab._kit.digest import source_digest
from rag_lab._kit.registry import FACTORY, Kind, Module, construct, from_object, importing, installed, parse_parameters
from rag_lab.errors import ConfigError, ModelError, unknown_name
from rag_lab.models import protocols, providers, truncation
from rag_lab.models.remote.replies import bounded, counted

_TIMEOUT_S = 300.0  # of one call: the first one loads weights
_CONTEXT_TOKENS = 32_768  # where the model does not say
_TOLERANCE = 1e-3  # in what two runs may differ: float32 on a GPU adds in no fixed order


class CustomModelError(ModelError, CustomCodeError):
    """A call of one's own model that gave nothing: it costs the questions concerned, or the index being built."""


class _CustomModel:
    """What custom models have in common: `needed` methods, and `counting`, which they may lack."""

    def __init__(self, module: Module, what: str, needed: Sequence[str], counting: str, *, is_compared: bool) -> None:
        self.made, self.what = module.value, what
        methods = [*needed, counting] if callable(getattr(module.value, counting, None)) else needed
        self._codes = {
            name: CustomCode(module, what, name, timeout_s=_TIMEOUT_S, is_compared=is_compared) for name in methods
        }
        self._identity = dict(self._codes[methods[0]].identity())
        try:
            json.dumps(self._identity, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"The identity of the {what} is no JSON ({error}); use texts and numbers.") from None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.what!r})"

    def identity(self) -> Mapping[str, Any]:
        """Return the digest of its source, with its own identity or its parameters."""
        return self._identity

    @property
    def most_tokens(self) -> int | None:
        """The most tokens that it says it reads of one text or pair; None where it does not say."""
        found = getattr(self.made, "most_tokens", None)
        return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None

    def _call(self, method: str, *inputs: Any, accept: Callable[[Any], Any]) -> Any:
        try:
            return self._codes[method].call(*inputs, accept=accept)
        except CustomCodeError as error:
            raise CustomModelError(str(error)) from error

    def _tokens(self, method: str, items: list[Any], estimate: Callable[[Any], int], *more: Any) -> list[int]:
        if method not in self._codes or not items:
            return [estimate(item) for item in items]
        counted = self._call(method, items, *more, accept=lambda found: numbers(found, len(items), f"the {self.what}"))
        return [int(n) for n in counted]

    def _numbers(
        self, method: str, items: Sequence[Any], accept: Callable[[Any], protocols.Vectors]
    ) -> protocols.Vectors:
        close: _Close = self._call(method, list(items), accept=lambda found: _Close(accept(found)))
        return close.rows


class CustomChat(_CustomModel):
    """A chat model whose `generate` somebody else wrote: it returns a `ChatReply`, or a text, for each request.

    A batch that fails as a whole is asked again request by request. Counts of tokens that are missing are estimated.
    """

    def __init__(self, module: Module, what: str) -> None:
        super().__init__(module, what, ["generate"], "count_tokens", is_compared=False)
        self.constrains_json = bool(getattr(module.value, "constrains_json", False))
        self.context_tokens = int(getattr(module.value, "context_tokens", _CONTEXT_TOKENS))
        if isinstance(module.value, protocols.Concurrent):
            self.concurrency = int(module.value.concurrency)

    def generate(self, requests: Sequence[protocols.ChatRequest]) -> list[protocols.ChatReply]:
        """Return one reply for each request, in order."""
        if not requests:
            return []
        started = time.perf_counter()
        try:
            replies = self._codes["generate"].call(list(requests), accept=lambda found: self._replies(found, requests))
        except CustomCodeError as error:
            if len(requests) == 1:
                return [protocols.ChatReply(error=str(error), transient=True, seconds=time.perf_counter() - started)]
            return [reply for request in requests for reply in self.generate([request])]
        share_s = (time.perf_counter() - started) / len(requests)
        return [reply if reply.seconds else replace(reply, seconds=share_s) for reply in replies]

    def count_tokens(self, text: str) -> int:
        """Return what the model counts, else an upper estimate."""
        if "count_tokens" not in self._codes:
            return truncation.estimated_tokens(text)
        return int(self._call("count_tokens", text, accept=lambda n: numbers([n], 1, f"the {self.what}")[0]))

    def _replies(self, found: Any, requests: Sequence[protocols.ChatRequest]) -> list[protocols.ChatReply]:
        if not isinstance(found, list | tuple):
            raise CustomCodeError(f"the {self.what} returned {type(found).__name__} where a list of replies is due")
        if len(found) != len(requests):
            raise CustomCodeError(f"the {self.what} returned {len(found)} replies for {len(requests)} requests")
        replies = []
        for one, request in zip(found, requests, strict=True):
            reply = protocols.ChatReply(one) if isinstance(one, str) else one
            if not isinstance(reply, protocols.ChatReply):
                kind = type(one).__name__
                raise CustomCodeError(f"the {self.what} returned {kind} where a ChatReply or a text is due")
            for each in fields(reply):
                value, due = getattr(reply, each.name), type(each.default)
                if not isinstance(value, due if due is not float else int | float):
                    raise CustomCodeError(f"the {self.what} gave a {type(value).__name__} as a reply's {each.name}")
            numbers([reply.tokens_in, reply.tokens_out, reply.seconds, reply.cost_usd], 4, f"the {self.what}")
            replies.append(reply if reply.error else counted(request, bounded(request, reply))[0])
        return replies


class CustomEmbedder(protocols.EmbedsByKind, _CustomModel):
    """An embedder that somebody else wrote. Rows are scaled to length one, and must all be of one length."""

    def __init__(self, module: Module, what: str) -> None:
        super().__init__(module, what, ["embed_documents", "embed_queries"], "text_tokens", is_compared=True)
        self._dim = 0

    def text_tokens(self, texts: Sequence[str], kind: protocols.TextKind) -> list[int]:
        """Return what the model counts for each text, else upper estimates."""
        return self._tokens("text_tokens", list(texts), truncation.estimated_tokens, kind)

    def _embed(self, kind: protocols.TextKind, texts: Sequence[str]) -> protocols.Vectors:
        if not texts:
            return np.zeros((0, self._dim), dtype=np.float32)

        def accept(found: Any) -> protocols.Vectors:
            try:
                rows = np.asarray(found, dtype=np.float32)
            except (TypeError, ValueError):
                told = type(found).__name__
                raise CustomCodeError(f"the {self.what} returned {told}, and not vectors of one length") from None
            if rows.ndim != 2 or len(rows) != len(texts) or rows.shape[1] == 0:
                raise CustomCodeError(f"the {self.what} returned an array of shape {rows.shape} for {len(texts)} texts")
            if not np.isfinite(rows).all():
                raise CustomCodeError(f"the {self.what} returned a vector with NaN or infinity in it")
            if self._dim not in (0, rows.shape[1]):
                raise CustomCodeError(
                    f"the {self.what} returned vectors of {rows.shape[1]} numbers, and of {self._dim} before"
                )
            return protocols.unit_vectors(rows)

        rows = self._numbers("embed_documents" if kind == "document" else "embed_queries", texts, accept)
        self._dim = rows.shape[1]
        return rows


class CustomScorer(_CustomModel):
    """A cross-encoder, or another scorer of pairs, that somebody else wrote."""

    def __init__(self, module: Module, what: str) -> None:
        super().__init__(module, what, ["score"], "pair_tokens", is_compared=True)

    def pair_tokens(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return what the model counts for each pair, else upper estimates."""
        return self._tokens("pair_tokens", list(pairs), lambda pair: truncation.estimated_tokens(" ".join(pair)))

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return one score for each (question, passage), in order."""
        if not pairs:
            return []
        what = f"the {self.what}"
        rows = self._numbers("score", pairs, lambda found: np.array(numbers(found, len(pairs), what), np.float64))
        return [float(value) for value in rows]


@dataclass(eq=False)
class _Close:
    """What a model computed, equal to what differs from it by no more than the order of additions explains."""

    rows: protocols.Vectors

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Close)
            and self.rows.shape == other.rows.shape
            and np.allclose(self.rows, other.rows, rtol=_TOLERANCE, atol=_TOLERANCE)
        )

    __hash__ = None  # type: ignore[assignment]


def custom_target(kind: Kind, text: str) -> Any:
    """Import the class, the function or the factory that names a model which is not built in."""
    provider = providers.split_name(text, kind)[0]
    try:
        if provider in installed(kind.group):
            return kind.load(provider)
        module = text.removeprefix(FACTORY).partition(":")[0]
        top = module.partition(".")[0]
        folder = registry.modules_folder()
        has_file = any((folder / name).exists() for name in (top, f"{top}.py"))
        if not (top == "__main__" or has_file or (top.isidentifier() and find_spec(top) is not None)):
            unknown = unknown_name(f"{kind.name} provider", module, kind.names())
            raise ModelError(f"{unknown} One of your own is named module:Class, with its file in {folder}.")
        return kind.load(kind.check(text).partition("?")[0])
    except (ConfigError, ValueError) as error:
        raise ModelError(str(error)) from None


def named_model(kind: Kind, text: str, target: Any) -> Any:
    """Return the model that `target` makes, as ours; of a package a class takes `name`, too, a function both."""
    provider, name, _ = providers.split_name(text, kind)
    what = f"{kind.name} {text.partition('?')[0]!r}"
    try:
        parameters = parse_parameters(text)
        with importing(what):
            if provider in installed(kind.group):
                parameters = {"name": name, **parameters}
            is_called = text.startswith(FACTORY) or (provider in installed(kind.group) and not isinstance(target, type))
            made = target(**parameters) if is_called else construct(target, parameters, what, kind.call)
            return _as_ours(kind, Module(text, made, source_digest(target)), what)
    except ConfigError as error:
        raise ModelError(str(error)) from error


def object_model(kind: Kind, given: Any) -> Any:
    """Return an object in memory, one of LangChain's too, as ours."""
    if type(given).__module__.startswith("rag_lab."):
        return given
    what = f"{kind.name} {type(given).__qualname__}"
    try:
        module = Module(what, given, "") if is_langchain(given) else from_object(given, kind)
        with importing(what):
            return _as_ours(kind, module, what)
    except ConfigError as error:
        raise ModelError(str(error)) from error


def _as_ours(kind: Kind, module: Module, what: str) -> Any:
    if type(module.value).__module__.startswith("rag_lab."):
        return module.value
    if is_langchain(module.value):
        from rag_lab.models.remote.langchain_models import adapted

        module = replace(module, value=adapted(kind, module, what))
        if kind is providers.CHAT_MODELS:
            return module.value
    elif module.name.startswith(FACTORY):
        raise ConfigError(f"The {what} returns {type(module.value).__name__}, which is none of LangChain's models.")
    if kind is providers.CHAT_MODELS:
        return CustomChat(module, what)
    if kind is providers.SPARSE_ENCODERS:
        from scipy.sparse import csr_matrix

        model: Any = _CustomModel(module, what, ["term_weights"], "text_tokens", is_compared=False)
        model.term_weights = lambda kind, texts: model._call("term_weights", kind, list(texts), accept=csr_matrix)
        return model
    return CustomEmbedder(module, what) if kind is providers.EMBEDDERS else CustomScorer(module, what)


def is_langchain(made: Any) -> bool:
    """Tell whether an object is of a class that LangChain's packages define, or that extends one."""
    return any(base.__module__.partition(".")[0] == "langchain_core" for base in type(made).__mro__)
