"""Which questions are not independent of each other: several about one document, one question in several languages."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from rag_lab._kit.wording import counted, some_of
from rag_lab.errors import ConfigError
from rag_lab.records import Question

CLUSTER_RULES = "`none`, `document`, or `tag:` and how the tag begins, as in `tag:item-`"


def is_cluster_rule(rule: str) -> bool:
    """Tell whether `rule` is one of `CLUSTER_RULES`."""
    return re.fullmatch(r"none|document|tag:.+", rule) is not None


def clusters_of(questions: Iterable[Question], rule: str) -> dict[str, str] | None:
    """Return the cluster of each question by its id; None where questions are independent (`none`).

    `document` puts questions together whose first piece of evidence stands in the same file, `tag:x` those with the
    same tag that begins with x. A question without evidence, or without such a tag, is in no cluster.

    Raises:
        ConfigError: if `rule` is unknown.
    """
    if not is_cluster_rule(rule):
        raise ConfigError(f"Unknown clusters {rule!r}: give {CLUSTER_RULES}.")
    if rule == "none":
        return None
    named = ((question.question_id, _cluster(question, rule)) for question in questions)
    return {question_id: cluster for question_id, cluster in named if cluster is not None}


def cluster_problem(questions: Collection[Question], rule: str) -> str:
    """Return why the rule is none for these questions, or "": it puts none of them into a cluster."""
    if rule == "none" or clusters_of(questions, rule):
        return ""
    tags = sorted({tag for question in questions for tag in question.tags})
    known = f"their tags are {some_of(tags)}" if tags else "they have no tags"
    missing = "no question has evidence" if rule == "document" else f"no question has a tag that begins so: {known}"
    none = f"{rule!r} puts none of {counted(len(questions), 'question')} into a cluster"
    return f"clusters: {none}, as {missing}; give {CLUSTER_RULES}."


def clusters_told(question_ids: Collection[str], clusters: Mapping[str, str], rule: str) -> str:
    """Say how many of the questions are in how many clusters, and how many in none."""
    found = [clusters[name] for name in question_ids if name in clusters]
    if not found:
        return f"No question is in a cluster ({rule}), so intervals and tests are those of independent questions."
    alone = len(question_ids) - len(found)
    others = {0: "", 1: "; 1 other stands alone"}.get(alone, f"; {alone:,} others stand alone")
    return (
        f"{len(found):,} of {counted(len(question_ids), 'question')} are in {counted(len(set(found)), 'cluster')} "
        f"({rule}), each of which intervals and tests treat as one unit{others}."
    )


def _cluster(question: Question, rule: str) -> str | None:
    if rule == "document":
        return question.evidence[0].source if question.evidence else None
    return next((tag for tag in question.tags if tag.startswith(rule.removeprefix("tag:"))), None)
