"""Completion in bash, which cuts words at `=`, `:` and `@`: they are put together again, as the other shells give them.

Of what is offered, bash wants the part after the last cut alone.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout

VARIABLE = "_RAG_LAB_COMPLETE"
_CUTS = "=:@"


def completing() -> bool:
    """Tell whether this process was started by bash to complete a line."""
    return os.environ.get(VARIABLE) == "complete_bash"


def complete(app: Callable[[], object]) -> None:
    """Let `app` complete the line that bash has cut, and print what bash can put in."""
    given = os.environ.get("COMP_WORDS", "")
    words, current = whole_words(given.split("\n"), int(os.environ.get("COMP_CWORD") or 0))
    os.environ |= {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(current)}
    typed = words[current] if current < len(words) else ""
    there = max((typed.rfind(cut) for cut in _CUTS), default=-1) + 1
    said = io.StringIO()
    try:
        with redirect_stdout(said):
            app()
    finally:
        print("\n".join(line[there:] for line in said.getvalue().splitlines()))


def whole_words(cut: Sequence[str], current: int) -> tuple[list[str], int]:
    """Return the words of a line as they were typed, and which of them is completed."""
    words: list[str] = []
    place = len(cut)
    joins = False
    for number, word in enumerate(cut):
        is_cut = bool(word) and not word.strip(_CUTS)
        if words and (joins or is_cut):
            words[-1] += word
        else:
            words.append(word)
        if number == current:
            place = len(words) - 1
        joins = is_cut
    return words, min(place, len(words))
