"""What a dataset says twice: questions with two labels that cannot both hold, and files that are copies of others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from rag_lab._kit.wording import some_of
from rag_lab.corpus.files.folder import LoadedCorpus
from rag_lab.corpus.index.read_and_split import repeats
from rag_lab.data.dataset import Dataset
from rag_lab.records import Problem, Question

_SHOWN = 3  # examples in a problem


def contradictions(dataset: Dataset) -> list[Problem]:
    """Return a problem where one asker asks the same, and it is labelled both answerable and unanswerable."""
    asked: dict[Hashable, dict[bool, Question]] = defaultdict(dict)
    for question in dataset.questions:
        asked[_same(question)].setdefault(question.answerable, question)
    pairs = [f"{found[True].question_id} and {found[False].question_id}" for found in asked.values() if len(found) > 1]
    if not pairs:
        return []
    both = "1 question is" if len(pairs) == 1 else f"{len(pairs):,} questions are"
    reason = (
        f"{both} labelled both answerable and unanswerable: {some_of(pairs, _SHOWN)}; correct or drop one of the two."
    )
    return [Problem(str(dataset.questions_path), reason)]


def copied_files(dataset: Dataset, corpus: LoadedCorpus) -> list[Problem]:
    """Return a problem where files read the same as others that the same people may see."""
    labels = {item.source: (item.namespace, item.permissions) for item in corpus.documents}
    found = repeats(((item.source, item.page, item.text) for item in corpus.documents), labels)
    if not found:
        return []
    pairs = [f"{copy} as {original}" for copy, original in sorted(found.items())]
    read = "reads" if len(found) == 1 else "read"
    reason = (
        f"{len(found):,} of {len(labels):,} files {read} the same as another: {some_of(pairs, _SHOWN)}. Each takes a "
        "place among what is found; remove them, or set corpus.duplicates: skip."
    )
    return [Problem(str(dataset.corpus_dir), reason)]


def _same(question: Question) -> Hashable:
    text = " ".join(question.text.casefold().split())
    return text, question.history, question.namespace, question.may_see
