"""Rules that drafts fall by: each a function with a name, that returns why a draft falls, or ''.

They read words alone, and ask no model. `benchmarks/drafting.py` measures each on defects planted in real questions;
what they look for in each language stands in words.yaml.
"""

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

from rapidfuzz import fuzz

from rag_lab._kit.config_file import read_mapping
from rag_lab.corpus.normalize import common_words, find_quote
from rag_lab.questions.writer import Draft
from rag_lab.records import Question
from rag_lab.stores.sparse import analyzer_for, terms

_LEAST_SUPPORT = 0.75  # share of an answer's content words that its quotes must hold
_COPIED_RUN, _COPIED_SHARE = 6, 0.7  # words that follow each other in question and place; share of the question's words
_SAME, _LIKELY = 90.0, 0.75  # of 100: likeness of sorted words; share of content words that two questions share
_CHOICE = 4  # content words of what a question may offer as one of two
_AGREED = 0.5  # F1 of the content words of two answers
_SHOWN = 60  # characters


def content_words(text: str, language: str) -> list[str]:
    """Return the stems of the words of a text that its language's list of common words does not hold, in order."""
    common = common_words().get(language, frozenset())
    (plain,), (stems,) = terms([text], "unicode"), terms([text], analyzer_for("auto", language))
    return [stem for word, stem in zip(plain, stems, strict=True) if word not in common]


def overlap(question: str, quotes: Sequence[str], language: str) -> float:
    """Return the share of a question's content words that stand in the quotes; 0 where it has none."""
    asked, there = set(content_words(question, language)), set(content_words(" ".join(quotes), language))
    return len(asked & there) / len(asked) if asked else 0.0


def located(draft: Draft) -> str:
    """Every quote stands in its place word for word; two passages, and topics, need two of them."""
    least = 2 if draft.kind in ("two_passages", "topic") else 1
    if len(draft.quotes) < least:
        return f"{len(draft.quotes)} quotes, where {least} are needed"
    texts = [draft.places[min(number, len(draft.places) - 1)].chunk.text for number in range(len(draft.quotes))]
    missing = [quote for text, quote in zip(texts, draft.quotes, strict=True) if find_quote(text, quote) is None]
    return f"the quote {_short(missing[0])} does not stand there" if missing else ""


def supported(draft: Draft) -> str:
    """The answer is in the quotes: its numbers, and most of its content words."""
    if draft.kind in ("unanswerable", "topic"):
        return ""
    if not draft.question.answers:
        return "there is no answer"
    answer, quoted = draft.question.answers[0], " ".join(draft.quotes)
    wanted = content_words(answer, draft.language) or terms([answer], "unicode")[0]
    held = {*content_words(quoted, draft.language), *terms([quoted], "unicode")[0]}
    missing = [word for word in wanted if word not in held]
    if any(map(str.isdigit, "".join(missing))) or len(missing) > (1 - _LEAST_SUPPORT) * len(wanted):
        return f"of the answer, {_short(' '.join(missing))} is not in the quote"
    return ""


def pointing(draft: Draft) -> str:
    """The question speaks of no passage, and of nobody whom only the passage names; a follow-up may."""
    if draft.kind == "follow_up":
        return "" if draft.question.history else "there is no question before it"
    points, _, pronoun = _patterns(draft.language)
    if found := points.search(draft.question.text):
        return f"{_short(found[0])} is nowhere for who asks"
    for word in re.finditer(r"\w+", draft.question.text):
        if content_words(word[0], draft.language):
            break
        if pronoun.match(draft.question.text, word.start()):
            return f"{word[0]!r} stands for what only the passage names"
    return ""


def several(draft: Draft) -> str:
    """It asks one thing."""
    found = _patterns(draft.language)[1].search(draft.question.text)
    return f"{_short(found[0])} asks a second thing" if found else ""


def generic(draft: Draft) -> str:
    """A word of it names something."""
    return "" if draft.kind == "follow_up" or _naming(draft) else "no word of it names anything"


