"""How files become parents and children: the file readers and splitters by name, and their part of a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from rag_lab._kit.registry import kinds_of
from rag_lab._kit.section import Section

FILE_READERS, SPLITTERS = kinds_of(Path(__file__).with_name("modules.yaml"), "rag_lab.corpus")

BY_SUFFIX = {
    ".txt": "text", ".md": "markdown", ".markdown": "markdown", ".docx": "docx", ".xlsx": "spreadsheet",
    ".xlsm": "spreadsheet", ".xls": "spreadsheet", ".ods": "spreadsheet", ".csv": "delimited", ".tsv": "delimited",
    ".html": "html", ".htm": "html",
}  # fmt: skip


class CorpusConfig(Section):
    """How files become parents and children."""

    folder: str = Field(
        "", description="data set or folder whose documents stand in for the data set's: another state or form of them"
    )
    pdf: Literal["text", "tables", "pdfium", "vision"] = Field(
        "text",
        description="PDF pages as text, with ruled tables as Markdown, as text without PyMuPDF (AGPL), or as a "
        "multimodal model reads them",
    )
    pdf_unit: Literal["page", "file"] = Field(
        "page", description="what is cut into children: each page of a PDF by itself, or all of them as one text"
    )
    duplicates: Literal["keep", "skip"] = Field(
        "keep", description="whether files that read the same, and may be seen by the same, are all indexed"
    )
    vision_dpi: int = Field(150, ge=36, le=600, description="resolution at which a page is shown to models.vision")
    vision_min_score: float = Field(
        0.5, ge=0, le=1, description="likeness to the text layer below which the model's reading is not used"
    )
    file_seconds: int = Field(
        120, ge=1, le=86_400, description="seconds in which a file is read; one that takes longer is named and left out"
    )
    readers: dict[str, Annotated[str, FILE_READERS]] = Field(
        default_factory=dict, description="suffix: reader of such files, ours or one of your own, module:function"
    )
    splitter: Annotated[str, SPLITTERS, AfterValidator(SPLITTERS.check)] = Field(
        "recursive", description="where children are cut; one of your own is module:function"
    )
    chunk_size: int = Field(800, ge=50, le=20_000, description="characters of a child chunk (not of `sentences`)")
    chunk_overlap: int = Field(150, ge=0, lt=20_000, description="characters that neighbouring children share")
    chunk_tokens: int | None = Field(
        None,
        ge=16,
        le=100_000,
        description="tokens of a child as models.embedding counts them, in place of chunk_size; neighbours then share "
        "the part of it that chunk_overlap is of chunk_size",
    )
    chunk_words: int = Field(100, ge=5, le=5000, description="words of a child of the sentence splitter")
    overlap_words: int = Field(20, ge=0, lt=5000, description="words that its neighbouring children share")
    min_pieces: int = Field(1, ge=1, le=100, description="children of a parent below which it cuts between words")
    whole_below: int = Field(50, ge=0, le=5000, description="words of a parent below which it makes one child of it")
    breakpoint_percentile: float = Field(
        95, ge=0, le=100, description="`semantic` cuts where the distance of neighbouring sentences is above this"
    )
    parents: Literal["page", "section", "fixed", "neighbours", "none"] = Field(
        "page", description="what is given to the reader: the page, section, piece or children around a hit"
    )
    parent_size: int = Field(2400, ge=200, le=100_000, description="characters of a parent where it is a piece")
    neighbours: int = Field(1, ge=1, le=20, description="children before and after the hit in its parent")
    sheet_rows: Literal["packed", "one"] = Field(
        "packed", description="rows of a sheet or a table of separated values: as many as fit a child, or one"
    )
    context: Literal["none", "heading", "file", "llm", "late"] = Field(
        "none",
        description="what stands before a child where it is searched: nothing, its path of headings, the name of its "
        "file, or a sentence by models.understanding; late embeds it within its page or file",
    )

    distractors: int = Field(
        0, ge=0, le=10_000_000, description="documents of `distractors_from` that are indexed beside the corpus"
    )
    distractors_from: str = Field(
        "", description="a dataset or a folder of documents that answer none of the questions"
    )

    @property
    def chat_roles(self) -> list[str]:
        """The roles of the chat models that read files, or write what stands before chunks."""
        used = {"vision": self.pdf == "vision", "understanding": self.context == "llm"}
        return [role for role, is_used in used.items() if is_used]

    @property
    def cuts_by_tokens(self) -> bool:
        """Whether children are measured by the tokens of the embedding model."""
        return self.chunk_tokens is not None and self.splitter in SPLITTERS.built_in and self.splitter != "sentences"

    @field_validator("readers")
    @classmethod
    def _are_readers(cls, value: dict[str, str]) -> dict[str, str]:
        for suffix, name in value.items():
            if not suffix.startswith(".") or suffix != suffix.lower() or suffix.count(".") > 1 or len(suffix) < 2:
                raise ValueError(f"a suffix is written like .eml, in small letters, got {suffix!r}")
            FILE_READERS.check(name)
        return value

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> CorpusConfig:
        if self.chunk_overlap >= self.chunk_size:
            raise ValueError(f"chunk_overlap must be smaller than chunk_size ({self.chunk_size})")
        if self.overlap_words >= self.chunk_words:
            raise ValueError(f"overlap_words must be smaller than chunk_words ({self.chunk_words})")
        return self
