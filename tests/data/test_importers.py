import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.corpus.folder import load_folder
from rag_lab.corpus.normalize import normalize
from rag_lab.data.formats import import_dataset
from rag_lab.data.importers import file_name, quote_around, read_beir, read_squad
from rag_lab.errors import DatasetError
from rag_lab.records import Evidence, Question

REAL = Path(os.environ.get("RAG_LAB_DATA") or Path(__file__).parents[3] / "shared" / "data")
DOCUMENTS = [{"_id": "d1", "title": "One", "text": "First."}, {"_id": "d2", "text": "Second."}]
QUERIES = [{"_id": "q1", "text": "Which?", "metadata": {"answers": ["one", " "]}}, {"_id": "q2", "text": "Unjudged"}]


def write(folder: Path, qrels: str, documents: list[Any] = DOCUMENTS, queries: list[Any] = QUERIES) -> Path:
    (folder / "qrels").mkdir(parents=True)
    for name, lines in (("corpus", documents), ("queries", queries)):
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (folder / f"{name}.jsonl").write_text("\n".join(texts), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + qrels, encoding="utf-8")
    return folder


def test_judged_queries_become_questions(tmp_path: Path) -> None:
    draft = read_beir(write(tmp_path, "q1\td2\t2\nq1\td1\t0\n"))
    evidence, not_relevant = (Evidence("d2.txt", grade=2),), (Evidence("d1.txt", grade=0),)
    assert draft.questions == [Question("q1", "Which?", ("one",), evidence=evidence, not_relevant=not_relevant)]
    assert draft.documents == {"d1.txt": "One\nFirst.", "d2.txt": "Second."}
    assert draft.problems == []


@pytest.mark.parametrize(
    ("qrels", "reason"),
    [
        ("q1\td1\t1\nq1 d2 1\n", "test.tsv:3: not query-id, corpus-id and score"),
        ("q1\td1\t1\nq1\td2\tyes\n", "test.tsv:3: not query-id, corpus-id and score"),
        ("q1\td1\t1\nq1\td2\tnan\n", "test.tsv:3: not query-id, corpus-id and score, a number, by tabs, nor TREC's"),
        ("q1\td1\t1\nq1\td2\tinf\n", "test.tsv:3: not query-id, corpus-id and score, a number"),
        ("q1\td1\t1\nq1\td9\t1\n", "test.tsv:3: the document is not in corpus.jsonl"),
        ("q1\td1\t1\nq9\td1\t1\n", "query 'q9' was left out: it is not in queries.jsonl"),
        ("q1\td1\t1\nq2\td1\t0\n", "query 'q2' was left out: no document is judged relevant"),
    ],
)
def test_a_bad_judgement_is_reported(tmp_path: Path, qrels: str, reason: str) -> None:
    draft = read_beir(write(tmp_path, qrels))
    assert [(question.question_id, len(question.evidence)) for question in draft.questions] == [("q1", 1)]
    assert len(draft.problems) == 1
    assert reason in str(draft.problems[0])


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("{", "corpus.jsonl:3: this is not JSON"),
        ({"_id": "d3"}, "corpus.jsonl:3: text: field required"),
        (DOCUMENTS[0], "corpus.jsonl:3: the id 'd1' was used before"),
        ({"_id": "d3", "text": " "}, "document 'd3' is empty"),
        ({"_id": "d3", "text": "\u200b", "title": None}, "document 'd3' is empty"),
        ({"_id": " ", "text": "Third."}, "corpus.jsonl:3: the id ' ' is empty"),
    ],
)
def test_a_bad_document_is_reported(tmp_path: Path, document: Any, reason: str) -> None:
    draft = read_beir(write(tmp_path, "q1\td1\t1\n", documents=[*DOCUMENTS, document]))
    assert len(draft.documents) == 2
    assert len(draft.problems) == 1
    assert reason in str(draft.problems[0])


