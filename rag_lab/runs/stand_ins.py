"""Which of several models that a role names played it, told for a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rag_lab._kit.wording import listing
from rag_lab.models.failover.names import alternatives

KEY = "played_by"  # of a variant in the manifest: `first | second`, and those of them that were chosen

Played = Mapping[str, Sequence[str]]


def players(text: str, variants: Iterable[Played]) -> list[str]:
    """Return who played a role that is named so, in any of these variants: of one model, that one."""
    return list(dict.fromkeys(name for played in variants for name in played.get(text, ()))) or [text]


def stand_ins_told(variants: Mapping[str, Played]) -> list[str]:
    """Return a sentence for each `first | second` of a run; `variants` are what they are called, and who played."""
    texts = dict.fromkeys(text for played in variants.values() for text in played)
    return [_told(text, {name: played[text] for name, played in variants.items() if text in played}) for text in texts]


def _told(text: str, played: Mapping[str, Sequence[str]]) -> str:
    first = alternatives(text)[0]
    groups: dict[str, list[str]] = {}
    for variant, names in played.items():
        groups.setdefault(" and then ".join(names), []).append(variant)
    if list(groups) == [first]:
        return f"Of {text}, {first} played the role throughout."
    if len(groups) == 1:
        return f"Of {text}, {next(iter(groups))} played the role throughout, since {first} did not answer."
    told = listing([f"{names} in {listing(those)}" for names, those in groups.items()])
    return f"Of {text}, the role was played by {told}: what differs between these variants may be the model's doing."
