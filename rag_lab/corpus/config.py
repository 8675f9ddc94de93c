"""How files become parents and children: the file readers and splitters by name, and their part of a configuration."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from rag_lab._kit.config_file import read_shipped
from rag_lab._kit.registry import kinds_of
from rag_lab._kit.section import Section

SAID = read_shipped(Path(__file__).with_name("settings.yaml"))  # what settings mean, where it takes more than a line
FILE_READERS, SPLITTERS = kinds_of(Path(__file__).with_name("modules.yaml"), "rag_lab.corpus")

BY_SUFFIX = {
    ".txt": "text", ".md": "markdown", ".markdown": "markdown", ".docx": "docx", ".xlsx": "spreadsheet",
    ".xlsm": "spreadsheet", ".xls": "spreadsheet", ".ods": "spreadsheet", ".csv": "delimited", ".tsv": "delimited",
    ".html": "html", ".htm": "html",
}  # fmt: skip


class CorpusConfig(Section):
    """How files become parents and children."""

    folder: str = Field("", description=SAID["CorpusConfig.folder"])
    pdf: Literal["text", "tables", "pdfium", "vision"] = Field("text", description=SAID["CorpusConfig.pdf"])
    pdf_unit: Literal["page", "file"] = Field("page", description=SAID["CorpusConfig.pdf_unit"])
    duplicates: Literal["keep", "skip"] = Field("keep", description=SAID["CorpusConfig.duplicates"])
    vision_dpi: int = Field(150, ge=36, le=600, description="resolution at which a page is shown to models.vision")
    vision_min_score: float = Field(0.5, ge=0, le=1, description=SAID["CorpusConfig.vision_min_score"])
    file_seconds: int = Field(120, ge=1, le=86_400, description=SAID["CorpusConfig.file_seconds"])
    readers: dict[str, Annotated[str, FILE_READERS]] = Field(
        default_factory=dict, description=SAID["CorpusConfig.readers"]
    )
    splitter: Annotated[str, SPLITTERS, AfterValidator(SPLITTERS.check)] = Field(
        "recursive", description=SAID["CorpusConfig.splitter"]
    )
    chunk_size: int = Field(800, ge=50, le=20_000, description="characters of a child chunk (not of `sentences`)")
    chunk_overlap: int = Field(150, ge=0, lt=20_000, description="characters that neighbouring children share")
    chunk_tokens: int | None = Field(None, ge=16, le=100_000, description=SAID["CorpusConfig.chunk_tokens"])
    chunk_words: int = Field(100, ge=5, le=5000, description="words of a child of the sentence splitter")
    overlap_words: int = Field(20, ge=0, lt=5000, description="words that its neighbouring children share")
    min_pieces: int = Field(1, ge=1, le=100, description="children of a parent below which it cuts between words")
    whole_below: int = Field(50, ge=0, le=5000, description="words of a parent below which it makes one child of it")
    breakpoint_percentile: float = Field(95, ge=0, le=100, description=SAID["CorpusConfig.breakpoint_percentile"])
    parents: Literal["page", "section", "fixed", "neighbours", "none"] = Field(
        "page", description=SAID["CorpusConfig.parents"]
    )
    parent_size: int = Field(2400, ge=200, le=100_000, description="characters of a parent where it is a piece")
    neighbours: int = Field(1, ge=1, le=20, description="children before and after the hit in its parent")
    sheet_rows: Literal["packed", "one"] = Field("packed", description=SAID["CorpusConfig.sheet_rows"])
    context: Literal["none", "heading", "file", "llm", "late"] = Field("none", description=SAID["CorpusConfig.context"])

    distractors: int = Field(0, ge=0, le=10_000_000, description=SAID["CorpusConfig.distractors"])
    distractors_from: str = Field("", description=SAID["CorpusConfig.distractors_from"])

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
    def _overlap_is_smaller(self) -> "CorpusConfig":
        if self.chunk_overlap >= self.chunk_size:
            raise ValueError(f"chunk_overlap must be smaller than chunk_size ({self.chunk_size})")
        if self.overlap_words >= self.chunk_words:
            raise ValueError(f"overlap_words must be smaller than chunk_words ({self.chunk_words})")
        return self
