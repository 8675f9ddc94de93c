"""Answers against references, as SQuAD measures them (Rajpurkar et al. 2016), and abstention.

As in SQuAD 2.0 (Rajpurkar et al. 2018), who abstains says nothing: the words that say so are not compared.
"""

import re
import string
from collections import Counter

from rag_lab.evaluation.metric import NOTHING_TO_READ, Gap, MetricInfo, Needs, family_of
from rag_lab.records import Answer, Trace

_NEEDS: Needs = frozenset({"answer", "reference"})

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_EXACT = MetricInfo("answer.exact_match", "1 where the normalized answer equals one of the references, else 0.", _NEEDS)
_F1 = MetricInfo(
    "answer.token_f1", "F1 of the normalized words shared with a reference; the best reference counts.", _NEEDS
)
_ABSTENTION = MetricInfo(
    "answer.abstention",
    "1 where the reader abstained on an unanswerable question or did not on an answerable one, else 0.",
    frozenset({"answer"}),
)
_WORDS = MetricInfo(
    "answer.words",
    "Words of the answer, as white space parts them; a cost: longer is not better.",
    frozenset({"answer"}),
    high=None,
    higher_is_better=False,
    is_cost=True,
)


def normalize(text: str) -> str:
    """Lower the case, drop ASCII punctuation and English articles, and squeeze white space.

    Example:
        >>> normalize("The  Oven's timer.")
        'ovens timer'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def token_f1(answer: str, reference: str) -> float:
    """Return the F1 of the words that both share, as multisets; 1 where both are empty after normalization."""
    ours, wanted = normalize(answer).split(), normalize(reference).split()
    if not ours or not wanted:
        return float(ours == wanted)
    shared = sum((Counter(ours) & Counter(wanted)).values())
    return 2 * shared / (len(ours) + len(wanted))


def _exact_match(trace: Trace) -> float | Gap:
    words = normalize(_answer(trace).text)
    is_equal = any(words == normalize(reference) for reference in trace.question.answers)
    return float(is_equal and not _answer(trace).abstained)


def _token_f1(trace: Trace) -> float | Gap:
    found = max(token_f1(_answer(trace).text, reference) for reference in trace.question.answers)
    return 0.0 if _answer(trace).abstained else found


def _abstention(trace: Trace) -> float | Gap:
    if trace.has_nothing_to_read:
        return NOTHING_TO_READ
    return float(_answer(trace).abstained != trace.question.answerable)


def _answer(trace: Trace) -> Answer:
    return trace.answer or Answer("")


FAMILY = family_of(
    (_EXACT, _exact_match, 2),
    (_F1, _token_f1, 2),
    (_ABSTENTION, _abstention, 2),
    (_WORDS, lambda trace: float(len(_answer(trace).text.split())), 1),
)
