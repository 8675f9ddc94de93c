"""What the filters of drafted questions find, and whether drafted questions rank variants as people's questions do.

    python benchmarks/drafting.py filters DATA [--half tuned] [--page docs/own_questions.md]

DATA is the folder with xquad/ and contoso_hr/. Defects are planted in people's questions: each question is a draft as a
good writer would have made it, and once more with each defect. The rules were tuned on one half, `tuned` (every other
article of XQuAD, every other question of contoso_hr, every other wording of a defect); what is reported is the other.
"""

import argparse
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rag_lab.corpus.folder import load_folder
from rag_lab.corpus.languages import language_of
from rag_lab.corpus.spans import sentence_units
from rag_lab.questions import filters
from rag_lab.questions.places import Place
from rag_lab.questions.writer import Draft
from rag_lab.records import Document, Evidence, Question

LANGUAGES = {"en": "english", "de": "german"}
# Tuned on the even ones, reported on the odd ones.
POINTING = {
    "english": [
        "According to the passage, {}", "In the text, {}", "{} as described in this section", "In this document, {}",
        "Based on the given paragraph, {}", "{} according to the article", "{} in the above table",
        "As mentioned above, {}", "What does the author say about this: {}", "In the excerpt, {}",
    ],
    "german": [
        "Laut dem Text, {}", "Im Abschnitt: {}", "{} in diesem Dokument", "Gemäß der Passage, {}",
        "{} wie oben beschrieben", "Laut diesem Artikel, {}", "Auf dieser Seite: {}", "{} laut der Tabelle",
        "Was sagt der Text dazu: {}", "Nach diesem Absatz, {}",
    ],
}  # fmt: skip
GENERIC = {
    "english": [
        "What is the main topic?", "What is this about?", "What are the key points?", "Summarize the information.",
        "What is described here?", "What important details are mentioned?", "What is the purpose of it?",
        "Can you explain the main idea?", "What does it say?", "Give an overview.",
    ],
    "german": [
        "Worum geht es?", "Was ist das Hauptthema?", "Was sind die wichtigsten Punkte?", "Was wird hier beschrieben?",
        "Welche Informationen werden genannt?", "Was ist der Zweck?", "Was ist der Inhalt?", "Was wird erwähnt?",
        "Erkläre die wichtigsten Informationen.", "Was ist das Thema?",
    ],
}  # fmt: skip
REWORDED = {
    "english": ["Can you tell me {}", "{} please", "I would like to know: {}", "So, {}"],
    "german": ["Kannst du mir sagen: {}", "{} bitte", "Ich möchte wissen: {}", "Also, {}"],
}
COPIES = {
    "english": ["Is it true that {}", "What is meant by: {}", "{} - what is missing?", "Why is it that {}"],
    "german": ["Stimmt es, dass {}", "Was bedeutet: {}", "{} - was fehlt?", "Warum gilt: {}"],
}


JOINED = {
    "english": ["{} and {}", "{} Also, {}", "{}, and {}", "{} {}"],
    "german": ["{} und {}", "{} Außerdem: {}", "{}, und {}", "{} {}"],
}


def xquad(folder: Path, code: str) -> list[list[Draft]]:
    """Return both halves: every question as a draft about its paragraph, that quotes the sentence of its answer."""
    articles = json.loads((folder / f"xquad/xquad.{code}.json").read_text(encoding="utf-8"))["data"]
    halves: list[list[Draft]] = [[], []]
    for number, article in enumerate(articles):
        for page, paragraph in enumerate(article["paragraphs"], start=1):
            text = paragraph["context"]
            place = Place(Document(f"{number:02}.txt", page, text), 0, len(text), "prose", "", LANGUAGES[code])
            for asked in paragraph["qas"]:
                answer = asked["answers"][0]
                start, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
                touched = [unit for unit in sentence_units(text) if unit[0] < end and unit[1] > start]
                quote = text[touched[0][0] : touched[-1][1]]
                halves[number % 2].append(_draft(asked["id"], asked["question"], answer["text"], place, quote))
    return halves


