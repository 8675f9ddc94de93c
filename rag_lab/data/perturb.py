"""Right answers made wrong in one respect, deterministically: what a judge is put on trial with.

Each function returns the text with one thing changed, or None where the text has nothing to change. The rules read
English; a text without Latin capitals or digits yields little, which is counted and not hidden.
"""

import re
from collections.abc import Sequence
from typing import Literal, get_args

Perturbation = Literal["swapped_entity", "negation", "changed_number", "unsupported_sentence", "moved_citation"]
PERTURBATIONS: tuple[Perturbation, ...] = get_args(Perturbation)

_NUMBER = re.compile(r"(?<![\w.,-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w-])")
_NOT = re.compile(r"(?<=\w)\s+(?:not|never)\b|\b(?P<verb>\w+)n['’]t\b", re.IGNORECASE)
_WITHOUT_NOT = {"ca": "can", "wo": "will", "Ca": "Can", "Wo": "Will"}  # what is left of can't and won't
_AUXILIARY = re.compile(r"\b(is|are|was|were|has|have|can|could|may|must|shall|should|will|would|does|do|did)\b")
_VERB = re.compile(r"\b(needs?|gets?|opens?|closes?|holds?|takes?|goes|comes|lies|stands|means|requires?|allows?)\b")
# A name is a code with a digit (P-12, BV-7160-K) or a run of capitalized words that does not begin the sentence.
_CODE = re.compile(r"\b(?=[\w-]*[A-Z])(?=[\w-]*\d)[A-Z][\w-]*[\w]")
_NAME = re.compile(r"(?<=[a-z0-9,;:] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,})*")
_SENTENCE_END = re.compile(r"[.!?][\"'”’)]*$")


def entities(text: str) -> list[str]:
    """Return the codes and names in `text`, each once, in order."""
    found = sorted([*_CODE.finditer(text), *_NAME.finditer(text)], key=lambda match: match.start())
    return list(dict.fromkeys(match.group() for match in found))


def swap_entity(text: str, others: Sequence[str]) -> str | None:
    """Replace the first entity of `text` that has one of its kind in `others` (codes for codes, names for names).

    The likest other one stands in: the one that shares the longest beginning, the first of equals.
    """
    for entity in entities(text):
        rivals = [other for other in others if other not in text and _is_code(other) == _is_code(entity)]
        if rivals:
            return text.replace(entity, max(rivals, key=lambda rival: _shared_beginning(entity, rival)))
    return None


def negate(text: str) -> str | None:
    """Take the first `not` away, or else put one behind the first auxiliary, or before the first known verb."""
    if _NOT.search(text):
        return _NOT.sub(lambda match: _WITHOUT_NOT.get(match["verb"], match["verb"] or ""), text, count=1)
    if match := _AUXILIARY.search(text):
        return f"{text[: match.end()]} not{text[match.end() :]}"
    if match := _VERB.search(text):
        return f"{text[: match.start()]}never {text[match.start() :]}"
    return None


def change_number(text: str) -> str | None:
    """Change the first number that stands alone by about a third, written as it was; codes stay as they are."""
    match = _NUMBER.search(text)
    if match is None:
        return None
    digits = match.group().replace(",", "")
    decimals = len(digits.partition(".")[2])
    changed = float(digits) * 4 / 3
    if round(changed, decimals) == float(digits):
        changed = float(digits) + 1
    number = f"{changed:,.{decimals}f}" if "," in match.group() else f"{changed:.{decimals}f}"
    return text[: match.start()] + number + text[match.end() :]


def add_unsupported_sentence(text: str, others: Sequence[str]) -> str | None:
    """Add the first of `others` (right answers to other questions) that is a sentence and not already said."""
    strange = next((other for other in others if len(other.split()) >= 4 and other.lower() not in text.lower()), None)
    if strange is None:
        return None
    return f"{text if _SENTENCE_END.search(text) else text + '.'} {strange}"


def move_citation(cited: Sequence[str], others: Sequence[str]) -> str | None:
    """Return the first of `others` (passages) that is none of those that were cited: what a wrong citation names."""
    return next((other for other in others if other.strip() and other not in cited), None)


def _is_code(entity: str) -> bool:
    return any(character.isdigit() for character in entity)


def _shared_beginning(one: str, other: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
