"""Errors that a user can mend, each one sentence: what was wrong, what was given, what is allowed, what to do."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path

from rag_lab.redaction import redact_sentence, redact_value, shortened, visible

_LISTED = 25
_NEAREST = 5
_WORDS = re.compile(r"[^._-]+")


class RagLabError(Exception):
    """Base of every error the user can mend; the command line prints it without a traceback and exits with 2.

    The sentence may repeat what was given and what a server said: secrets in it are hidden, control characters shown.
    """

    def __init__(self, sentence: str = "") -> None:
        super().__init__(visible(shortened(redact_sentence(sentence))))

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows, and papermill prints: IPython asks an exception for it."""
        return [f"{type(self).__name__}: {self}"]


class ConfigError(RagLabError):
    """A key or a value that no configuration allows."""


class DatasetError(RagLabError):
    """A dataset that cannot be used at all (single bad files and lines are reported, not raised)."""


class ModelError(RagLabError):
    """A model that cannot be loaded or named: missing package, key, GPU or weights."""


class StoreError(RagLabError):
    """A vector store that cannot be used: missing package, a server that does not answer, no way to filter."""


class DamagedFile(RagLabError):  # noqa: N818 - it names what is wrong
    """A file that the workbench wrote and cannot read any more: cut in a crash, or changed by hand."""

    def __init__(self, path: Path, reason: str, mend: str = "start its sweep again, which makes it anew") -> None:
        self.what = f"{path} is damaged ({reason})"
        super().__init__(f"{self.what}; {mend}.")


def nearest(given: str, names: Iterable[str]) -> list[str]:
    """Return up to five of `names` that may be meant, the nearest first: spelt alike, or with `given` as a word."""
    by_lower, asked = {name.lower(): name for name in names}, given.lower()
    alike = get_close_matches(asked, by_lower, n=_NEAREST)
    holding = [name for name in by_lower if asked in _WORDS.findall(name) or name.endswith(f".{asked}")]
    holding.sort(key=lambda name: -SequenceMatcher(None, asked, name).ratio())
    return [by_lower[name] for name in dict.fromkeys([*alike, *holding])][:_NEAREST]


def unknown_name(kind: str, given: str, allowed: Iterable[str]) -> str:
    """Return the sentence for a name that is not in `allowed`, with the nearest allowed name as a suggestion.

    Of more names than can be looked over, the nearest are listed where any is near.
    """
    names = sorted(allowed)
    near = nearest(given, names)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    listed = f"allowed are {', '.join(names)}"
    if near and len(names) > _LISTED:
        listed = f"the nearest of {len(names)} allowed {'is' if len(near) == 1 else 'are'} {', '.join(near)}"
    return f"Unknown {kind} {redact_value(given)!r}: {listed}{hint}"
