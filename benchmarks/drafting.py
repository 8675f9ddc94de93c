"""What the filters of drafted questions find, and whether drafted questions rank variants as people's questions do.

    python benchmarks/drafting.py filters DATA [--half tuned]
    python benchmarks/drafting.py ranking DATA [--bad 0.67 --copies]
    python benchmarks/drafting.py demo DATA FOLDER

DATA is the folder with xquad/ and contoso_hr/.

*filters*: defects are planted in people's questions: each question is a draft as a
good writer would have made it, and once more with each defect. The rules were tuned on one half, `tuned` (every other
article of XQuAD, every other question of contoso_hr, every other wording of a defect); what is reported is the other.

*ranking*: a scripted writer, behind a server on loopback, writes every other question of XQuAD where a place holds its
answer, and a bad one instead for a share of the places. Twelve variants of retrieval are ranked by what stood, and by
the other questions, which no draft was made of.

*demo*: the same writer for the PDFs of contoso_hr, without their questions, into a new data set in FOLDER.
"""

import argparse
import json
import os
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from rag_lab.cli import app
from rag_lab.corpus.folder import load_folder
from rag_lab.corpus.normalize import find_quote, language_of
from rag_lab.corpus.spans import sentence_units
from rag_lab.data.dataset import Dataset
from rag_lab.data.formats import import_dataset
from rag_lab.data.synthetic import change_number
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.models.shared import chat_model
from rag_lab.pipeline import Pipeline
from rag_lab.questions import filters
from rag_lab.questions.drafting import DraftedSet, Drafting
from rag_lab.questions.writer import Draft, Place, WriteDraft
from rag_lab.records import Chunk, Document, Evidence, Passage, Question
from rag_lab.stages import extract
from rag_lab.stages.context import render_passage

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from loopback_models import openai_server

METRIC = "retrieval.ndcg@10"
VARIANTS = [(mode, size) for mode in ("bm25", "tfidf", "dense", "hybrid") for size in (200, 400, 800)]

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
            place = whole(Document(f"{number:02}.txt", page, text), LANGUAGES[code])
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
            place = whole(page, language_of(page.text) or "english")
            halves[number % 2].append(_draft(asked["id"], asked["question"], asked["answers"][0], place, page.text))
    return halves


def whole(document: Document, language: str) -> Place:
    """Return a document as one place."""
    name, text = f"{document.source}#{document.page}", document.text
    return Place(Chunk(name, name, document.source, document.page, 0, len(text), text), "prose", language)


def _draft(name: str, text: str, answer: str, place: Place, quote: str) -> Draft:
    evidence = (Evidence(place.chunk.source, place.chunk.page, quote),)
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
    text = draft.places[0].chunk.text
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
            while other.places[0].chunk == draft.places[0].chunk:
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


NOT_FOUND = json.dumps({"answer": extract.NOT_FOUND, "citations": []})
NOTHING = json.dumps({"question": "", "answer": "", "quotes": [], "before": []})


