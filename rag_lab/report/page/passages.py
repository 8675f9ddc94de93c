"""Names for questions that stand in addresses and in file systems, whatever their ids are."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from markupsafe import Markup, escape

from rag_lab.comparison.questions.passages import Piece, Rank, holds_evidence, opening, pieces
from rag_lab.comparison.questions.question_cards import place
from rag_lab.records import Hit, Question

_LONGEST = 80  # characters of an id that are kept: with what is added a file name that every file system takes
_DIGEST = re.compile(r"-[0-9a-f]{8}$")


def anchors(question_ids: Iterable[str]) -> dict[str, str]:
    """Return `q-` and the id for each of `question_ids`, of the letters, digits and marks that are safe anywhere.

    An id that had to be changed, or that another one equals but for upper and lower case, ends in a digest of it, so
    that no two are alike, also where file names ignore case.
    """
    ids = list(dict.fromkeys(question_ids))
    safe = {one: re.sub(r"[^A-Za-z0-9._-]+", "-", one)[:_LONGEST] for one in ids}
    alike = Counter(name.lower() for name in safe.values())
    kept = {one for one, name in safe.items() if one == name and alike[name.lower()] == 1 and not _DIGEST.search(name)}
    return {one: f"q-{name}" if one in kept else f"q-{name}-{_digest(one)}" for one, name in safe.items()}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]


STAR = Markup('<span class="gold" title="holds evidence">★<span class="hear"> holds evidence</span></span>')
_KEPT = 4096  # passages without evidence, as they are written


def marked(parts: Sequence[Piece]) -> Markup:
    """Return a text in pieces, its evidence marked."""
    written = (f"<mark>{escape(part.text)}</mark>" if part.is_evidence else escape(part.text) for part in parts)
    return Markup(f"<bdi>{''.join(written)}</bdi>")  # noqa: S704 -- escaped before


def passage(hit: Hit, text: str, question: Question) -> Markup:
    """Return one line that tells where a passage stands and how it goes, at its evidence; opened, all of it.

    Args:
        hit: where it stands.
        text: in full, or "" where that is not known.
        question: whose evidence is marked.
    """
    if holds_evidence(hit, question):
        return _written(place(hit.source, hit.page), pieces(hit, text, question), f"{STAR} ")
    return _without_evidence(hit.source, hit.page, text)


def rank_cells(ranks: Sequence[Rank | None]) -> Markup:
    """Return the cells of a passage's row: where each ranking has it."""
    return Markup("".join(f'<td class="num">{_rank(rank)}</td>' for rank in ranks))  # noqa: S704 -- numbers only


def _rank(rank: Rank | None) -> str:
    if rank is None:
        return "·"
    return f"({rank.rank})" if rank.dropped else f"<b>{rank.rank}</b>" if rank.in_context else str(rank.rank)


@lru_cache(_KEPT)
def _without_evidence(source: str, page: int | None, text: str) -> Markup:
    return _written(place(source, page), (Piece(text),) if text else (), "")


def _written(where: str, parts: Sequence[Piece], sign: str) -> Markup:
    begin = f'{sign}<bdi class="where">{escape(where)}</bdi>'
    if not parts:
        return Markup(f'<p class="passage">{begin}</p>')  # noqa: S704 -- escaped before
    return Markup(  # noqa: S704 -- escaped before
        f'<details class="passage"><summary>{begin} <span class="opening">{marked(opening(parts))}</span></summary>\n'
        f'<p class="text">{marked(parts)}</p></details>'
    )
