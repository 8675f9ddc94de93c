"""What a metric of one's own says of itself in its attributes, checked; all of them may be left out."""

from __future__ import annotations

import inspect
import math
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_args

from rag_lab._kit.registry import Module
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.evaluation.metric import MetricInfo, Need
from rag_lab.records import Trace

FIELDS = frozenset(each.name for each in fields(Trace)) - {
    "question",
    "repeat",
    "stages",
    "texts",
}  # those that stages set
_MODELS: Mapping[str, Need] = {"judge": "judge", "embedder": "embeddings"}  # the parameter that asks for a model


def own_info(module: Module) -> MetricInfo:
    """Return what a metric says of itself.

    name: in tables; else that of the function or class, with its parameters.
    needs: what a trace must have (`answer`, `evidence` ...); nothing where not said.
    fields: of the trace, that it reads, so that the stages run that set them; all where not said.
    low, high, higher_is_better, is_cost: what its values mean; see `MetricInfo`.
    calls: of the judge, for one score.

    Raises:
        ConfigError: if it says what cannot be.
    """
    made, name = module.made, _name(module)
    low, high = (_bound(made, side, name) for side in ("low", "high"))
    if low is not None and high is not None and low >= high:
        raise ConfigError(f"The metric {name!r} has low = {low:g}, which is not below its high = {high:g}.")
    calls = getattr(made, "calls", None)
    if calls is not None and (not isinstance(calls, int) or calls < 0):
        raise ConfigError(f"The metric {name!r} has calls = {calls!r}; say how often one score asks the judge.")
    needs: Any = _names(made, "needs", get_args(Need), name)
    return MetricInfo(
        name,
        " ".join((inspect.getdoc(made) or "A metric of one's own.").partition("\n\n")[0].split()),
        needs | {_MODELS[parameter] for parameter in models_asked(made, name)},
        low,
        high,
        higher_is_better=bool(getattr(made, "higher_is_better", True)),
        is_cost=bool(getattr(made, "is_cost", False)),
        fields=_names(made, "fields", FIELDS, name) if hasattr(made, "fields") else FIELDS,
        calls=calls,
    )


def is_whole(made: Any) -> bool:
    """Tell whether something is a whole `Metric`, which scores many traces at once."""
    return callable(getattr(made, "score", None)) and callable(getattr(made, "identity", None))


def models_asked(made: Any, name: str) -> list[str]:
    """Return the parameters behind the trace that stand for models, in order.

    Raises:
        ConfigError: if there are others that must be given.
    """
    if is_whole(made) or not callable(made):
        return []
    try:
        parameters = list(inspect.signature(made).parameters.values())[1:]
    except ValueError:  # one that is not written in Python
        return []
    asked = [each.name for each in parameters if each.name in _MODELS]
    for each in parameters:
        is_given = each.default is not each.empty or each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        if each.name not in _MODELS and not is_given:
            raise ConfigError(
                f"The metric {name!r} takes {each.name!r}; it is called with a trace, and with the models `judge` and "
                "`embedder` where it names them."
            )
    return asked


def _name(module: Module) -> str:
    made = module.made
    name = getattr(made, "name", None) or (module.name.rpartition(":")[2] if ":" in module.name else _written(made))
    if not isinstance(name, str) or not name.strip() or set(name) & set(",<>\n"):
        raise ConfigError(f"A metric is called {name!r}; write it with def, or give it a `name` without , < or >.")
    return name


def _written(made: Any) -> str:
    """Return the name of a function, or of a class and the parameters of its instance as a configuration has them."""
    if not is_dataclass(made):
        return str(getattr(made, "__name__", type(made).__name__))
    given = [f"{f.name}={getattr(made, f.name)}" for f in fields(made) if getattr(made, f.name) != f.default]
    return "?".join(filter(None, (type(made).__name__, "&".join(given))))


def _names(made: Any, attribute: str, allowed: Collection[str], name: str) -> frozenset[str]:
    given = getattr(made, attribute, ())
    names = (given,) if isinstance(given, str) else tuple(given)
    if strangers := [each for each in names if str(each).partition(".")[0] not in allowed]:
        what = f"{'need' if attribute == 'needs' else 'field of a trace'} of the metric {name!r}"
        raise ConfigError(unknown_name(what, str(strangers[0]), allowed))
    return frozenset(names)


def _bound(made: Any, side: str, name: str) -> float | None:
    value = getattr(made, side, None)
    if value is None:
        return None
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"The metric {name!r} has {side} = {value!r}; give a number, or leave it out.")
    return float(value)