class ScriptedWriter:
    """Writes people's questions, `bad` of them with a planted defect, and reads as somebody who knows the answers.

    `by_place` has the drafts of a file and page; `written` counts the questions that were written with each defect.
    """

    def __init__(self, people: Sequence[Draft], bad: float, defects: Sequence[Defect] = ()) -> None:
        self.people, self.bad = people, bad
        self.defects = defects or [defect for _, _, defect in PLANTED[:-1]]  # a duplicate needs another place
        self.name = f"scripted-2-{bad:.2f}-{len(self.defects)}"
        self.by_place: dict[str, list[Draft]] = defaultdict(list)
        for one in people:
            self.by_place[place_name(one.places[0].chunk)].append(one)
        self.answers = {one.question.text: one.question.answers[0] for one in people}
        self.written: dict[str, str] = {}  # the defect by question, "" for none

    def __call__(self, body: dict[str, Any]) -> str:
        system, asked = (body["messages"][n]["content"] for n in (0, -1))
        if system.startswith("You write questions"):
            if "one condition" in system:
                return self.unanswerable(asked)
            others = ("two passages", "follows another", "name a topic")
            return NOTHING if any(mark in system for mark in others) else self.write(asked)
        if "Passages:" not in asked:
            return NOT_FOUND
        passages, _, question = asked.rpartition("Question:")
        answer = self.answers.get(question.strip())
        known = set(filters.content_words(answer or "", "english"))
        there = set(filters.content_words(passages, "english"))
        is_there = answer and len(known & there) >= 0.9 * len(known)
        return json.dumps({"answer": answer, "citations": [1]}) if is_there else NOT_FOUND

    def unanswerable(self, asked: str) -> str:
        """Return a question of the place with another number, or about another company, which nobody can answer."""
        name, _, text = asked.partition("Passages:\n")[2].partition("\n")
        for draft in self.held(name, text):
            named = draft.question.text.replace("Northwind", "Westwind").replace("Contoso", "Fabrikam")
            changed = change_number(named) or named
            if changed != draft.question.text:
                keys = {"answer": "another number or company", "quotes": draft.quotes, "before": []}
                return json.dumps({"question": changed, **keys})
        return NOTHING

    def write(self, asked: str) -> str:
        """Return a question of the place whose answer it holds; nothing where there is none."""
        name, _, text = asked.partition("Passages:\n")[2].partition("\n")
        lot = random.Random(text)
        held = self.held(name, text)
        if not held:
            return NOTHING
        draft, other, defect = lot.choice(held), lot.choice(self.people), ""
        if lot.random() < self.bad and other.places[0].chunk != draft.places[0].chunk:
            plant = lot.choice(self.defects)
            planted = plant(draft, other, lot.randrange(1000), lot.randrange(2))
            draft, defect = (planted, plant.__name__) if planted else (draft, "")
        self.written[draft.question.text] = defect
        quote, answer = draft.quotes[0], draft.question.answers[0]
        self.answers.setdefault(draft.question.text, answer)
        return json.dumps({"question": draft.question.text, "answer": answer, "quotes": [quote], "before": []})

    def held(self, name: str, text: str) -> list[Draft]:
        """Return the people's questions whose quote stands in a place."""
        return [one for one in self.by_place.get(name, ()) if find_quote(text, one.quotes[0])]


class ContosoWriter(ScriptedWriter):
    """Writes the questions about a page where a place has a sentence near the answer, which is quoted, and answers."""

    def held(self, name: str, text: str) -> list[Draft]:
        """Return the questions with the sentence that shares most words with their answer, four at least."""
        sentences = [text[a:b] for a, b in sentence_units(text)]
        found = []
        for one in self.by_place.get(name, ()):
            answer = set(filters.content_words(one.question.answers[0], "english"))
            shared = [len(answer & set(filters.content_words(each, "english"))) for each in sentences]
            if max(shared, default=0) >= 4:
                near = sentences[shared.index(max(shared))]
                found.append(_with(one, quote=near, answer=" ".join(near.split())))
                self.answers[one.question.text] = found[-1].question.answers[0]
        return found


def place_name(chunk: Chunk) -> str:
    """Return a place as a prompt names it."""
    return render_passage(Passage(1, "", chunk.source, chunk.page, 0, 0, "")).strip()


def drafted_set(folder: Path, writer: ScriptedWriter, n: int) -> DraftedSet:
    """Return the set that is drafted about a data set, by the real protocol."""
    with openai_server(writer) as server:
        spec = f"openai:{writer.name}?base_url={server.url}"
        drafting = Drafting(Pipeline(Dataset.load(folder, labelled=False), progress=False), n)
        return drafting.draft(WriteDraft(chat_model(spec)), chat_model(spec))