def copied(draft: Draft) -> str:
    """It is no copy of its place, and does not hold its answer, unless it offers a choice."""
    if draft.kind in ("topic", "unanswerable", "follow_up"):
        return ""
    answer = content_words(" ".join(draft.question.answers[:1]), draft.language)
    is_choice = len(answer) <= _CHOICE and re.search(r"(?i)\b(?:or|oder|ou|o)\b", draft.question.text)
    if answer and not is_choice and set(answer) <= set(content_words(draft.question.text, draft.language)):
        return "it holds its answer"
    (asked,), *there = (
        terms([text], "unicode") for text in (draft.question.text, *(p.chunk.text for p in draft.places))
    )
    matchers = (SequenceMatcher(None, asked, words, autojunk=False) for (words,) in there)
    run = max((matcher.find_longest_match().size for matcher in matchers), default=0)
    is_copy = run >= _COPIED_RUN and run >= _COPIED_SHARE * len(asked)
    return f"{run} of its {len(asked)} words follow each other in the passage" if is_copy else ""


def near_duplicates(drafts: Sequence[Draft], known: Sequence[Question] = ()) -> list[tuple[Draft, str]]:
    """Return each draft, and which earlier or known question asks nearly the same in nearly the same words, or ''."""
    found: list[tuple[Draft, str]] = []
    earlier: list[tuple[Question, set[str], set[str]]] = []  # with the words that name something, and that ask
    places = drafts[0].places if drafts else ()  # whose language those of the known ones is taken to be
    for draft in (*(Draft(question, "single", places) for question in known), *drafts):
        asked, naming, same = draft.question, _naming(draft), ""
        words = _words().get(draft.language) or _words()["english"]
        asking = {word.casefold() for word in re.findall(rf"(?i)\b(?:{words['asking']})\b", asked.text)}
        asking = {word for word in asking if not re.fullmatch(words["any"], word)}
        for other, theirs, their_asking in earlier:
            alike = len(naming & theirs) / max(1, len(naming | theirs))
            likeness = fuzz.token_sort_ratio(asked.text.casefold(), other.text.casefold())
            is_same = (alike >= _LIKELY or likeness >= _SAME) and asking == their_asking
            if is_same and asked.history == other.history:
                same = f"{other.question_id} asks nearly the same"
                break
        earlier += [] if same else [(asked, naming, asking)]
        found.append((draft, same))
    return found[len(known) :]


def _naming(draft: Draft) -> set[str]:
    """Return the stems of the words of a question that name something."""
    listed = " ".join(one["empty"] for one in _words().values())
    empty = terms([listed], analyzer_for("auto", draft.language))[0]
    return set(content_words(draft.question.text, draft.language)).difference(empty)


def agrees(answer: str, references: Sequence[str], language: str) -> bool:
    """Tell whether an answer says what a reference says: its numbers, and half of the words of both, or all of it."""
    said = set(content_words(answer, language) or terms([answer], "unicode")[0])
    for reference in references:
        meant = set(content_words(reference, language) or terms([reference], "unicode")[0])
        numbers = {word for word in meant if any(map(str.isdigit, word))}
        likeness = 2 * len(said & meant) / max(1, len(said) + len(meant))
        if meant and numbers <= said and (likeness >= _AGREED or meant <= said):
            return True
    return False


@cache
def _patterns(language: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return what points, what asks a second thing, and pronouns; English's where a language has no words here."""
    words = _words().get(language) or _words()["english"]
    points = "|".join(words["pointing"]).replace("PLACE", words["places"])
    asking, before, late = words["asking"], words.get("before", "(?!)"), words.get("late", "(?!)")
    behind = rf"(?:(?:{before}),? )?(?:{asking})|(?:[^\s,]+ ){{0,8}}(?:{late})"
    again = rf"(?:{asking})\b(?:\W+\w+){{2,}}?,? (?:{words['and']}) (?:{behind})"
    return tuple(  # type: ignore[return-value]
        re.compile(rf"\b(?:{text})\b", re.IGNORECASE)
        for text in (points, rf"{again}|\w+ *[?？][^?？]*\w{{3}}", words.get("pronouns", "(?!)"))
    )


@cache
def _words() -> dict[str, dict[str, str]]:
    return read_mapping(Path(__file__).with_name("words.yaml"))


def _short(text: str) -> str:
    words = " ".join(text.split())
    return repr(words if len(words) <= _SHOWN else words[: _SHOWN - 3] + "...")


RULES: tuple[Callable[[Draft], str], ...] = (located, supported, pointing, several, generic, copied)
