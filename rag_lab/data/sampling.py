"""Which questions are not independent of each other, and samples of questions that grow without changing.

Questions are in one cluster where several are about one document, or one is asked in several languages. Seats of a
sample are dealt by the quota method of Balinski and Young (1975), "The Quota Method of Apportionment": like the method
of the largest remainder it keeps every stratum within one question of its proportional share, but unlike that method it
never takes a question back when the sample grows.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

from rag_lab._kit.wording import counted, some_of
from rag_lab.errors import ConfigError
from rag_lab.records import Question

_SHARED = 5  # questions on the document of a question, itself included, on average over questions
_FEWEST = 6  # clusters with which a test can find anything

CLUSTER_RULES = "`none`, `document`, or `tag:` and how the tag begins, as in `tag:item-`"
CLUSTER_RULE = re.compile(r"none|document|tag:.+")


def clusters_of(questions: Iterable[Question], rule: str) -> dict[str, str] | None:
    """Return the cluster of each question by its id; None where questions are independent (`none`).

    `document` puts questions together whose first piece of evidence stands in the same file, `tag:x` those with the
    same tag that begins with x. A question without evidence, or without such a tag, is in no cluster.
    """
    if not CLUSTER_RULE.fullmatch(rule):
        raise ConfigError(f"Unknown clusters {rule!r}: give {CLUSTER_RULES}.")
    if rule == "none":
        return None
    found: dict[str, str] = {}
    for question in questions:
        if rule == "document":
            names = [item.source for item in question.evidence]
        else:
            names = [tag for tag in question.tags if tag.startswith(rule.removeprefix("tag:"))]
        if names:
            found[question.question_id] = names[0]
    return found


def cluster_problem(questions: Collection[Question], rule: str) -> str:
    """Return why the rule is none for these questions, or "": it puts none of them into a cluster."""
    if rule == "none" or clusters_of(questions, rule):
        return ""
    tags = sorted({tag for question in questions for tag in question.tags})
    known = f"their tags are {some_of(tags)}" if tags else "they have no tags"
    missing = "no question has evidence" if rule == "document" else f"no question has a tag that begins so: {known}"
    none = f"{rule!r} puts none of {counted(len(questions), 'question')} into a cluster"
    return f"clusters: {none}, as {missing}; give {CLUSTER_RULES}."


def clusters_sentence(question_ids: Collection[str], clusters: Mapping[str, str], rule: str) -> str:
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


def cluster_proposal(questions: Collection[Question], rule: str) -> str:
    """Return why these questions should be declared as clusters, or "": where they are, or stand on enough documents.

    They should where a question shares the document of its first evidence with four others on average: the variance of
    a mean is then, at an intraclass correlation of 0.1, 1.4 times as large (Kish 1965, section 5.4).
    """
    if rule != "none":
        return ""
    sizes = Counter((clusters_of(questions, "document") or {}).values()).values()
    n = sum(sizes)
    if n == 0 or sum(size**2 for size in sizes) < _SHARED * n:
        return ""
    stand = f"{counted(n, 'question')} stand on {counted(len(sizes), 'document')}"
    if len(sizes) < _FEWEST:
        return (
            f"{stand}, and none are declared as clusters: what is concluded holds for other questions on "
            f"{'this document' if len(sizes) == 1 else 'these documents'}, and not for other documents."
        )
    return (
        f"{stand}, and none are declared as clusters, so that they are taken for independent of each other, though "
        "questions on one document often stand or fall together: add `clusters: document` to the experiment."
    )


def stratified(questions: Sequence[Question], n: int, seed: int) -> list[str]:
    """Return the ids of `n` questions (all where there are fewer), spread over class and answerability in proportion.

    The sample of n is the beginning of the sample of n + 1 with the same seed, and does not depend on the order of
    `questions`. Ids must be unique.
    """
    strata: dict[tuple[str, bool], list[Question]] = defaultdict(list)
    for question in questions:
        strata[question.query_class or "", question.answerable].append(question)
    waiting = {key: shuffled(strata[key], seed)[::-1] for key in sorted(strata)}
    sizes = {key: len(ids) for key, ids in waiting.items()}
    seats = dict.fromkeys(waiting, 0)
    sample = []
    for house in range(1, min(n, len(questions)) + 1):
        # The next seat is the neediest stratum's, of those below their upper quota.
        below = [key for key in sizes if seats[key] * sum(sizes.values()) < house * sizes[key]]
        chosen = max(below, key=lambda key: Fraction(sizes[key], seats[key] + 1))
        seats[chosen] += 1
        sample.append(waiting[chosen].pop())
    return sample


def shuffled(questions: Sequence[Question], seed: int) -> list[str]:
    """Return all ids in an order by lot, which depends on each id and the seed alone."""
    lots = {one.question_id: hashlib.sha256(f"{seed}:{one.question_id}".encode()).digest() for one in questions}
    return sorted((question.question_id for question in questions), key=lambda name: (lots[name], name))
