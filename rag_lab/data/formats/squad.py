"""SQuAD JSON (v1.1, and v2 with unanswerable questions): a document a paragraph.

Rajpurkar et al. (2016), "SQuAD: 100,000+ Questions for Machine Comprehension of Text"; Rajpurkar, Jia and Liang (2018),
"Know What You Don't Know". The evidence of a question is its paragraph and, as a quote, the sentence around the first
answer: the answer alone is often a word that stands in several places.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from rag_lab._kit.wording import counted
from rag_lab.corpus.normalize import normalize
from rag_lab.corpus.spans import SENTENCE_END
from rag_lab.data.formats.draft import Draft, FileNames
from rag_lab.data.questions_file import Text, describe
from rag_lab.errors import DatasetError
from rag_lab.records import Evidence, Problem, Question

_MIN_CHARS = 20  # shorter is an abbreviation's end or a heading


class _Answer(BaseModel):
    text: Text
    answer_start: int


class _Item(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    id: Text
    question: Text
    answers: list[_Answer] = []
    is_impossible: bool = False


class _Paragraph(BaseModel):
    context: Text
    qas: list[Any]


def read_squad(source: Path) -> Draft:
    """Read the file `source`; a bad paragraph, question or answer span is a problem and the rest is used."""
    draft = Draft()
    seen: set[str] = set()
    for name, label, data in _paragraphs(source):
        try:
            paragraph = _Paragraph.model_validate(data)
        except ValidationError as error:
            draft.problems.append(Problem(str(source), f"{label}: {describe(error)}; it was left out."))
            continue
        text = normalize(paragraph.context)
        if not text.strip():
            n_left_out = counted(len(paragraph.qas), "question")
            draft.problems.append(Problem(str(source), f"{label} has no text; it was left out with {n_left_out}."))
            continue
        draft.documents[name] = text
        for item in paragraph.qas:
            if reason := _add(draft, name, paragraph.context, item, seen):
                draft.problems.append(Problem(str(source), f"{label}: {reason}."))
    return draft


def _paragraphs(source: Path) -> Iterator[tuple[str, str, Any]]:
    """Yield the source of each paragraph, how problems name it, and what it holds."""
    try:
        data = json.loads(source.read_bytes())
    except OSError as error:
        raise DatasetError(f"Cannot read {source}: {error.strerror}; give a SQuAD JSON file.") from None
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{source} is not JSON ({error}); give a SQuAD JSON file.") from None
    articles = data.get("data") if isinstance(data, dict) else None
    if not isinstance(articles, list):
        raise DatasetError(f"{source} is no SQuAD JSON: it has no list `data`; give one, or another format's name.")
    names = FileNames()
    for article in articles:
        title = article.get("title") if isinstance(article, dict) else None
        paragraphs = article.get("paragraphs") if isinstance(article, dict) else None
        folder = names.name(str(title or ""), default="article")
        paragraphs = paragraphs if isinstance(paragraphs, list) else [None]
        digits = max(2, len(str(len(paragraphs))))
        for number, paragraph in enumerate(paragraphs, start=1):
            yield f"{folder}/{number:0{digits}}.txt", f"paragraph {number} of article {title!r}", paragraph


def _add(draft: Draft, source: str, context: str, data: Any, seen: set[str]) -> str:
    """Add a question to `draft` and return what is wrong with it, "" where nothing is."""
    try:
        item = _Item.model_validate(data)
    except ValidationError as error:
        return f"a question was left out: {describe(error)}"
    answers = [answer for answer in item.answers if answer.text.strip()]
    fault = ""
    if not item.id.strip() or not item.question.strip():
        fault = "its id or its text is empty"
    elif item.id in seen:
        fault = "an earlier question has its id"
    elif not item.is_impossible and not answers:
        fault = "it has no answer and is not marked is_impossible"
    if fault:
        return f"question {item.id!r} was left out: {fault}"
    seen.add(item.id)
    if item.is_impossible:
        draft.questions.append(Question(item.id, item.question.strip(), answerable=False))
        return ""
    text, at = answers[0].text, answers[0].answer_start
    starts = [start for start in range(len(context) - len(text) + 1) if context.startswith(text, start)]
    nearest = min(starts, key=lambda start: abs(start - at), default=None)  # at its offset, or nearest to that
    span = None if nearest is None else (nearest, nearest + len(text))
    quote = normalize(quote_around(context, *span)) if span else None
    texts = tuple(dict.fromkeys(answer.text for answer in answers))
    draft.questions.append(Question(item.id, item.question.strip(), texts, evidence=(Evidence(source, None, quote),)))
    return "" if span else f"question {item.id!r} has no quote: its answer does not stand in the paragraph"


def quote_around(text: str, start: int, end: int) -> str:
    """Return the sentence or sentences of `text` that hold text[start:end], verbatim.

    The quote grows by neighbouring sentences until it is at least 20 characters long and stands in `text` only once.
    """
    bounds = sorted({0, *(match.end() for match in SENTENCE_END.finditer(text)), len(text)})
    first = max(index for index, bound in enumerate(bounds) if bound <= start)
    last = min(index for index, bound in enumerate(bounds) if bound >= end)
    while first > 0 or last < len(bounds) - 1:
        quote = text[bounds[first] : bounds[last]].strip()
        if len(quote) >= _MIN_CHARS and (text.find(quote, text.find(quote) + 1) == -1):
            return quote
        first, last = max(0, first - 1), min(len(bounds) - 1, last + 1)
    return text.strip()
