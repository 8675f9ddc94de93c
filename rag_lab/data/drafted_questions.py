"""Questions to begin with, drafted from the texts themselves without a model: from headings, rows and first words.

They are made of words of the passage that answers them, which a search by words finds too easily. So they carry no
evidence, only the tag `drafted`: they show what settings change, and are to be replaced by questions of real people.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import zip_longest

from rag_lab.corpus.headings import headings
from rag_lab.records import Question

DRAFTED = "drafted"
_SENTENCES = {
    "about": {
        "german": "Was steht in den Dokumenten über „{}“?",
        "french": "Que disent les documents sur « {} » ?",
        "english": "What do the documents say about “{}”?",
    },
    "value": {
        "german": "Welchen Wert hat „{}“?",
        "french": "Quelle est la valeur de « {} » ?",
        "english": "What is given for “{}”?",
    },
}
_NUMBERED = re.compile(r"(?m)^\d+(?:\.\d+)*\.?[ \t]+([^\W\d_][^\n.:;?!|]{3,58}[^\W_])$")
_ROW = re.compile(r"(?m)^([^\W\d_][^\n|:;.?!]{5,48}?[^\W_])  +\S*\d")
_SUBJECT = re.compile(r"(?:^|[.!?] )(?:The|A|An|Der|Die|Das|Le|La|Les) ([^\W\d_][\w -]{8,46}?) (?:is|are|must|has|ist|"
                      r"sind|wird|hat|est|sont|doit|a|opens|takes|runs)\b")  # fmt: skip
_CLAUSE = re.compile(r"(?i) (that|which|who|you|die|der|das|qui|que)\b|.{61}")  # or too long for a thing
_FEWEST_LETTERS = 6


def drafted_questions(texts: Mapping[str, str], language: str, n: int) -> list[Question]:
    """Return up to `n` questions on a corpus, evenly from its files; `texts` are by source, in any order.

    The sentences are German, French or English; what they ask about stands as the file has it.
    """
    topics = {source: list(_topics(text)) for source, text in sorted(texts.items())}
    where = Counter(topic.casefold() for found in topics.values() for topic, _ in dict.fromkeys(found))
    distinct = [[item for item in found if where[item[0].casefold()] == 1] for found in topics.values()]
    in_turn = (item for row in zip_longest(*distinct) for item in row if item)
    asked = list(dict.fromkeys(_sentence(topic, kind, language) for topic, kind in in_turn))[:n]
    return [Question(f"q{number}", text, tags=(DRAFTED,)) for number, text in enumerate(asked, start=1)]


def _sentence(topic: str, kind: str, language: str) -> str:
    sentences = _SENTENCES[kind]
    return sentences.get(language, sentences["english"]).format(topic)


def _topics(text: str) -> Iterator[tuple[str, str]]:
    """Yield what can be asked about, in the order of the sort: headings, rows with a number, subjects of sentences."""
    titles = (heading.title for heading in headings(text)[1:])
    for found, kind in ((titles, "about"), (_NUMBERED.findall(text), "about"), (_ROW.findall(text), "value"),
                        (_SUBJECT.findall(text), "about")):  # fmt: skip
        for topic in found:
            plain = " ".join(topic.split())
            if sum(char.isalpha() for char in plain) >= _FEWEST_LETTERS and not _CLAUSE.search(plain):
                yield plain, kind
