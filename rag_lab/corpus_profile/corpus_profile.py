"""`profile`: what is in a corpus, how much of it the configured models read, and what to set for it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import Any

from tqdm import tqdm

from rag_lab.config import PipelineConfig
from rag_lab.corpus.languages import language_of, main_language
from rag_lab.corpus.load.pymupdf_pdf import scanned_pages
from rag_lab.corpus.spans import headings
from rag_lab.corpus_profile.advice import Advice, Facts, advise
from rag_lab.corpus_profile.measures import Length, SimilarFiles, holds_table, lengths_of_chunks, similar_files
from rag_lab.data.sampling import cluster_proposal
from rag_lab.pipeline import Pipeline
from rag_lab.records import Document, Problem
from rag_lab.rich_display import rich_display


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
    facts = Facts(
        language=dataset.language or main_language((languages[source], len(text)) for source, text in texts.items()),
        n_files=len(texts),
        n_pages=index.manifest.n_documents,
        n_tables=sum(holds_table(page.text) for found in pages.values() for page in found),
        n_pdf_tables=sum(
            holds_table(page.text) for found in pages.values() for page in found if page.source.lower().endswith(".pdf")
        ),
        n_headings=sum((sum(len(headings(page.text)) for page in found) > 1) for found in pages.values()),
        scans={
            problem.path.removeprefix(str(index.corpus_dir)).lstrip("/"): found
            for problem in index.problems
            if (found := scanned_pages(problem.reason))
        },
        same=index.same_files(),
        similar=tuple(pair for pair in similar_files(texts) if (pair.first, pair.second) not in same),
        lengths=tuple(lengths_of_chunks(index, pipeline.config)),
    )
    clusters = cluster_proposal(dataset.questions, "none")
    return CorpusProfile(
        name=dataset.name,
        folder=str(dataset.path),
        files=dict(
            Counter(PurePosixPath(name).suffix.lower() for name in index.manifest.made_of["files"]).most_common()
        ),
        n_used=len(texts),
        n_pages=facts.n_pages,
        n_words=sum(len(text.split()) for text in texts.values()),
        language=facts.language,
        declared=bool(dataset.language),
        languages=dict(Counter(languages.values()).most_common()),
        n_tables=facts.n_tables,
        n_headings=facts.n_headings,
        scans=facts.scans,
        same=facts.same,
        similar=facts.similar,
        lengths=facts.lengths,
        advice=(*advise(facts, pipeline.config), *([Advice(clusters)] if clusters else [])),
        problems=(*dataset.problems, *index.problems),
    )
