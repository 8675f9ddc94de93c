"""The contract of a file reader: see `rag_lab.corpus.config`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_lab.corpus.files.reading import file_reader_of
from rag_lab.testing.contracts.module import ModuleContract


class FileReaderContract(ModuleContract):
    """A file reader: `(path) -> text`, texts or LangChain's documents. `content` is a file of its kind."""

    content: bytes = b"The press runs at 140 bar.\n"
    suffix = ".txt"

    def identity(self) -> Mapping[str, Any]:
        """Return under what its documents are remembered."""
        return file_reader_of(self.make())[1]

    def test_it_reads_the_same_documents_again_one_a_page(self, tmp_path: Path) -> None:
        path = tmp_path / f"sample{self.suffix}"
        path.write_bytes(self.content)
        first, again = (file_reader_of(self.make())[0](path, path.name) for _ in range(2))
        assert first == again
        assert any(document.text.strip() for document in first.documents)
        assert {document.source for document in first.documents} == {path.name}
        assert len({document.page for document in first.documents}) == len(first.documents)
