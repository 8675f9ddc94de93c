"""Documents that answer nothing, indexed beside a corpus: as many as asked for, and none that holds the evidence."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rag_lab._kit.digest import digest
from rag_lab._kit.wording import counted
from rag_lab.corpus.build_index import Page
from rag_lab.corpus.folder import Listing, file_digests, list_files
from rag_lab.errors import DatasetError
from rag_lab.records import Question

DISTRACTORS = ".distractors/"  # before their names; no file of a corpus has such a name
_TELLING_CHARS = 40  # of a quote; a shorter one, a number say, stands in documents that answer nothing, too


def list_corpus(
    corpus_dir: Path, suffixes: Collection[str], cache: Path, n: int = 0, folder: Path | None = None
) -> tuple[Listing, dict[str, str]]:
    """Return the files of a corpus, and `n` of `folder` beside them, which everybody may see, with their SHA-256.

    These are the first in an order that looks random and is the same everywhere, so that fewer are among more. A file
    with the bytes of one of the corpus is none of them. `cache` remembers digests, see `file_digests`.
    """
    listing = list_files(corpus_dir, suffixes)
    digests = file_digests(listing.files, cache)
    listing = listing.with_strictest_labels(digests)
    if not n:
        return listing, digests
    if folder is None:
        raise DatasetError(f"corpus.distractors is {n:,}; name their folder or dataset in corpus.distractors_from.")
    others = list_files(folder, suffixes).files
    found, corpus = file_digests(others, cache), set(digests.values())
    order = sorted((name for name in others if found[name] not in corpus), key=digest)
    if len(order) < n:
        raise DatasetError(
            f"corpus.distractors is {n:,}, and {folder} holds {counted(len(order), 'file')} that the corpus has not; "
            "ask for at most so many, or name another folder in corpus.distractors_from."
        )
    chosen = sorted(order[:n])
    files = {f"{DISTRACTORS}{name}": others[name] for name in chosen}
    bytes_of = {f"{DISTRACTORS}{name}": found[name] for name in chosen}
    return replace(listing, files={**listing.files, **files}), {**digests, **bytes_of}


def refuse_answers(files: Collection[str], pages: Callable[[], Iterable[Page]], questions: Sequence[Question]) -> None:
    """Refuse distractors that hold evidence word for word: a quote, the passage around a short one, or the file.

    Args:
        files: of the index; without a distractor among them nothing is read.
        pages: all of these files.
        questions: with their evidence located.

    Raises:
        DatasetError: naming the first such document and the question.
    """
    if not any(source.startswith(DISTRACTORS) for source in files):
        return
    texts: dict[str, str] = {}
    for source, _, text in pages():
        if source.startswith(DISTRACTORS):
            texts[source] = texts.get(source, "") + "".join(text.split())
    whole = "\n".join(texts.values())
    for question in questions:
        for evidence in question.evidence:
            quote = evidence.quote or ""
            wanted = "".join((quote if len(quote) >= _TELLING_CHARS else evidence.context).split())
            held = [source for source in evidence.copies if source in texts]
            if wanted and wanted in whole:
                held += [source for source, text in texts.items() if wanted in text]
            if held:
                raise DatasetError(
                    f"{held[0].removeprefix(DISTRACTORS)}, one of corpus.distractors, holds the evidence of question "
                    f"{question.question_id!r}, so it is none; take it out of corpus.distractors_from, or name another."
                )