def contoso(folder: Path) -> list[list[Draft]]:
    """Return both halves of the answerable questions, each as a draft about its page, all of which it quotes.

    With the page after it, as answers run on to that.
    """
    pages = {(d.source, d.page): d for d in load_folder(folder / "contoso_hr/corpus").documents}
    halves: list[list[Draft]] = [[], []]
    lines = (folder / "contoso_hr/questions.jsonl").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        asked = json.loads(line)
        evidence = asked.get("evidence") or [{"source": "", "page": 0}]
        page = pages.get((evidence[0]["source"], evidence[0]["page"]))
        if asked["answers"] and page:
            after = pages.get((page.source, evidence[0]["page"] + 1))
            page = replace(page, text=f"{page.text}\n{after.text if after else ''}")
            place = Place(page, 0, len(page.text), "prose", "", language_of(page.text) or "english")
            halves[number % 2].append(_draft(asked["id"], asked["question"], asked["answers"][0], place, page.text))
    return halves


def _draft(name: str, text: str, answer: str, place: Place, quote: str) -> Draft:
    evidence = (Evidence(place.document.source, place.document.page, quote),)
    return Draft(Question(name, " ".join(text.split()), (answer,), evidence=evidence), "single", (place,))


def _with(draft: Draft, text: str | None = None, quote: str | None = None, answer: str | None = None) -> Draft:
    asked = draft.question
    quoted = (replace(asked.evidence[0], quote=draft.quotes[0] if quote is None else quote),)
    answers = asked.answers if answer is None else (answer,)
    return replace(draft, question=replace(asked, text=text or asked.text, evidence=quoted, answers=answers))


Defect = Callable[[Draft, Draft, int, int], Draft | None]  # draft, one of another place, its number, half


def changed_quote(draft: Draft, other: Draft, number: int, half: int) -> Draft | None:
    """One word of the quote is another one's."""
    words, others = draft.quotes[0].split(), other.quotes[0].split()
    place = number % len(words)
    new = others[number % len(others)]
    return None if new == words[place] else _with(draft, quote=" ".join([*words[:place], new, *words[place + 1 :]]))


def other_place(draft: Draft, other: Draft, number: int, half: int) -> Draft | None:
    """The quote stands word for word, in another place."""
    return _with(draft, quote=other.quotes[0])


def other_sentence(draft: Draft, other: Draft, number: int, half: int) -> Draft | None:
    """The quote is a sentence of the same place that does not hold the answer, as far as its words tell."""
    text = draft.places[0].text
    sentences = [text[a:b] for a, b in sentence_units(text)]
    answer = draft.question.answers[0].casefold()
    free = [one for one in sentences if one not in draft.quotes[0] and answer not in one.casefold()]
    return _with(draft, quote=free[number % len(free)]) if free else None


def other_answer(draft: Draft, other: Draft, number: int, half: int) -> Draft | None:
    """Unanswerable: the question of another place, with its answer, asked of this one."""
    answer = other.question.answers[0]
    is_there = answer.casefold() in draft.quotes[0].casefold()
    return None if is_there else _with(draft, text=other.question.text, answer=answer)


def answer_in_question(draft: Draft, other: Draft, number: int, half: int) -> Draft | None:
    """Leak: the question holds its answer."""
    asked, answer = draft.question.text.rstrip("? "), draft.question.answers[0]
    return _with(draft, text=f"{asked} ({answer})?" if number % 2 else f"{answer}: {asked}?")


def copy_of_quote(draft: Draft, other: Draft, number: int, half: int) -> Draft | None:
    """Leak: the question is the sentence that answers it, framed."""
    sentence = max((draft.quotes[0][a:b] for a, b in sentence_units(draft.quotes[0])[:5]), key=len)
    return _with(draft, text=_framed(COPIES, draft, sentence.rstrip("."), number, half))


def points(draft: Draft, other: Draft, number: int, half: int) -> Draft | None:
    """The question speaks of the passage."""
    return _with(draft, text=_framed(POINTING, draft, draft.question.text, number, half))


def says_nothing(draft: Draft, other: Draft, number: int, half: int) -> Draft | None:
    """Generic."""
    return _with(draft, text=_framed(GENERIC, draft, "", number, half))


