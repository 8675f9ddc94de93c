import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.corpus.folder import load_folder
from rag_lab.corpus.normalize import normalize
from rag_lab.data.formats import import_dataset
from rag_lab.data.importers import quote_around, read_squad
from rag_lab.errors import DatasetError
from rag_lab.records import Evidence, Question

REAL = Path(os.environ.get("RAG_LAB_DATA") or Path(__file__).parents[3] / "shared" / "data") / "xquad"
CONTEXT = "The mill was built in 1851.\r\nIt burnt down in 1902, and again in 1911. Nobody rebuilt it."


def item(question_id: str, answer: str, start: int | None = None, **changes: Any) -> dict[str, Any]:
    offset = CONTEXT.index(answer) if start is None else start
    return {"id": question_id, "question": "When?", "answers": [{"text": answer, "answer_start": offset}], **changes}


def write(tmp_path: Path, *qas: Any, title: Any = "The Mill") -> Path:
    path = tmp_path / "squad.json"
    paragraphs = [{"context": CONTEXT, "qas": qas}]
    path.write_text(json.dumps({"data": [{"title": title, "paragraphs": paragraphs}]}), encoding="utf-8")
    return path


def test_a_question(tmp_path: Path) -> None:
    draft = read_squad(write(tmp_path, item("q1", "1911")))
    assert draft.documents == {"The_Mill/01.txt": CONTEXT.replace("\r\n", "\n")}
    quote = "It burnt down in 1902, and again in 1911."
    assert draft.questions == [Question("q1", "When?", ("1911",), evidence=(Evidence("The_Mill/01.txt", None, quote),))]
    assert draft.problems == []


@pytest.mark.parametrize("context", ["", " \n", "\u200b"])
def test_a_paragraph_without_text_is_left_out_and_named(tmp_path: Path, context: str) -> None:
    path = tmp_path / "squad.json"
    paragraphs = [{"context": context, "qas": [item("q1", "1911")]}, {"context": CONTEXT, "qas": [item("q2", "1911")]}]
    path.write_text(json.dumps({"data": [{"title": "Mill", "paragraphs": paragraphs}]}), encoding="utf-8")
    draft = read_squad(path)
    assert list(draft.documents) == ["Mill/02.txt"] and [question.question_id for question in draft.questions] == ["q2"]
    assert "paragraph 1 of article 'Mill' has no text; it was left out with 1 question" in str(draft.problems[0])


def test_the_same_answer_several_times_is_one(tmp_path: Path) -> None:
    answers = [{"text": text, "answer_start": CONTEXT.index(text)} for text in ("1902", "1902", "in 1902")]
    draft = read_squad(write(tmp_path, item("q1", "1902", answers=answers)))
    assert draft.questions[0].answers == ("1902", "in 1902")
    assert len(draft.questions[0].evidence) == 1


def test_impossible_questions_are_unanswerable(tmp_path: Path) -> None:
    draft = read_squad(write(tmp_path, item("q1", "1911", answers=[], is_impossible=True), item("q2", "1911")))
    assert draft.questions[0] == Question("q1", "When?", answerable=False)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("nonsense", "this is no JSON object"),
        ({"question": "?"}, "id: field required"),
        (item("q1", "1911", question="  "), "question 'q1' was left out: its id or its text is empty"),
        (item("q1", "1911", answers=[]), "question 'q1' was left out: it has no answer"),
        (item("q2", "1911"), "question 'q2' was left out: an earlier question has its id"),
        (item("q1", "1911", question="\ud800"), "must be text, but holds half a character"),
    ],
)
def test_a_bad_question_is_reported(tmp_path: Path, bad: Any, reason: str) -> None:
    draft = read_squad(write(tmp_path, item("q2", "1902"), bad, item("q3", "1902")))
    assert [question.question_id for question in draft.questions] == ["q2", "q3"]
    assert len(draft.problems) == 1
    assert "paragraph 1 of article 'The Mill'" in str(draft.problems[0])
    assert reason in str(draft.problems[0])


def test_a_wrong_offset_takes_the_nearest_place(tmp_path: Path) -> None:
    draft = read_squad(write(tmp_path, item("q1", "1911", start=0)))
    assert draft.questions[0].evidence[0].quote == "It burnt down in 1902, and again in 1911."


def test_an_answer_that_is_not_there_leaves_the_paragraph_as_evidence(tmp_path: Path) -> None:
    draft = read_squad(write(tmp_path, item("q1", "1999", start=3)))
    assert draft.questions[0].evidence == (Evidence("The_Mill/01.txt"),)
    assert "question 'q1' has no quote" in str(draft.problems[0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "no list `data`"),
        ('{"data": {}}', "no list `data`"),
    ],
)
def test_what_is_no_squad_file(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DatasetError, match=message):
        read_squad(path)


def test_bad_articles_and_paragraphs_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    data = [3, {"title": "a"}, {"title": "b", "paragraphs": [{"qas": []}, {"context": CONTEXT, "qas": []}]}]
    path.write_text(json.dumps({"data": data}), encoding="utf-8")
    draft = read_squad(path)
    assert list(draft.documents) == ["b/02.txt"]
    assert len(draft.problems) == 3


@pytest.mark.skipif(not REAL.is_dir(), reason=f"there is no folder of question sets at {REAL}")
@pytest.mark.parametrize("language", ["en", "ru", "zh"])
def test_xquad(tmp_path: Path, language: str) -> None:
    dataset, problems = import_dataset("squad", REAL / f"xquad.{language}.json", tmp_path / "new", language=language)
    assert problems == [] and dataset.problems == ()
    assert len(dataset.questions) == 1190
    texts = {document.source: document.text for document in load_folder(dataset.corpus_dir).documents}
    assert len(texts) == 240
    for question in dataset.questions:
        evidence = question.evidence[0]
        assert evidence.quote and texts[evidence.source].count(evidence.quote) == 1
        assert normalize(question.answers[0]) in evidence.quote


@pytest.mark.parametrize(
    ("text", "answer", "quote"),
    [
        ("It rained for 3.5 hours. The roof leaked in 12 places! We left.", "12", "The roof leaked in 12 places!"),
        ("黑豹队的防守只丢了三百零八分，在联赛中排名第六。他们的队友贡献了六次擒杀，令人惊讶。", "六次", None),
        ("“He came back from the sea.” She waited for him there.", "sea", "“He came back from the sea.”"),
        ("First heading\nThe body of the text goes on", "body", "The body of the text goes on"),
        ("No end in this text at all", "end", "No end in this text at all"),
    ],
)
def test_the_sentence_of_the_answer(text: str, answer: str, quote: str | None) -> None:
    start = text.index(answer)
    expected = quote or "他们的队友贡献了六次擒杀，令人惊讶。"
    found = quote_around(text, start, start + len(answer))
    assert found == expected or (quote is None and found == text)  # 18 characters are too short to stand alone


def test_a_sentence_that_stands_twice_takes_its_neighbours() -> None:
    text = "The pump must be off. Then open the lid. The pump must be off. Then close it."
    assert quote_around(text, text.rindex("off"), text.rindex("off") + 3) == (
        "Then open the lid. The pump must be off. Then close it."
    )


@given(st.text(st.sampled_from("ab .。\n!"), min_size=1, max_size=60), st.data())
def test_the_quote_is_verbatim_holds_the_answer_and_stands_once(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    quote = quote_around(text, start, end)
    assert quote in text
    assert text[start:end].strip() in quote
    assert not quote or text.count(quote) == 1
