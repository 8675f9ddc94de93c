"""The contract of a splitter: see `rag_lab.corpus.split.splitter`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.spans import Span, row_spans
from rag_lab.corpus.split.splitter import Splitter, Unsplit, splitter_of
from rag_lab.testing.contracts.module import ModuleContract

_ROW = "| a cell of some length | 275 bar, and what else there is to say of it | RV1 |\n"
TEXTS = [
    "",
    " \n\n ",
    "pump",
    "One. One. One. One. " * 20,
    f"Before. {'word ' * 40}\n{_ROW}after",
    _ROW * 6,
    f"# Oil\n\nEvery year.\n\n## Valves\n\n{_ROW * 2}\n275 bar?! Yes.\n\n# Oven\n\nHot. {'aa ' * 99}",
    "油压。pump ?! \n\nThe valve opens. " * 9,
]


class SplitterContract(ModuleContract):
    """A splitter: `(text) -> pieces or spans`, a splitter of LangChain's, or a whole `Splitter`."""

    def splitter(self) -> Splitter:
        """Return it as a corpus is cut by it."""
        return splitter_of(CorpusConfig(), None, self.make())

    def identity(self) -> Mapping[str, Any]:
        """Return under what its pieces are remembered."""
        return self.splitter().identity()

    def _spans(self, texts: Sequence[str]) -> list[list[Span]]:
        found = self.splitter().split(texts)
        assert not (refused := [item.reason for item in found if isinstance(item, Unsplit)]), refused
        return [item for item in found if not isinstance(item, Unsplit)]

    def test_pieces_hold_the_whole_text_in_order_without_space_around_them(self) -> None:
        for text, spans in zip(TEXTS, self._spans(TEXTS), strict=True):
            assert list(spans) == sorted(spans, key=lambda span: span[0])
            assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
            held = {place for start, end in spans for place in range(start, end)}
            assert all(place in held or letter.isspace() for place, letter in enumerate(text))

    def test_no_piece_begins_or_ends_within_a_table_row(self) -> None:
        for text, spans in zip(TEXTS, self._spans(TEXTS), strict=True):
            inside = {place for start, end in row_spans(text) for place in range(start + 1, end)}
            assert not inside & {place for span in spans for place in span}

    def test_a_text_is_cut_the_same_whatever_stands_beside_it(self) -> None:
        together = self._spans(TEXTS)
        assert together == [self._spans([text])[0] for text in TEXTS]
        assert self._spans([]) == []