def two_in_one(draft: Draft, other: Draft, number: int, half: int) -> Draft | None:
    """Two questions joined."""
    frame = JOINED[draft.language][half::2][number % 2]
    first = draft.question.text.rstrip("? ") if frame[2:5] in (" an", ", a", " un", ", u") else draft.question.text
    return _with(draft, text=frame.format(first, other.question.text))


def reworded(draft: Draft, other: Draft, number: int, half: int) -> Draft | None:
    """Duplicate: the same question, framed politely, in another case, or with its words in another order."""
    words = draft.question.text.rstrip("? ").split()
    kind = number % 3
    if kind == 0:
        return _with(draft, text=_framed(REWORDED, draft, draft.question.text, number, half))
    if kind == 1:
        return _with(draft, text=draft.question.text.lower().rstrip("? "))
    return _with(draft, text=" ".join([*words[len(words) // 2 :], *words[: len(words) // 2]]) + "?")


def _framed(frames: dict[str, list[str]], draft: Draft, text: str, number: int, half: int) -> str:
    some = frames[draft.language][half::2]
    return some[number % len(some)].format(text)


PLANTED: tuple[tuple[str, str, Defect], ...] = (
    ("wrong span: a word changed", "located", changed_quote),
    ("wrong span: of another place", "located", other_place),
    ("wrong span: another sentence", "supported", other_sentence),
    ("unanswerable", "supported", other_answer),
    ("leak: holds its answer", "copied", answer_in_question),
    ("leak: a copy", "copied", copy_of_quote),
    ("pointing", "pointing", points),
    ("several in one", "several", two_in_one),
    ("generic", "generic", says_nothing),
    ("duplicate", "near_duplicates", reworded),
)


def measured(drafts: Sequence[Draft], half: int, seed: int = 0) -> Iterator[tuple[str, str, int, int, int, int]]:
    """Yield of each defect its name and filter, how many were planted and found, how many clean ones, and fell."""
    lot = random.Random(seed)
    for name, rule, defect in PLANTED:
        planted = []
        for number, draft in enumerate(drafts):
            other = lot.choice(drafts)
            while other.places[0].document == draft.places[0].document:
                other = lot.choice(drafts)
            found = defect(draft, other, number, half)
            planted += [found] if found else []
        if rule == "near_duplicates":
            both = filters.near_duplicates([*drafts, *(_renamed(one) for one in planted)])
            clean, fell = both[: len(drafts)], both[len(drafts) :]
        else:
            judge = getattr(filters, rule)
            clean, fell = ([(one, judge(one)) for one in some] for some in (drafts, planted))
        yield name, rule, len(planted), sum(bool(why) for _, why in fell), len(drafts), sum(bool(w) for _, w in clean)


def _renamed(draft: Draft) -> Draft:
    return replace(draft, question=replace(draft.question, question_id=f"{draft.name}-again"))


def filters_table(folder: Path, half: int) -> str:
    """Return precision and recall of each filter on each defect, as Markdown."""
    sets = {"XQuAD en": xquad(folder, "en"), "XQuAD de": xquad(folder, "de"), "contoso_hr": contoso(folder)}
    rows = {name: list(measured(halves[half], half)) for name, halves in sets.items()}
    lines = [f"| planted | filter | {' | '.join(sets)} |", f"|---|---|{'---|' * len(sets)}"]
    for number, (name, rule, _) in enumerate(PLANTED):
        cells = []
        for of_set in rows.values():
            _, _, n, found, n_clean, fell = of_set[number]
            precision = found / (found + fell * n / n_clean) if found else 0.0  # as if as many were clean as planted
            cells.append(f"{precision:.2f}, {found / n:.2f} ({n})" if n else "-")
        lines.append(f"| {name} | `{rule}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table, or put it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["filters"])
    parser.add_argument("data", type=Path)
    parser.add_argument("--half", choices=["tuned", "held_out"], default="held_out")
    given = parser.parse_args()
    print(filters_table(given.data, int(given.half == "held_out")))


if __name__ == "__main__":
    main()
