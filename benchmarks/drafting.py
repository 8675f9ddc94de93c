"""What the filters of drafted questions find, and whether drafted questions rank variants as people's questions do.

    python benchmarks/drafting.py filters DATA [--half tuned|held_out] [--page docs/own_questions.md]

DATA is the folder with xquad/ and contoso_hr/. Defects are planted in people's questions: each of a half is a draft as
a good writer would have made it, and once more with each defect. The rules were tuned on the half `tuned` (every other
article of XQuAD, every other question of contoso_hr); what is reported is the other half.
"""

import json
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


def xquad(folder: Path, code: str) -> list[Draft]:
    """Return every question as a draft about its paragraph, that quotes the sentence of its answer."""
    articles = json.loads((folder / f"xquad/xquad.{code}.json").read_text(encoding="utf-8"))["data"]
    found = []
    for number, article in enumerate(articles):
        for page, paragraph in enumerate(article["paragraphs"], start=1):
            text = paragraph["context"]
            document = Document(f"{number:02}.txt", page, text)
            place = Place(document, 0, len(text), "prose", "", LANGUAGES[code])
            for asked in paragraph["qas"]:
                answer = asked["answers"][0]
                start, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
                touched = [unit for unit in sentence_units(text) if unit[0] < end and unit[1] > start]
                quote = text[touched[0][0] : touched[-1][1]]
                found.append(_draft(asked["id"], asked["question"], answer["text"], place, quote))
    return found


def contoso(folder: Path) -> list[Draft]:
    """Return every answerable question as a draft about its page, that quotes the sentences nearest to its answer."""
    pages = {(d.source, d.page): d for d in load_folder(folder / "contoso_hr/corpus").documents}
    found = []
    for line in (folder / "contoso_hr/questions.jsonl").read_text(encoding="utf-8").splitlines():
        asked = json.loads(line)
        if not asked["answers"] or not asked.get("evidence"):
            continue
        page = pages.get((asked["evidence"][0]["source"], asked["evidence"][0]["page"]))
        if page is None:
            continue
        place = Place(page, 0, len(page.text), "prose", "", language_of(page.text) or "english")
        answer = set(filters.content_words(asked["answers"][0], place.language))
        units = sentence_units(page.text)
        held = [len(answer & set(filters.content_words(page.text[a:b], place.language))) for a, b in units]
        near = [n for n, share in enumerate(held) if share >= max(1, max(held, default=0) / 3)]
        if near:
            quote = page.text[units[near[0]][0] : units[near[-1]][1]]
            found.append(_draft(asked["id"], asked["question"], asked["answers"][0], place, quote))
    return found


def _draft(name: str, text: str, answer: str, place: Place, quote: str) -> Draft:
    evidence = (Evidence(place.document.source, place.document.page, quote),)
    return Draft(Question(name, " ".join(text.split()), (answer,), evidence=evidence), "single", (place,), "")
