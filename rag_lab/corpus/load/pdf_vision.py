"""PDF files read by a multimodal chat model: each page is shown as a picture, the model returns Markdown.

A reading that is too unlike the page's text layer is not used: the text layer stands in its place, and a warning says
so. A page without a text layer, a scan, has nothing to be checked against; that is said too.

Likeness is a weighted sum of four overlaps, each from 0 to 1: words 0.4, characters 0.2, sentences 0.3, edit distance
0.1. Markup, case, and where lines end are left aside. The text layer may lack what a picture shows, and a model may
leave out a page's furniture, so it is a check against invention and omission, not a measure of quality.
"""

import hashlib
import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import Any

from rag_lab._kit.digest import digest
from rag_lab.corpus.load.loader import Loaded, LoadError, first_line
from rag_lab.corpus.load.pdf import check_content, opened_pdf, page_text
from rag_lab.corpus.normalize import join_words, normalize
from rag_lab.corpus.spans import UNSPACED, Span, sentence_units, words
from rag_lab.memory.results import Memory, Work
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Message
from rag_lab.records import Document

WEIGHTS = {"words": 0.4, "characters": 0.2, "sentences": 0.3, "edits": 0.1}
_MINUS = re.compile(r"[\u2010-\u2015\u2212](?=\d)")
_MARKUP = re.compile(r"[|#*_`>~\\]+|-(?!\d)")  # a hyphen before a digit may be a minus sign
_CLOSE = rf"[{UNSPACED}\u3000-\u303f\uff01-\uff65]"  # with the punctuation of those scripts
# Spaces that scripts without spaces get from their line ends.
_WRAPPED = re.compile(rf"(?<={_CLOSE}) (?={_CLOSE})")
_COMPARED_CHARS = 20_000  # of each text; the comparison of characters takes the product of the lengths
_MAX_SENTENCE_CHARS = 5_000
_PROMPT_VERSION = 1
_PROMPT = (
    "Transcribe this page as Markdown. Keep every word, number and unit as printed, in reading order. Make headings "
    "with #, tables with bars and a row a line. Describe no picture, add nothing, and reply with the Markdown alone."
)
_MAX_TOKENS = 4096
_PAGES_AT_ONCE = 16
_MAX_PIXELS = 30_000_000  # of a rendered page; a poster is shown smaller


def likeness(reading: str, text_layer: str) -> float:
    """Return how alike two texts are, from 0 to 1; `overlaps` gives the parts."""
    return fsum(WEIGHTS[name] * value for name, value in overlaps(reading, text_layer).items())


def overlaps(reading: str, text_layer: str) -> dict[str, float]:
    """Return the four overlaps by name.

    Words and sentences: twice the number shared over the number in both (Dice). Characters: the longest common
    subsequence over the longer text. Edits: 1 minus the Levenshtein distance over the longer text.
    """
    from rapidfuzz.distance import LCSseq, Levenshtein

    texts = join_words([normalize(reading), normalize(text_layer)])
    first, second = (_bare(text) for text in texts)
    return {
        "words": _dice(_texts(first, words(first)), _texts(second, words(second))),
        "characters": LCSseq.normalized_similarity(first[:_COMPARED_CHARS], second[:_COMPARED_CHARS]),
        "sentences": _dice(_sentences(*texts), _sentences(*reversed(texts))),
        "edits": Levenshtein.normalized_similarity(first[:_COMPARED_CHARS], second[:_COMPARED_CHARS]),
    }


def _bare(text: str) -> str:
    """Return a text as one line of small letters without markup."""
    return _WRAPPED.sub("", " ".join(_MARKUP.sub(" ", _MINUS.sub("-", text)).casefold().split()))


def _texts(text: str, spans: Iterable[Span]) -> list[str]:
    return [text[start:end] for start, end in spans]


def _sentences(text: str, other: str) -> Iterator[str]:
    """Yield the sentences of a text; what ends at a line's end is one where the other text has it as one."""
    known = {_bare(unit) for unit in _texts(other, sentence_units(other))}
    for unit in _texts(text, sentence_units(text)):
        run = ""  # of lines, up to its end if it is known, and up to a known line else
        for line in map(_bare, unit.split("\n")):
            if run and line in known:
                yield run
                run = ""
            run = run[:-1] + _WRAPPED.sub("", f"{run[-1:]} {line}".strip())
            if run in known or len(run) > _MAX_SENTENCE_CHARS:
                yield run
                run = ""
        if run:
            yield run


def _dice(first: Iterable[Hashable], second: Iterable[Hashable]) -> float:
    one, other = Counter(first), Counter(second)
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 1.0


@dataclass(frozen=True, slots=True)
class _Page:
    number: int
    text: str
    picture: bytes


