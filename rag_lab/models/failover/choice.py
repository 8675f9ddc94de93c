"""Which of several models plays a role: the first that answers a check, for a while the same one.

It is chosen before the role's first call, and a pipeline keeps it: the answers of a variant are one model's, and are
remembered by that model's identity. What fails later fails; the next start of the same command chooses again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from rag_lab._kit.registry import Kind
from rag_lab.models.failover.names import alternatives, is_failover
from rag_lab.models.failover.usable import silence

_LOG = logging.getLogger(__name__)
_HOLDS_S = 60.0  # the roles and variants of one process then agree, and a server that is off costs two seconds once

_chosen: dict[tuple[str, str], tuple[str, float]] = {}  # kind and text: a name, and when it was chosen
_played: dict[str, list[str]] = {}
_LOCK = threading.Lock()


def answering(kind: Kind, text: str, make: Callable[[str], Any]) -> str:
    """Return the first model of `text` that answers within two seconds; the first, which will say why, if none does.

    Args:
        kind: of model.
        text: one name, which is returned as it is, or `first | second`.
        make: returns the model of a name; nothing is loaded for it.

    Raises:
        ModelError: if one of the names is malformed.
    """
    if not is_failover(text):
        return text
    with _LOCK:
        name, when = _chosen.get((kind.name, text), ("", 0.0))
        if not name or time.monotonic() - when > _HOLDS_S:
            name = _first(kind, {name: make(name) for name in alternatives(text)})
            _chosen[kind.name, text] = (name, time.monotonic())
            if name not in _played.setdefault(text, []):
                _played[text].append(name)
    return name


def who_played(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return, of those texts that name several models, which of them were chosen in this process."""
    return {text: list(_played[text]) for text in dict.fromkeys(texts) if text in _played}


def _first(kind: Kind, models: dict[str, Any]) -> str:
    for name, model in models.items():
        if not (problem := silence(kind, name, model)):
            return name
        _LOG.warning("%s does not answer: %s", name, problem)
    first = next(iter(models))
    _LOG.warning("None of %s answers; %s is asked all the same.", ", ".join(models), first)
    return first
