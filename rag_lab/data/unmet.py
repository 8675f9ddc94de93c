"""What questions name that the corpus does not have: evidence, a namespace, permissions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from rag_lab.access import may_see
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.files.folder import LoadedCorpus
from rag_lab.corpus.index.chunk_store import ChunkStore, write_chunks
from rag_lab.corpus.index.locate import locate_evidence
from rag_lab.corpus.split.chunks import split
from rag_lab.data.dataset import Dataset
from rag_lab.data.places import question_problem
from rag_lab.records import Evidence, Problem, Question


def located_evidence(dataset: Dataset, corpus: LoadedCorpus) -> tuple[dict[str, list[Evidence]], list[Problem]]:
    """Return each question's evidence that a sweep would find, located, and a problem, in its words, for the rest."""
    located: dict[str, list[Evidence]] = {}
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chunks.sqlite")
        write_chunks(path, corpus.documents, split(corpus.documents, CorpusConfig()))
        store = ChunkStore(path)
        labels = [(question, item) for question in dataset.questions for item in question.evidence]
        for question, item in labels:
            found, reason = locate_evidence(store, item)
            if reason:
                told = f"evidence of question {question.question_id!r}: {reason}"
                problems.append(Problem(str(dataset.corpus_dir / item.source), told))
            else:
                located.setdefault(question.question_id, []).append(found)
    return located, problems


def unmet_access(dataset: Dataset, corpus: LoadedCorpus) -> list[Problem]:
    """Return a problem for each question whose namespace or permissions no file has, and for evidence they hide."""
    files = {item.source: (item.namespace, item.permissions) for item in corpus.documents}
    asked = [q for q in dataset.questions if q.may_see is not None or q.namespace is not None]
    return [question_problem(dataset, question, reason) for question in asked for reason in _reasons(question, files)]


def _reasons(question: Question, files: Mapping[str, tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    attributes = set(files.values())
    if question.namespace is not None and all(namespace != question.namespace for namespace, _ in attributes):
        yield f"names the namespace {question.namespace!r}, which no file is in; correct it or attributes.yaml"
    if question.may_see and all(set(permissions).isdisjoint(question.may_see) for _, permissions in attributes):
        yield f"has may_see {list(question.may_see)}, none of which a file asks for; correct it or attributes.yaml"
    sources = dict.fromkeys(item.source for item in question.evidence if item.source in files)
    for source in (source for source in sources if not may_see(question, *files[source])):
        yield f"has evidence in {source!r}, which its asker may not see; give may_see or namespace as the file asks for"
