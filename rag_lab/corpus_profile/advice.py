"""What to set for a corpus, what to compare, and what to do about its files: each with its reason."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from rag_lab._kit.wording import counted, some_of
from rag_lab.config import PipelineConfig
from rag_lab.corpus_profile.measures import Length, SimilarFiles
from rag_lab.models.failover import better_model, is_small_model
from rag_lab.models.providers import CHAT_MODELS, providers_of
from rag_lab.models.shared import provider_problem
from rag_lab.stores.sparse import analyzer_for

_ENGLISH_ONLY = "sentence_transformers:minilm"
_MANY_TABLES = 0.1  # of the pages
_MANY_HEADINGS = 0.5  # of the files
_CUT = 0.02  # of the chunks
_STEP = 50  # characters


@dataclass(frozen=True, slots=True)
class Facts:
    """What was counted, and is advised on."""

    language: str
    n_files: int
    n_pages: int
    n_tables: int
    n_pdf_tables: int
    n_headings: int
    scans: Mapping[str, str]
    same: tuple[tuple[str, ...], ...]
    similar: tuple[SimilarFiles, ...]
    lengths: tuple[Length, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """A setting (`key` and `value`), a comparison to make (`factor` and `values`), or a thing to do, and why."""

    why: str
    key: str = ""
    value: Any = None
    factor: str = ""
    values: tuple[Any, ...] = ()

    def __str__(self) -> str:
        if self.key:
            return f"{self.key}={self.value}: {self.why}"
        return f"{self.factor}: {self.why}" if self.factor else self.why


def advise(facts: Facts, config: PipelineConfig) -> list[Advice]:
    """Return what to set, then what to compare, then what to do about files and models."""
    found = [*_search(facts, config), *_pieces(facts, config), *_reader(config), *_files(facts)]
    return sorted(found, key=lambda item: (not item.key, not item.factor))


def _search(facts: Facts, config: PipelineConfig) -> Iterator[Advice]:
    analyzer = analyzer_for("auto", facts.language)
    if analyzer != "unicode":
        yield Advice(
            f"the texts are in {analyzer.capitalize()}, so BM25 and TF-IDF find other forms of a word; of six sets of "
            "questions that nobody here tuned to, it found more on five, by up to 0.08 nDCG@10 (docs/retrieval.md)",
            "retrieval.analyzer",
            analyzer,
        )
    if config.models.embedding == _ENGLISH_ONLY and analyzer != "english":
        known = facts.language if analyzer == "unicode" else analyzer
        language = known.capitalize() or "several languages, or one that cannot be told"
        yield Advice(
            f"the texts are in {language}, and the packaged embedding model learnt English alone: in all others "
            "that were tried, searching by words found more than it did; compare a multilingual model",
            "retrieval.mode",
            "bm25",
        )
    else:
        if config.retrieval.mode == "dense":
            yield Advice(
                "words and embeddings fail on different questions: together they found more than either alone on XQuAD "
                "and SciFact",
                "retrieval.mode",
                "hybrid",
            )
        yield Advice("which search finds more differs between corpora", factor="retrieval.mode",
                     values=("hybrid", "dense", "bm25"))  # fmt: skip


def _pieces(facts: Facts, config: PipelineConfig) -> Iterator[Advice]:
    lengths = {length.what: length for length in facts.lengths}
    chunks, passages = lengths["chunks"], lengths["passages"]
    if chunks.limit and chunks.over > _CUT:
        size = max(_STEP, int(config.corpus.chunk_size * chunks.limit / chunks.most / _STEP) * _STEP)
        why = (
            f"{chunks.over:.0%} of the chunks are longer than the {chunks.limit} word pieces that {chunks.reader} reads"
        )
        yield Advice(f"{why}: what stands at their end is never found", "corpus.chunk_size", size)
        if config.corpus.chunk_overlap > size // 4:
            yield Advice("a fifth of the chunk", "corpus.chunk_overlap", size // 5)
    if facts.n_headings >= _MANY_HEADINGS * facts.n_files:
        why = f"{facts.n_headings} of {counted(facts.n_files, 'file')} have headings"
        yield Advice(f"{why}, over which a chunk then never runs", "corpus.splitter", "markdown")
        yield Advice(f"{why}: a section is what belongs together", "corpus.parents", "section")
    elif passages.limit and passages.median > 4 * passages.limit:
        why = f"half of the pages have {passages.median:,} tokens or more, of which {passages.limit} are read"
        yield Advice(f"{why}: a piece around what was found says more", "corpus.parents", "fixed")
    if facts.n_pdf_tables and find_spec("pymupdf") is None:
        yield Advice("PyMuPDF is not installed", "corpus.pdf", "pdfium")
    elif facts.n_pdf_tables >= _MANY_TABLES * facts.n_pages and config.corpus.pdf == "text":
        why = f"{facts.n_pdf_tables} of {counted(facts.n_pages, 'page')} seem to hold a table; as Markdown its columns"
        yield Advice(
            f"{why} keep their headers, at about a second a page", factor="corpus.pdf", values=("text", "tables")
        )
    yield Advice("what a chunk holds decides what can be found", factor="corpus.chunk_size",
                 values=(config.corpus.chunk_size, config.corpus.chunk_size // 2))  # fmt: skip


def _reader(config: PipelineConfig) -> Iterator[Advice]:
    if not config.answer.asks_model:
        yield Advice(f"Answers are quotes; `answer.name: llm` lets a model write them. {better_model()}")
    elif is_small_model(config.models.generation):
        yield Advice(f"The packaged model that answers is a toy, good enough to try things out. {better_model()}")


def _files(facts: Facts) -> Iterator[Advice]:
    if facts.scans:
        gemini = providers_of(CHAT_MODELS)["gemini"]
        ready = not provider_problem("gemini", gemini)
        cure = "a multimodal model can read them" if ready else "run OCR on them, as `ocrmypdf in.pdf out.pdf`"
        why = (
            f"Pages that are images without text, in {counted(len(facts.scans), 'file')} ({some_of([*facts.scans], 3)})"
        )
        yield Advice(f"{why}: {cure}", *(("corpus.pdf", "vision") if ready else ()))
    if facts.same:
        names = some_of([f"{one[0]} and {one[1]}" for one in facts.same], 3)
        yield Advice(f"Files with the same content are found twice ({names}): `rag-lab index --remove` leaves one out")
    if facts.similar:
        names = some_of([f"{pair.first} and {pair.second}" for pair in facts.similar], 3)
        yield Advice(
            f"{counted(len(facts.similar), 'pair')} of files say nearly the same ({names}): where one is a superseded "
            "revision, leave it out with `rag-lab index --remove`, or answers will quote it"
        )
