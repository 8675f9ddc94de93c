"""One content under several labels: the strictest holds, so that a link or a copy opens nothing.

A link has the label of the file that it leads to, beside its own. Files with the same bytes, hard links among them, may
be seen by those who may see every one of them; but files of two namespaces do not know of each other, for what two
tenants have is each one's own. Permissions that exclude each other leave nobody but an unrestricted asker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from rag_lab.access import NOBODY
from rag_lab.corpus.files.attributes import Attributes

_PUBLIC = Attributes()


def of_link(own: Attributes, target: Attributes) -> Attributes | None:
    """Return what holds for a link with the label `own` to a file with the label `target`.

    None where they are in two namespaces: then there is nobody to whom both belong.
    """
    if own.namespace and target.namespace and own.namespace != target.namespace:
        return None
    return Attributes(own.namespace or target.namespace, _both(own.permissions, target.permissions))


def of_copies(
    labels: Mapping[str, Attributes], digests: Mapping[str, str]
) -> tuple[dict[str, Attributes], list[tuple[str, str]]]:
    """Return the labels of files, stricter where others of `digests` have the same content, and why: (source, reason).

    Args:
        labels: of the files that have one, by source.
        digests: of the content of all files, by source.
    """
    same: dict[str, list[str]] = defaultdict(list)
    for source, digest in digests.items():
        same[digest].append(source)
    strict, reasons = dict(labels), []
    for source, digest in digests.items():
        own = labels.get(source, _PUBLIC)
        others = [name for name in same[digest] if _meet(own, labels.get(name, _PUBLIC))]
        held, stricter = _held(own, {name: labels.get(name, _PUBLIC) for name in others})
        if stricter:
            strict[source] = held
            reasons.append((source, stricter_reason(held, f"it is the same as {stricter}, byte for byte")))
    return strict, reasons


def stricter_reason(held: Attributes, because: str) -> str:
    """Return the sentence on a file that is less open than its own label says."""
    whose = f" in the namespace {held.namespace}" if held.namespace else ""
    who = "nobody who is restricted" if held.permissions == NOBODY else ", ".join(held.permissions) or "everybody"
    return f"may be seen by {who}{whose}, because {because}: the strictest label holds. Remove it, or mend the rules."


def _meet(own: Attributes, other: Attributes) -> bool:
    return own.namespace == other.namespace or not (own.namespace and other.namespace)


def _held(own: Attributes, others: Mapping[str, Attributes]) -> tuple[Attributes, str]:
    """Return what is left of `own`, and the last of `others` that took something of it away ("" for none)."""
    held, stricter = own, ""
    for name, other in others.items():
        left = replace(held, permissions=_both(held.permissions, other.permissions))
        if left != held:
            held, stricter = left, name
    return held, stricter


def _both(some: tuple[str, ...], others: Iterable[str]) -> tuple[str, ...]:
    """Return permissions of which each satisfies both lists; an empty list asks for none."""
    others = tuple(others)
    if not some or not others:
        return some or others
    return tuple(name for name in some if name in others) or NOBODY
