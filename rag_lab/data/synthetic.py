"""Texts made of those of a dataset, without a model: questions to begin with, and right answers made wrong.

Drafted questions are made of words of the passage that answers them, which a search by words finds too easily. So they
carry no evidence, only the tag `drafted`: they show what settings change, and are to be replaced by questions of real
people.

Wrong answers are what a judge is put on trial with: each function returns the text with one thing changed, always the
same, or None where the text has nothing to change. The rules read English; a text without Latin capitals or digits
yields little, which is counted and not hidden.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile, zip_longest
from typing import Literal, get_args

from rag_lab.records import Question

DRAFTED = "drafted"
_SENTENCES = {
    "german": "Was steht in den Dokumenten über „{}“?",
    "french": "Que disent les documents sur « {} » ?",
    "english": "What do the documents say about “{}”?",
}
_HEADING = re.compile(r"(?:#{1,6} )?(?:\d+(?:\.\d+)*\.? +)?([^\W\d_](?:[^\W\d_]|[ '’(),/-])+[^\W\d_]\)?)(?: #+)?")
_MARKED = re.compile(r"#{1,6} |\d")  # a line that is a heading wherever it stands
_SUBJECT = re.compile(
    r"(?:^|[.!?] )(?:The|A|An|Der|Die|Das|Le|La|Les) ((?:[^\W\d_]|[ -]){8,46}?) "
    r"(?:is|are|must|has|ist|sind|wird|hat|est|sont|doit|a|opens|takes|runs)\b"
)
_CLAUSE = re.compile(r"(?i) (that|which|who|you|die|der|das|qui|que|\w+ly)\b|.{61}")  # or too long for a thing
TABLE_ROW = re.compile(r".*\||(?!.{121}).*[^\s.!?:] {2,}\S")  # cells stand between bars, or two spaces apart
_LIST_MARK = re.compile(r"^(?:[-*+•–]|\(?\w{1,3}[.)]) +")
PASSED_OVER = re.compile(
    r"(?im)____|^[# ]{0,9}(?:signature|unterschrift|(?:(?:table of )?contents|inhalt(?:sverzeichnis)?|sommaire) {0,9}$)"
)
_FEWEST_LETTERS, _FEWEST_WORDS, _LONG_WORD = 6, 2, 12  # a word that stands alone must be as long as a compound
_SECTION_LINES, _SECTION_WORDS, _LINE_WORDS = 6, 24, 5  # lines that are read behind a heading; what prose has at least
_NEXT_LINES = 30  # behind a heading, in which these lines must begin
_SUBJECT_WORDS, _MOST_SUBJECTS = 4, 50  # of a subject, as longer ones are clauses; of a page that are looked at
_SAME_WORD, _STEM = 4, 6  # letters from which on a word may not stand in two questions, and that are compared


def drafted_questions(pages: Mapping[str, Sequence[str]], language: str, n: int) -> list[Question]:
    """Return up to `n` questions on a corpus, evenly from its files, at most one a page, no two on the same words.

    The sentences are German, French or English and ask about a heading, or where no file has any, what a sentence is
    about. `pages` are the texts of each source, in the order of the file.
    """
    asked: list[str] = []
    words: set[str] = set()
    used: set[tuple[str, int]] = set()
    for find in (_headings, partial(_subjects, times=2), partial(_subjects, times=1)):
        if asked:
            break
        topics: dict[str, list[tuple[str, tuple[str, int]]]] = {}
        for source, texts in sorted(pages.items()):
            of_file = topics[source] = []
            for number, text in enumerate(texts):
                lines = [] if PASSED_OVER.search(text) else text.splitlines()
                plain = ["|" if TABLE_ROW.match(_LIST_MARK.sub("", line.strip(), count=1)) else line for line in lines]
                of_file += [(topic, (source, number)) for topic in find(plain)]
        where = Counter(topic.casefold() for found in topics.values() for topic, _ in found)
        for topic, page in (item for row in zip_longest(*topics.values()) for item in row if item):
            beginnings = _beginnings(topic)
            if len(asked) < n and where[topic.casefold()] == 1 and page not in used and not beginnings & words:
                asked.append(topic)
                words |= beginnings
                used.add(page)
    sentence = _SENTENCES.get(language, _SENTENCES["english"])
    return [Question(f"q{n}", sentence.format(topic), tags=(DRAFTED,)) for n, topic in enumerate(asked, start=1)]


def _headings(lines: Sequence[str]) -> Iterator[str]:
    """Yield the headings that prose follows: marked or numbered lines, and lines behind an empty one."""
    for number, line in enumerate(lines):
        found = _HEADING.fullmatch(line.strip())
        stands_apart = number > 0 and not lines[number - 1].strip()
        if found and (_MARKED.match(line) or stands_apart):
            topic = " ".join(found[1].split())
            behind = (each.split() for each in islice(lines, number + 1, number + _NEXT_LINES) if each.strip())
            section = [*islice(behind, _SECTION_LINES)]  # in which a word of the topic stands again
            words = [word for each in section for word in each]
            is_prose = len(words) >= _SECTION_WORDS and len(section[0]) >= _LINE_WORDS
            if is_prose and _is_topic(topic) and _beginnings(topic) & _beginnings(" ".join(words)):
                yield topic.capitalize() if topic.isupper() else topic


def _beginnings(text: str) -> set[str]:
    """Return how the words begin that may tell topics apart: `tolerance` and `tolerances` alike."""
    return {word[:_STEM].casefold() for word in re.findall(r"[^\W\d_]+", text) if len(word) >= _SAME_WORD}


def _subjects(lines: Sequence[str], times: int) -> Iterator[str]:
    """Yield what sentences are about, where the page names it so often."""
    text = " ".join(lines)
    for topic in islice(dict.fromkeys(_SUBJECT.findall(text)), _MOST_SUBJECTS):
        if _is_topic(topic) and len(topic.split()) <= _SUBJECT_WORDS and text.count(topic) >= times:
            yield topic


def _is_topic(topic: str) -> bool:
    words = topic.split()
    is_long = len(words) >= _FEWEST_WORDS or len(topic) >= _LONG_WORD
    return is_long and sum(map(str.isalpha, topic)) >= _FEWEST_LETTERS and not _CLAUSE.search(topic)


Perturbation = Literal["swapped_entity", "negation", "changed_number", "unsupported_sentence", "moved_citation"]
PERTURBATIONS: tuple[Perturbation, ...] = get_args(Perturbation)

_NUMBER = re.compile(r"(?<![\w.,-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w-])")
_NOT = re.compile(r"(?<=\w)\s+(?:not|never)\b|\b(?P<verb>\w+)n['’]t\b", re.IGNORECASE)
_WITHOUT_NOT = {"ca": "can", "wo": "will", "Ca": "Can", "Wo": "Will"}  # what is left of can't and won't
_AUXILIARY = re.compile(r"\b(is|are|was|were|has|have|can|could|may|must|shall|should|will|would|does|do|did)\b")
_VERB = re.compile(r"\b(needs?|gets?|opens?|closes?|holds?|takes?|goes|comes|lies|stands|means|requires?|allows?)\b")
# A name is a code with a digit (P-12, BV-7160-K) or a run of capitalized words that does not begin the sentence.
_CODE = re.compile(r"\b(?=[\w-]*[A-Z])(?=[\w-]*\d)[A-Z][\w-]*[\w]")
_NAME = re.compile(r"(?<=[a-z0-9,;:] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,})*")
_SENTENCE_END = re.compile(r"[.!?][\"'”’)]*$")


def entities(text: str) -> list[str]:
    """Return the codes and names in `text`, each once, in order."""
    found = sorted([*_CODE.finditer(text), *_NAME.finditer(text)], key=lambda match: match.start())
    return list(dict.fromkeys(match.group() for match in found))


def swap_entity(text: str, others: Sequence[str]) -> str | None:
    """Replace the first entity of `text` that has one of its kind in `others` (codes for codes, names for names).

    The likest other one stands in: the one that shares the longest beginning, the first of equals.
    """
    for entity in entities(text):
        is_code = any(map(str.isdigit, entity))
        rivals = [other for other in others if other not in text and any(map(str.isdigit, other)) == is_code]
        if rivals:
            shared = {
                rival: len(list(takewhile(lambda pair: pair[0] == pair[1], zip(entity, rival, strict=False))))
                for rival in rivals
            }
            return text.replace(entity, max(rivals, key=shared.__getitem__))
    return None


def negate(text: str) -> str | None:
    """Take the first `not` away, or else put one behind the first auxiliary, or before the first known verb."""
    if _NOT.search(text):
        return _NOT.sub(lambda match: _WITHOUT_NOT.get(match["verb"], match["verb"] or ""), text, count=1)
    if match := _AUXILIARY.search(text):
        return f"{text[: match.end()]} not{text[match.end() :]}"
    if match := _VERB.search(text):
        return f"{text[: match.start()]}never {text[match.start() :]}"
    return None


def change_number(text: str) -> str | None:
    """Change the first number that stands alone by about a third, written as it was; codes stay as they are."""
    match = _NUMBER.search(text)
    if match is None:
        return None
    digits = match.group().replace(",", "")
    decimals = len(digits.partition(".")[2])
    changed = float(digits) * 4 / 3
    if round(changed, decimals) == float(digits):
        changed = float(digits) + 1
    number = f"{changed:,.{decimals}f}" if "," in match.group() else f"{changed:.{decimals}f}"
    return text[: match.start()] + number + text[match.end() :]


def add_unsupported_sentence(text: str, others: Sequence[str]) -> str | None:
    """Add the first of `others` (right answers to other questions) that is a sentence and not already said."""
    strange = next((other for other in others if len(other.split()) >= 4 and other.lower() not in text.lower()), None)
    if strange is None:
        return None
    return f"{text if _SENTENCE_END.search(text) else text + '.'} {strange}"