@dataclass(frozen=True)
class VisionPdf:
    """A loader of PDF files by a model that sees images; it refuses readings whose `likeness` is below `min_score`."""

    model: ChatModel
    dpi: int
    min_score: float
    memory: Memory | None = None
    call: Callable[..., Any] = lambda name, *arguments: PAGES[name](*arguments)  # in this process

    def identity(self) -> Mapping[str, Any]:
        """Return whatever changes the result beside the file."""
        model = dict(self.model.identity())
        return {"model": model, "prompt": _PROMPT_VERSION, "dpi": self.dpi, "min_score": self.min_score}

    def __call__(self, path: Path, source: str) -> Loaded:
        """Read a PDF; see `Loader`."""
        texts: dict[int, str] = {}
        warnings: list[str] = []
        lasting = True
        title, n_pages = self.call("pdf_facts", str(path.absolute()))
        for pages in self._shown(path, n_pages, warnings):
            for page, reply in zip(pages, self._read(pages), strict=True):
                texts[page.number], warning = self._chosen(page, reply)
                warnings += [warning] if warning else []
                lasting = lasting and not reply.transient
        documents = tuple(Document(source, number, text, title) for number, text in texts.items() if text.strip())
        if not documents:
            raise LoadError(warnings[0] if warnings else "the PDF holds no text; replace or remove it.", lasting)
        if not title:
            title = first_line(documents[0].text).lstrip("# ")
            documents = tuple(Document(item.source, item.page, item.text, title) for item in documents)
        return Loaded(documents, tuple(warnings), lasting)

    def _shown(self, path: Path, n_pages: int, warnings: list[str]) -> Iterator[list[_Page]]:
        """Yield some pages at a time, so that not all pictures of a long file are held at once."""
        some: list[_Page] = []
        for number in range(1, n_pages + 1):
            try:
                text, picture = self.call("shown_page", str(path.absolute()), number, self.dpi)
                some.append(_Page(number, text, b64decode(picture)))
            except LoadError as error:
                warnings.append(f"page {number} is left out: {error}")
            if len(some) == _PAGES_AT_ONCE:
                yield some
                some = []
        if some:
            yield some

    def _read(self, pages: Sequence[_Page]) -> list[ChatReply]:
        keys = [
            digest([dict(self.model.identity()), _PROMPT_VERSION, hashlib.sha256(page.picture).hexdigest()])
            for page in pages
        ]
        shown = dict(zip(keys, pages, strict=True))

        def ask(some: list[str]) -> dict[str, ChatReply]:
            prompts = (Message("user", _PROMPT, (shown[key].picture,)) for key in some)
            return dict(
                zip(some, self.model.generate([ChatRequest((one,), _MAX_TOKENS) for one in prompts]), strict=True)
            )

        work = Work("vision", ask, lambda reply: reply.text if _is_whole(reply) else None, ChatReply, _PAGES_AT_ONCE)
        replies = work.recall(self.memory, shown)
        replies |= work.do(self.memory, [key for key in shown if key not in replies])
        return [replies[key] for key in keys]

    def _chosen(self, page: _Page, reply: ChatReply) -> tuple[str, str]:
        """Return the text that is used for a page, and a warning ("" where the reading passed its check)."""
        if not _is_whole(reply):
            reason = reply.error or "the reply was cut off"
            return page.text, f"page {page.number}: the text layer is used, for the model gave no reading: {reason}"
        lines = reply.text.strip().split("\n")
        if len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```":
            lines = lines[1:-1]  # models like to put a code fence around Markdown
        reading = "\n".join(lines).strip()
        if not page.text:
            return reading, f"page {page.number}: the model's reading is unchecked, for the page has no text layer."
        score = likeness(reading, page.text)
        if score < self.min_score:
            found = f"scores {score:.2f} against it, below {self.min_score:.2f}"
            return page.text, f"page {page.number}: the text layer is used, for the model's reading {found}."
        return reading, ""


def _pdf_facts(path: str) -> tuple[str, int]:
    """Return the title and the number of pages of a PDF."""
    with opened_pdf(Path(path)) as pdf:
        return str((pdf.metadata or {}).get("title") or "").strip(), pdf.page_count


def _shown_page(path: str, number: int, dpi: int) -> tuple[str, str]:
    """Return the text of a page, and its picture (PNG) in base64."""
    with opened_pdf(Path(path)) as pdf:
        try:
            page = pdf[number - 1]
            check_content(page)
            area = page.rect.width * page.rect.height / 72**2
            pixmap = page.get_pixmap(dpi=max(1, min(dpi, int((_MAX_PIXELS / area) ** 0.5))))
            return page_text(page), b64encode(pixmap.tobytes("png")).decode()
        except (RuntimeError, ValueError):
            raise LoadError("it holds content that cannot be read; replace the file.") from None


PAGES: dict[str, Callable[..., Any]] = {"pdf_facts": _pdf_facts, "shown_page": _shown_page}


def _is_whole(reply: ChatReply) -> bool:
    return not reply.error and not reply.truncated and bool(reply.text.strip())
