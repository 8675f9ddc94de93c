"""Whether a server answered by the model that was asked for: results are remembered under that model's name."""

from __future__ import annotations

import re

_ALIAS = re.compile(r"[-:]latest$")
_SIZES = frozenset({"mini", "nano", "lite", "small", "large", "turbo", "flash", "pro", "max"})


def is_another(asked: str, told: str) -> bool:
    """Tell whether `told`, by which a server answered, is clearly another model than `asked`.

    Servers add folders, dates, versions and endings (`models/gemma-3.gguf`, `gpt-4o-2024-08-06`), and an alias of
    theirs that ends in `latest` may stand for anything.
    """
    if not told or _ALIAS.search(asked):
        return False
    one, other = sorted((_bare(asked), _bare(told)), key=len)
    return _letters(one) not in _letters(other) or bool((_words(other) ^ _words(one)) & _SIZES)


def _bare(name: str) -> str:
    return name.casefold().rpartition("/")[2].removesuffix(".gguf")


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name)


def _words(name: str) -> frozenset[str]:
    return frozenset(re.split(r"[\W_]+", name))