def test_a_blank_id_of_a_query_is_reported(tmp_path: Path) -> None:
    draft = read_beir(write(tmp_path, "q1\td1\t1\n \td1\t1\n", queries=[*QUERIES, {"_id": " ", "text": "Lost?"}]))
    assert [question.question_id for question in draft.questions] == ["q1"]
    assert ["the id ' ' is empty" in str(problem) for problem in draft.problems] == [True, False]
    assert "query ' ' was left out: it is not in queries.jsonl" in str(draft.problems[1])


def test_what_is_null_is_absent_and_a_half_counts(tmp_path: Path) -> None:
    queries = [
        {"_id": "q1", "text": "Which?", "metadata": None},
        {"_id": "q2", "text": "Who?", "metadata": {"answers": None}},
    ]
    documents = [{"_id": "d1", "title": None, "text": "First."}, {"_id": "d2", "title": "Two", "text": "  indented"}]
    draft = read_beir(write(tmp_path, "q1\td1\t0.5\nq2\td2\t1\n", documents=documents, queries=queries))
    assert draft.documents == {"d1.txt": "First.", "d2.txt": "Two\n  indented"}
    assert [(question.answers, len(question.evidence)) for question in draft.questions] == [((), 1), ((), 1)]


def test_halves_keep_their_ratio_and_it_is_said(tmp_path: Path) -> None:
    draft = read_beir(write(tmp_path, "q1\td1\t0.5\nq1\td2\t1\n"))
    assert [item.grade for item in draft.questions[0].evidence] == [1, 2]
    (said,) = draft.problems
    assert "test.tsv: judgements were multiplied by 2, since grades are whole numbers up to 100; nDCG stays" in str(
        said
    )


def test_qrels_of_trec_are_read_with_their_grades(tmp_path: Path) -> None:
    folder = write(tmp_path, "")
    (folder / "qrels/test.tsv").unlink()
    (folder / "qrels/test.txt").write_text("q1 0 d1 2\nq1 0 d2 -1\nq1\t0\td9\t1\nq1 d1 2\n")
    draft = read_beir(folder)
    (question,) = draft.questions
    assert (question.evidence, question.not_relevant) == (
        (Evidence("d1.txt", grade=2),),
        (Evidence("d2.txt", grade=0),),
    )
    assert [problem.line for problem in draft.problems] == [4, 3]


def test_ids_that_share_a_file_name_stay_apart(tmp_path: Path) -> None:
    documents = [{"_id": name, "text": name} for name in ("a/b", "a_b", 7)]
    draft = read_beir(write(tmp_path, "q1\ta_b\t1\nq1\t7\t1\n", documents=documents))
    assert draft.documents == {"a_b.txt": "a/b", "a_b_2.txt": "a_b", "7.txt": "7"}
    assert draft.questions[0].evidence == (Evidence("a_b_2.txt"), Evidence("7.txt"))


def test_unknown_split_and_missing_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "set", "q1\td1\t1\n")
    with pytest.raises(DatasetError, match="Unknown split 'dev': allowed are test"):
        read_beir(folder, split="dev")
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"Cannot read .*corpus.jsonl: No such file"):
        read_beir(folder)
    with pytest.raises(DatasetError, match="is no BEIR folder"):
        read_beir(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_dir(), reason=f"there is no folder of question sets at {REAL}")
@pytest.mark.parametrize(
    ("name", "n_questions", "n_documents", "n_evidence"),
    [("scifact", 300, 5183, 339), ("multihop/hotpotqa_100", 100, 994, 200), ("multihop/musique_100", 100, 1890, None)],
)
def test_real_sets(tmp_path: Path, name: str, n_questions: int, n_documents: int, n_evidence: int | None) -> None:
    dataset, problems = import_dataset(None, REAL / name, tmp_path / "new")
    assert problems == [] and dataset.problems == ()
    assert len(dataset.questions) == n_questions
    assert len(list(dataset.corpus_dir.iterdir())) == n_documents
    found = [len(question.evidence) for question in dataset.questions]
    assert sum(found) == (n_evidence or sum(found))
    assert min(found) >= (1 if name == "scifact" else 2)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Sky (United Kingdom)", "Sky_United_Kingdom"),
        ("../../etc/passwd", "etc_passwd"),
        ("黑豹队：防守", "黑豹队_防守"),
        ("हिन्दी", "हिन्दी"),
        ("Пэнтерс?", "Пэнтерс"),
        (".hidden", "hidden"),
        ("a\x00b\n", "a_b"),
        ("***", "document"),
    ],
)
def test_safe_names(text: str, name: str) -> None:
    assert file_name(text, "document", {}) == name