def scores(pipeline: Pipeline, questions: Sequence[Question]) -> np.ndarray:
    """Return nDCG@10 of each of `VARIANTS` on each question, (n_variants, n_questions)."""
    rows = []
    for mode, size in VARIANTS:
        keys = {"retrieval.mode": mode, "corpus.chunk_size": size, "corpus.chunk_overlap": size // 8}
        traces = pipeline.set(keys | {"rerank.final_k": 10}).run(questions, answer=(), read=lambda _: ())
        rows.append([0.0 if one.value is None else one.value for one in evaluate(traces, [METRIC])])
    return np.array(rows)


def tau(first: np.ndarray, second: np.ndarray, seed: int = 0, n: int = 2000) -> tuple[float, float, float]:
    """Return Kendall's tau-b between the means of variants, with the 95% bootstrap interval over questions of both."""
    lot = np.random.default_rng(seed)
    found = [
        kendalltau(*(rows[:, lot.integers(0, rows.shape[1], rows.shape[1])].mean(1) for rows in (first, second)))[0]
        for _ in range(n)
    ]
    low, high = np.nanpercentile(found, [2.5, 97.5])
    return float(kendalltau(first.mean(1), second.mean(1))[0]), float(low), float(high)


def ranking_table(data: Path, folder: Path, bad: float, n: int, defects: Sequence[Defect]) -> str:
    """Return the taus between the rankings by drafted questions, with and without filters, and by people's.

    Searched are XQuAD's paragraphs among those of two other sets, which make it harder.
    """
    import_dataset("squad", data / "xquad/xquad.en.json", folder / "xquad", language="en")
    people = Dataset.load(folder / "xquad").questions
    (folder / "xquad/questions.jsonl").unlink()
    documents = {one.source: one for one in load_folder(folder / "xquad/corpus").documents}
    shown = [Draft(one, "single", (whole(documents[one.evidence[0].source], "english"),)) for one in people[::2]]
    writer = ScriptedWriter(shown, bad, defects)
    drafted = drafted_set(folder / "xquad", writer, n)
    print(drafted, file=sys.stderr)
    stood = [one for one in drafted.stood if one.question.answerable]
    easy = [draft for draft, name, _ in drafted.fallen if name == "too_easy"]
    fallen = [draft for draft, *_ in drafted.fallen if draft.question.text]
    kept = sum(bool(writer.written.get(one.question.text)) for one in stood)
    others = folder / "xquad/corpus/others"
    others.mkdir()
    for name in ("hotpotqa_100", "musique_100"):
        for line in (data / f"multihop/{name}/corpus.jsonl").read_text(encoding="utf-8").splitlines():
            (others / f"{name}-{json.loads(line)['_id']}.txt").write_text(json.loads(line)["text"], encoding="utf-8")
    pipeline = Pipeline(Dataset.load(folder / "xquad", labelled=False), progress=False)
    by_people = scores(pipeline, people[1::2])
    rows = []
    for name, drafts in (
        ("drafted, filtered", stood),
        ("drafted, without any filter", [*stood, *fallen]),
        ("drafted, all filters but too_easy", [*stood, *easy]),
    ):
        asked = [_findable(pipeline, one.question) for one in drafts]
        rows.append((name, len(asked), *tau(scores(pipeline, asked), by_people)))
    half, lot = scores(pipeline, people[::2]), np.random.default_rng(0)
    draws = [half[:, lot.choice(half.shape[1], len(stood), replace=False)] for _ in range(500)]
    taus = [float(kendalltau(one.mean(1), by_people.mean(1))[0]) for one in draws]
    low, high = np.percentile(taus, [2.5, 97.5])
    rows.append(("people's, as many: mean of 500 draws", len(stood), float(np.mean(taus)), float(low), float(high)))
    lines = ["| questions | n | tau with people's other questions |", "|---|---|---|"]
    lines += [f"| {name} | {n} | {value:.2f} [{low:.2f} to {high:.2f}] |" for name, n, value, low, high in rows]
    planted = sum(map(bool, writer.written.values()))
    lines += ["", f"Written {len(writer.written)}, {planted} of them bad; of {len(stood)} that stood {kept} are bad."]
    means = ", ".join(
        f"{mode} {size} {mean:.3f}" for (mode, size), mean in zip(VARIANTS, by_people.mean(1), strict=True)
    )
    return "\n".join([*lines, "", f"By people's {by_people.shape[1]} questions: {means}."])


def _findable(pipeline: Pipeline, question: Question) -> Question:
    """Return a question with evidence that can be located: the file alone, where the quote does not stand in it."""
    evidence = tuple(replace(one, quote=None) if pipeline.index.locate(one)[1] else one for one in question.evidence)
    return replace(question, evidence=evidence)


def demo(data: Path, folder: Path) -> None:
    """Make a data set of the PDFs alone, by the command line, with the writer behind a server on loopback."""
    people = [draft for half in contoso(data) for draft in half]
    with openai_server(ContosoWriter(people, 0.3)) as server:
        command = ["questions", "draft", str(data / "contoso_hr/corpus"), "--out", str(folder / "hr"), "--n", "200"]
        app([*command, "--model", f"openai:scripted?base_url={server.url}", "--yes"], standalone_mode=False)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["filters", "ranking", "demo"])
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--half", choices=["tuned", "held_out"], default="held_out")
    parser.add_argument("--bad", type=float, default=1 / 3, help="share of the places about which a bad one is written")
    parser.add_argument("--copies", action="store_true", help="the bad ones are copies of the sentence that answers")
    parser.add_argument("--n", type=int, default=500)
    given = parser.parse_args()
    os.environ.setdefault("OPENAI_API_KEY", "none")  # the server asks for none
    if given.what == "filters":
        print(filters_table(given.data, int(given.half == "held_out")))
        return
    with TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        if given.what == "demo":
            demo(given.data, folder)
        else:
            defects = [copy_of_quote] if given.copies else []
            print(ranking_table(given.data, folder, given.bad, given.n, defects))


if __name__ == "__main__":
    main()
