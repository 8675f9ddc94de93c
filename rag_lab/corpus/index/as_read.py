"""What was done to whole files before they were cut: pages made one text, files that read the same left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_lab.corpus.page_starts import PageStarts


@dataclass(frozen=True, slots=True)
class AsRead:
    """By file: where its pages begin in its text, and the file that stands in the index in its place."""

    page_starts: Mapping[str, PageStarts] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> AsRead:
        """Return what the manifest of an index keeps of it."""
        starts = {
            source: tuple((page, start) for page, start in pages)
            for source, pages in manifest.get("page_starts", {}).items()
        }
        return cls(starts, manifest.get("left_out", {}))

    def kept(self) -> dict[str, Any]:
        """Return what is kept of it in the manifest, as JSON values; nothing where nothing was done."""
        found = {"page_starts": dict(self.page_starts), "left_out": dict(self.left_out)}
        return {name: value for name, value in found.items() if value}

    def indexed(self, source: str) -> str:
        """Return the file that is indexed where `source` is asked for."""
        return self.left_out.get(source, source)