def test_names_are_distinct_whatever_the_case() -> None:
    taken: dict[str, int] = {}
    assert [file_name(text, "document", taken) for text in ("a/b", "A.B", "a_b", "", "?")] == [
        *("a_b", "A_B_2", "a_b_3", "document", "document_2")
    ]


def test_many_long_ids_that_begin_alike_are_named_at_once() -> None:
    taken: dict[str, int] = {}
    start = time.process_time()
    found = [file_name(f"{'a' * 60}/{n}", "document", taken) for n in range(20_000)]
    assert found[-1] == f"{'a' * 60}_20000"
    assert time.process_time() - start < 5  # each name from the first number on would take minutes


@given(st.lists(st.text(max_size=80), max_size=8))
def test_every_name_can_be_a_file(texts: list[str]) -> None:
    taken: dict[str, int] = {}
    found = [file_name(text, "document", taken) for text in texts]
    assert len({name.casefold() for name in found}) == len(texts)
    for name in found:
        assert name and len(f"{name}.txt".encode()) <= 255
        assert not set(name) & set('/\\.:*?"<>|\x00\n')


XQUAD = Path(os.environ.get("RAG_LAB_DATA") or Path(__file__).parents[3] / "shared" / "data") / "xquad"
CONTEXT = "The mill was built in 1851.\r\nIt burnt down in 1902, and again in 1911. Nobody rebuilt it."


def item(question_id: str, answer: str, start: int | None = None, **changes: Any) -> dict[str, Any]:
    offset = CONTEXT.index(answer) if start is None else start
    return {"id": question_id, "question": "When?", "answers": [{"text": answer, "answer_start": offset}], **changes}


def write_squad(tmp_path: Path, *qas: Any, title: Any = "The Mill") -> Path:
    path = tmp_path / "squad.json"
    paragraphs = [{"context": CONTEXT, "qas": qas}]
    path.write_text(json.dumps({"data": [{"title": title, "paragraphs": paragraphs}]}), encoding="utf-8")
    return path


def test_a_question(tmp_path: Path) -> None:
    draft = read_squad(write_squad(tmp_path, item("q1", "1911")))
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
    draft = read_squad(write_squad(tmp_path, item("q1", "1902", answers=answers)))
    assert draft.questions[0].answers == ("1902", "in 1902")
    assert len(draft.questions[0].evidence) == 1


def test_impossible_questions_are_unanswerable(tmp_path: Path) -> None:
    draft = read_squad(write_squad(tmp_path, item("q1", "1911", answers=[], is_impossible=True), item("q2", "1911")))
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
    draft = read_squad(write_squad(tmp_path, item("q2", "1902"), bad, item("q3", "1902")))
    assert [question.question_id for question in draft.questions] == ["q2", "q3"]
    assert len(draft.problems) == 1
    assert "paragraph 1 of article 'The Mill'" in str(draft.problems[0])
    assert reason in str(draft.problems[0])


def test_a_wrong_offset_takes_the_nearest_place(tmp_path: Path) -> None:
    draft = read_squad(write_squad(tmp_path, item("q1", "1911", start=0)))
    assert draft.questions[0].evidence[0].quote == "It burnt down in 1902, and again in 1911."


def test_an_answer_that_is_not_there_leaves_the_paragraph_as_evidence(tmp_path: Path) -> None:
    draft = read_squad(write_squad(tmp_path, item("q1", "1999", start=3)))
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


@pytest.mark.skipif(not XQUAD.is_dir(), reason=f"there is no folder of question sets at {XQUAD}")
@pytest.mark.parametrize("language", ["en", "ru", "zh"])
def test_xquad(tmp_path: Path, language: str) -> None:
    dataset, problems = import_dataset("squad", XQUAD / f"xquad.{language}.json", tmp_path / "new", language=language)
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
