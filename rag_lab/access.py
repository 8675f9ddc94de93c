"""Who may see what: the labels of documents, and which of them an asker's searches are held to.

A label stands for a namespace and a list of permissions. Vector stores keep one with each child and know nothing else
of access: a search gets the set of labels that it may return, and filters before the best k are taken. Sparse indexes
hold the texts of one such set alone, since their statistics are those of whatever they hold.
"""

import json
from collections.abc import Iterable, Sequence

from rag_lab.records import Question

Labels = frozenset[str]
NOBODY = ("",)  # permissions that no asker has: a name is never empty


def access_label(namespace: str, permissions: Iterable[str]) -> str:
    """Return the label of documents with these attributes: JSON, the same for any order of permissions.

    Example:
        >>> access_label("plant", ["staff", "audit"])
        '["plant", ["audit", "staff"]]'
    """
    return json.dumps([namespace, sorted(set(permissions))], ensure_ascii=False)


def allowed_labels(labels: Iterable[str], question: Question) -> Labels | None:
    """Return those of `labels` that the asker of `question` may be shown; None where nothing is withheld.

    A restricted asker (`may_see` is set, be it to nothing) sees documents that ask for no permission or for one that
    the asker has. Where the question names namespaces, it is answered from these alone.
    """
    if question.may_see is None and question.namespace is None:
        return None
    return frozenset(label for label in labels if _is_allowed(label, question))


def by_corpus(allowed: Labels | None, labels: Labels, corpora: Sequence[str]) -> Sequence[Labels | None]:
    """Return the `allowed` of the `labels` of each corpus that has some: `corpora` are namespaces, after all others."""
    if not corpora:
        return [allowed]
    groups: dict[str, set[str]] = {name: set() for name in ("", *corpora)}
    for label in labels if allowed is None else allowed:
        name = json.loads(label)[0].partition("/")[0]
        groups[name if name in corpora else ""].add(label)
    return [frozenset(group) for group in groups.values() if group]


def may_see(question: Question, namespace: str, permissions: Sequence[str]) -> bool:
    """Tell whether the asker of `question` may be shown a document with these attributes."""
    return _is_allowed(access_label(namespace, permissions), question)


def _is_allowed(label: str, question: Question) -> bool:
    namespace, permissions = json.loads(label)
    if question.namespaces is not None and namespace not in question.namespaces:
        return False
    return question.may_see is None or not permissions or any(name and name in question.may_see for name in permissions)
