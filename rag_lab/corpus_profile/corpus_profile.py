"""`profile`: what is in a corpus, how much of it the configured models read, and what to set for it.

Of two files each is the set of its runs of five words, thinned by their digests to a sample that is the same for the
same text; they are as alike as their samples: shared runs of all runs (Broder 1997, "On the resemblance and containment
of documents").
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import Any

from tqdm import tqdm

from rag_lab._kit.wording import counted, some_of
from rag_lab.config import PipelineConfig
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.corpus.load.pdf import scanned_pages
from rag_lab.corpus.normalize import language_of, main_language
from rag_lab.corpus.spans import headings, row_spans
from rag_lab.data.sampling import cluster_proposal
from rag_lab.errors import ModelError
from rag_lab.models.providers import CHAT_MODELS, providers_of
from rag_lab.models.shared import better_model, embedder, is_small_model, provider_problem
from rag_lab.models.truncation import ReadsTexts, estimated_tokens
from rag_lab.pipeline import Pipeline
from rag_lab.records import Document, Problem
from rag_lab.rich_display import rich_display
from rag_lab.stores.sparse import analyzer_for

_MANY_TABLES = 0.1  # of the pages
_MANY_HEADINGS = 0.5  # of the files
_CUT = 0.02  # of the chunks
_STEP = 50  # characters
_SAMPLE = 4000  # texts that are counted, evenly spread
_WORD = re.compile(r"\w+")
_RUN = 5  # words
_RUNS = 256  # runs of a file, those of the smallest digests
_LEAST = 0.5
_MOST_FILES = 30  # that share a run; what stands in more is a letterhead
_LEAST_ROWS = 3
_COLUMNS = re.compile(r"(?<=[^\s.):•–-])  +(?=\S)")  # the gap between two cells; after `2.` it is a list's


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


@dataclass(frozen=True, slots=True)
class Length:
    """The lengths of some texts, and how many are longer than what reads them takes of one."""

    what: str  # pages, chunks, passages
    unit: str
    n: int
    median: int
    most: int  # nine of ten are at most as long
    longest: int
    limit: int | None  # of what reads them; None where nothing does, or it does not say
    reader: str
    over: float  # the share that is longer

    def __str__(self) -> str:
        spread = f"{self.n:,}, median {self.median:,} {self.unit}, 90% up to {self.most:,}, longest {self.longest:,}"
        if self.limit is None:
            return spread
        longer = f"{self.over:.{0 if self.over >= 0.01 else 1}%} are longer and are cut"
        return f"{spread}; {self.reader} reads {self.limit:,}: {longer if self.over else 'all are read whole'}"


@dataclass(frozen=True, slots=True)
class SimilarFiles:
    """Two files by their sources, and how alike they are: 1 is the same words in the same order."""

    first: str
    second: str
    similarity: float

    def __str__(self) -> str:
        return f"{self.first} and {self.second} ({self.similarity:.0%} alike)"


@rich_display("rag_lab.notebook.views.data_view:profile_view")
@dataclass(frozen=True)
class CorpusProfile:
    """A corpus in numbers, and what follows. Pages are documents: pages of paged files, and files without pages."""

    name: str
    folder: str  # as a command takes it
    files: Mapping[str, int]  # by suffix, the commonest first; those of a type that is read
    n_used: int  # files with text that can be read
    n_pages: int
    n_words: int
    language: str  # that words are cut by, '' where it cannot be told
    declared: bool  # whether dataset.yaml says so
    languages: Mapping[str, int]  # files of each, the commonest first; '' are those that cannot be told
    n_tables: int  # pages that seem to hold a table
    n_headings: int  # files with Markdown headings, two at least
    scans: Mapping[str, str]  # by source: which pages are images without text
    same: tuple[tuple[str, ...], ...]  # files with the same bytes
    similar: tuple[SimilarFiles, ...]  # revisions and the like, most alike first
    lengths: tuple[Length, ...]  # of pages, chunks and parents, against what the models read
    advice: tuple[Advice, ...]
    problems: tuple[Problem, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """What to set, as dotted keys: `Pipeline.set` takes it."""
        return {item.key: item.value for item in self.advice if item.key}

    @property
    def to_try(self) -> dict[str, tuple[Any, ...]]:
        """What only a comparison can tell: the factors of an experiment."""
        return {item.factor: item.values for item in self.advice if item.factor}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return asdict(self)


def profile(documents: Any, config: PipelineConfig | None = None, *, home: Path | str | None = None) -> CorpusProfile:
    """Return the profile of whatever a `Pipeline` takes, or of one, read and cut as an index of it would be."""
    pipeline = documents if isinstance(documents, Pipeline) else Pipeline(documents, config, home=home)
    index, dataset = pipeline.index, pipeline.dataset
    pages: dict[str, list[Document]] = {}
    for document in index.chunks.documents():
        pages.setdefault(document.source, []).append(document)
    texts = {source: "\n".join(page.text for page in found) for source, found in pages.items()}
    languages = {
        source: language_of(text)
        for source, text in tqdm(texts.items(), "languages", disable=(True if len(texts) < 500 else None))
    }
    same = {pair for names in index.same_files() for pair in combinations(sorted(names), 2)}
    suffixes = Counter(PurePosixPath(name).suffix.lower() for name in index.manifest.made_of["files"])
    tables = [page.source for found in pages.values() for page in found if holds_table(page.text)]
    corpus = CorpusProfile(
        name=dataset.name,
        folder=str(dataset.path),
        files=dict(suffixes.most_common()),
        n_used=len(texts),
        n_pages=index.manifest.n_documents,
        n_words=sum(len(text.split()) for text in texts.values()),
        language=dataset.language or main_language((languages[source], len(text)) for source, text in texts.items()),
        declared=bool(dataset.language),
        languages=dict(Counter(languages.values()).most_common()),
        n_tables=len(tables),
        n_headings=sum((sum(len(headings(page.text)) for page in found) > 1) for found in pages.values()),
        scans={
            problem.path.removeprefix(str(index.corpus_dir)).lstrip("/"): found
            for problem in index.problems
            if (found := scanned_pages(problem.reason))
        },
        same=index.same_files(),
        similar=tuple(pair for pair in similar_files(texts) if (pair.first, pair.second) not in same),
        lengths=tuple(lengths_of_chunks(index, pipeline.config)),
        advice=(),
        problems=(*dataset.problems, *index.problems),
    )
    config, n_pdf_tables = pipeline.config, sum(source.lower().endswith(".pdf") for source in tables)
    advice = [*_search(corpus, config), *_pieces(corpus, n_pdf_tables, config), *_models_and_files(corpus, config)]
    advice.sort(key=lambda one: (not one.key, not one.factor))  # what to set, to compare, to do about files and models
    clusters = cluster_proposal(dataset.questions, "none")
    return replace(corpus, advice=(*advice, *([Advice(clusters)] if clusters else [])))


def lengths_of_chunks(index: CorpusIndex, config: PipelineConfig) -> Iterator[Length]:
    """Yield the lengths of pages, of chunks as the embedding model counts them, and of parents as a reader does."""
    yield _length("pages", "characters", [len(page.text) for page in index.chunks.documents()], None, "")
    children = [child.text for child in index.chunks.children()]
    sample = children[:: max(1, len(children) // _SAMPLE)]
    model = config.models.embedding
    try:
        reads: object = embedder(model)
    except ModelError:
        reads = None
    if isinstance(reads, ReadsTexts) and reads.most_tokens:
        yield _length("chunks", "word pieces", reads.text_tokens(sample, "document"), reads.most_tokens, model)
    else:
        yield _length("chunks", "characters", list(map(len, children)), None, "")
    share = config.answer.context_tokens // config.rerank.final_k
    parents = index.chunks.parents()
    counts = [estimated_tokens(parent.text) for parent in parents[:: max(1, len(parents) // _SAMPLE)]]
    what = f"each of {config.rerank.final_k} passages in {config.answer.context_tokens:,} tokens of context"
    yield _length("passages", "tokens at most", counts, share, what)


def _length(what: str, unit: str, values: Sequence[int], limit: int | None, reader: str) -> Length:
    ranked = sorted(values) or [0]
    over = 0.0 if limit is None else sum(value > limit for value in ranked) / len(ranked)
    at = [ranked[min(len(ranked) - 1, int(share * len(ranked)))] for share in (0.5, 0.9)]
    return Length(what, unit, len(values), at[0], at[1], ranked[-1], limit, reader, over)


def similar_files(texts: Mapping[str, str]) -> list[SimilarFiles]:
    """Return the pairs of files, by source, of which half the runs of words or more are the same; most alike first."""
    samples: dict[str, frozenset[bytes]] = {}
    for source, text in texts.items():
        words = _WORD.findall(text.casefold())
        starts = range(max(1, len(words) - _RUN + 1) if words else 0)
        runs = {" ".join(words[start : start + _RUN]) for start in starts}
        samples[source] = frozenset(sorted(blake2b(run.encode(), digest_size=8).digest() for run in runs)[:_RUNS])
    holders: dict[bytes, list[str]] = defaultdict(list)
    for source, sample in sorted(samples.items()):
        for run in sample:
            holders[run].append(source)
    found = []
    for pair in {pair for files in holders.values() if len(files) <= _MOST_FILES for pair in combinations(files, 2)}:
        first, second = samples[pair[0]], samples[pair[1]]
        both = sorted(first | second)[:_RUNS]  # the share of shared runs among these estimates that among all
        found.append(SimilarFiles(*pair, sum(run in first and run in second for run in both) / len(both)))
    return sorted((p for p in found if p.similarity >= _LEAST), key=lambda p: (-p.similarity, p.first, p.second))


def holds_table(text: str) -> bool:
    """Tell whether three lines that follow each other are rows of a table."""
    if len(row_spans(text)) >= _LEAST_ROWS:
        return True
    following = 0
    for line in text.split("\n"):
        following = following + 1 if _COLUMNS.search(line.strip()) else 0
        if following >= _LEAST_ROWS:
            return True
    return False


def _search(corpus: CorpusProfile, config: PipelineConfig) -> Iterator[Advice]:
    analyzer = analyzer_for("auto", corpus.language)
    if analyzer != "unicode":
        yield Advice(
            f"the texts are in {analyzer.capitalize()}, so BM25 and TF-IDF find other forms of a word; of six sets of "
            "questions that nobody here tuned to, it found more on five, by up to 0.08 nDCG@10 (docs/retrieval.md)",
            "retrieval.analyzer",
            analyzer,
        )
    if config.models.embedding == "sentence_transformers:minilm" and analyzer != "english":
        known = corpus.language if analyzer == "unicode" else analyzer
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


def _pieces(corpus: CorpusProfile, n_pdf_tables: int, config: PipelineConfig) -> Iterator[Advice]:
    lengths = {length.what: length for length in corpus.lengths}
    chunks, passages = lengths["chunks"], lengths["passages"]
    if chunks.limit and chunks.over > _CUT:
        size = max(_STEP, int(config.corpus.chunk_size * chunks.limit / chunks.most / _STEP) * _STEP)
        why = (
            f"{chunks.over:.0%} of the chunks are longer than the {chunks.limit} word pieces that {chunks.reader} reads"
        )
        yield Advice(f"{why}: what stands at their end is never found", "corpus.chunk_size", size)
        if config.corpus.chunk_overlap > size // 4:
            yield Advice("a fifth of the chunk", "corpus.chunk_overlap", size // 5)
    if corpus.n_headings >= _MANY_HEADINGS * corpus.n_used:
        why = f"{corpus.n_headings} of {counted(corpus.n_used, 'file')} have headings"
        yield Advice(f"{why}, over which a chunk then never runs", "corpus.splitter", "markdown")
        yield Advice(f"{why}: a section is what belongs together", "corpus.parents", "section")
    elif passages.limit and passages.median > 4 * passages.limit:
        why = f"half of the pages have {passages.median:,} tokens or more, of which {passages.limit} are read"
        yield Advice(f"{why}: a piece around what was found says more", "corpus.parents", "fixed")
    if n_pdf_tables and find_spec("pymupdf") is None:
        yield Advice("PyMuPDF is not installed", "corpus.pdf", "pdfium")
    elif n_pdf_tables >= _MANY_TABLES * corpus.n_pages and config.corpus.pdf == "text":
        why = f"{n_pdf_tables} of {counted(corpus.n_pages, 'page')} seem to hold a table; as Markdown its columns"
        yield Advice(
            f"{why} keep their headers, at about a second a page", factor="corpus.pdf", values=("text", "tables")
        )
    yield Advice("what a chunk holds decides what can be found", factor="corpus.chunk_size",
                 values=(config.corpus.chunk_size, config.corpus.chunk_size // 2))  # fmt: skip


def _models_and_files(corpus: CorpusProfile, config: PipelineConfig) -> Iterator[Advice]:
    if not config.answer.asks_model:
        yield Advice(f"Answers are quotes; `answer.name: llm` lets a model write them. {better_model()}")
    elif is_small_model(config.models.generation):
        yield Advice(f"The packaged model that answers is a toy, good enough to try things out. {better_model()}")
    if corpus.scans:
        gemini = providers_of(CHAT_MODELS)["gemini"]
        ready = not provider_problem("gemini", gemini)
        cure = "a multimodal model can read them" if ready else "run OCR on them, as `ocrmypdf in.pdf out.pdf`"
        why = f"Pages that are images without text, in {counted(len(corpus.scans), 'file')}"
        setting = ("corpus.pdf", "vision") if ready else ()
        yield Advice(f"{why} ({some_of([*corpus.scans], 3)}): {cure}", *setting)
    if corpus.same:
        names = some_of([f"{one[0]} and {one[1]}" for one in corpus.same], 3)
        yield Advice(f"Files with the same content are found twice ({names}): `rag-lab index --remove` leaves one out")
    if corpus.similar:
        names = some_of([f"{pair.first} and {pair.second}" for pair in corpus.similar], 3)
        yield Advice(
            f"{counted(len(corpus.similar), 'pair')} of files say nearly the same ({names}): where one is a superseded "
            "revision, leave it out with `rag-lab index --remove`, or answers will quote it"
        )
