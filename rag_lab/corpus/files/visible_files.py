"""Who may see a file, by attributes.yaml as it is now: asked by what checks the searches, and not by them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rag_lab.access import may_see
from rag_lab.corpus.files.attributes import Attributes, read_attributes
from rag_lab.corpus.files.folder import list_files
from rag_lab.records import Question

_OPEN = Attributes()


def visible_in(corpus_dir: Path) -> Callable[[Question, str], bool]:
    """Return a function that tells whether the asker of a question may see a file below `corpus_dir`.

    Raises:
        DatasetError: if the rules are faulty.
    """
    rules = read_attributes(corpus_dir, list_files(corpus_dir, None).files)

    def visible(question: Question, source: str) -> bool:
        own = rules.get(source, _OPEN)
        return may_see(question, own.namespace, own.permissions)

    return visible
