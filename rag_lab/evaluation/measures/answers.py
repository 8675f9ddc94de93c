"""Answers against references, as SQuAD measures them (Rajpurkar et al. 2016), and abstention.

As in SQuAD 2.0 (Rajpurkar et al. 2018), who abstains says nothing: the words that say so are not compared.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable

from rag_lab.evaluation.metric import NOTHING_TO_READ, Family, Gap, Metric, MetricInfo, Needs, Tools, TraceMetric
from rag_lab.records import Answer, Trace

_NEEDS: Needs = frozenset({"answer", "reference"})

INFOS = (
    MetricInfo("answer.exact_match", "1 where the normalized answer equals one of the references, else 0.", _NEEDS),
    MetricInfo(
        "answer.token_f1", "F1 of the normalized words shared with a reference; the best reference counts.", _NEEDS
    ),
    MetricInfo(
        "answer.abstention",
        "1 where the reader abstained on an unanswerable question or did not on an answerable one, else 0.",
        frozenset({"answer"}),
    ),
    MetricInfo(
        "answer.words",
        "Words of the answer, as white space parts them; a cost: longer is not better.",
        frozenset({"answer"}),
        high=None,
        higher_is_better=False,
        is_cost=True,
    ),
)

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def build(name: str, info: MetricInfo, argument: str, tools: Tools) -> Metric:
    """Return the answer measure called `name`."""
    return TraceMetric(name, info.needs, _COMPUTE[name], _VERSIONS.get(name, 1))


def normalize(text: str) -> str:
    """Lower the case, drop ASCII punctuation and English articles, and squeeze white space.

    Example:
        >>> normalize("The  Oven's timer.")
        'ovens timer'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def token_f1(answer: str, reference: str) -> float:
    """Return the F1 of the words that both share, as multisets; 1 where both are empty after normalization."""
    given, wanted = normalize(answer).split(), normalize(reference).split()
    if not given or not wanted:
        return float(given == wanted)
    shared = sum((Counter(given) & Counter(wanted)).values())
    return 2 * shared / (len(given) + len(wanted))


def _exact_match(trace: Trace) -> float | Gap:
    given = normalize(_answer(trace).text)
    return float(_says_something(trace) and any(given == normalize(reference) for reference in trace.question.answers))


def _token_f1(trace: Trace) -> float | Gap:
    found = max(token_f1(_answer(trace).text, reference) for reference in trace.question.answers)
    return found if _says_something(trace) else 0.0


def _abstention(trace: Trace) -> float | Gap:
    if trace.has_nothing_to_read:
        return NOTHING_TO_READ
    return float(_answer(trace).abstained != trace.question.answerable)


def _words(trace: Trace) -> float | Gap:
    return float(len(_answer(trace).text.split()))


def _says_something(trace: Trace) -> bool:
    return not _answer(trace).abstained


def _answer(trace: Trace) -> Answer:
    return trace.answer or Answer("")


_COMPUTE: dict[str, Callable[[Trace], float | Gap]] = {
    "answer.exact_match": _exact_match,
    "answer.token_f1": _token_f1,
    "answer.abstention": _abstention,
    "answer.words": _words,
}

_VERSIONS = {"answer.exact_match": 2, "answer.token_f1": 2, "answer.abstention": 2}

FAMILY = Family(INFOS, build)
