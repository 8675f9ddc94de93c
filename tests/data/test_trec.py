from __future__ import annotations

from pathlib import Path

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.data.trec import docno, qrels_of, read_qrels, read_run, run_of, write_qrels, write_run
from rag_lab.data.trec_topics import read_topics, write_topics
from rag_lab.errors import DatasetError
from rag_lab.records import Evidence, Hit, Question, Trace

QUESTIONS = [
    Question("q 1", "What is\nthe <torque>?", evidence=(Evidence("a b.pdf", 3), Evidence("notes.txt"))),
    Question("q2", "Anything?", answerable=False),
    Question("q3", "Öl?", evidence=(Evidence("öl.txt"),)),
]


def hit(source: str, page: int | None, score: float, start: int = 0) -> Hit:
    return Hit(f"{source}#{page}:{start}", "c", source, page, start, start + 9, score)


TRACES = [
    Trace(
        QUESTIONS[0],
        ranked=(hit("x.pdf", 1, 9), hit("a b.pdf", 3, 8), hit("a b.pdf", 3, 7, 50), hit("notes.txt", None, 7)),
    ),
    Trace(QUESTIONS[2], ranked=(hit("öl.txt", None, 0.5),)),
]


def test_ir_measures_reads_what_was_found(tmp_path: Path) -> None:
    write_qrels(tmp_path / "qrels", qrels_of(QUESTIONS))
    write_run(tmp_path / "run", run_of(TRACES), "my run")
    qrels = ir_measures.read_trec_qrels(str(tmp_path / "qrels"))
    run = ir_measures.read_trec_run(str(tmp_path / "run"))
    found = ir_measures.calc_aggregate([ir_measures.RR, ir_measures.R @ 3], qrels, run)
    assert found == {ir_measures.RR: (1 / 2 + 1) / 2, ir_measures.R @ 3: 1.0}


@pytest.mark.slow
def test_ranx_reads_it_too(tmp_path: Path) -> None:
    ranx = pytest.importorskip("ranx")
    write_qrels(tmp_path / "qrels.txt", qrels_of(QUESTIONS))
    write_run(tmp_path / "run.txt", run_of(TRACES), "mine")
    qrels = ranx.Qrels.from_file(str(tmp_path / "qrels.txt"), kind="trec")
    run = ranx.Run.from_file(str(tmp_path / "run.txt"), kind="trec")
    assert ranx.evaluate(qrels, run, "mrr") == pytest.approx(3 / 4)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_topics(tmp_path / "topics", QUESTIONS)
    assert read_topics(tmp_path / "topics") == ({"q 1": "What is the torque>?", "q2": "Anything?", "q3": "Öl?"}, [])
    write_qrels(tmp_path / "qrels", qrels_of(QUESTIONS))
    assert read_qrels(tmp_path / "qrels") == (qrels_of(QUESTIONS), [])
    write_run(tmp_path / "run", run_of(TRACES), "t")
    assert {asked: list(found) for asked, found in read_run(tmp_path / "run").items()} == {
        "q 1": ["x.pdf#p1", "a%20b.pdf#p3", "notes.txt"],
        "q3": [docno("öl.txt", None)],
    }


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text(min_size=1).filter(str.isprintable))
def test_numbers_of_documents_hold_no_whitespace_and_differ(one: str, other: str) -> None:
    assert docno(one, 1).split() == [docno(one, 1)]
    assert (docno(one, None) == docno(other, None)) == (one == other)


LINES = ["q1 0 d", "q1 0 d one", "q1 0 d 1 more", "q1 0 d nan", "q1 0 d inf"]


@pytest.mark.parametrize("line", LINES)
def test_a_bad_judgement_is_left_out_and_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "qrels").write_text(f"q1 0 a 0.5\n{line}\n\nq1 0 b 1\n")
    qrels, problems = read_qrels(tmp_path / "qrels")
    assert qrels == {"q1": {"a": 0.5, "b": 1}}
    assert [problem.line for problem in problems] == [2] and "grade, a number" in problems[0].reason


@pytest.mark.parametrize("line", ["q1 Q0 d 1 0.5", "q1 Q0 d 1 one t", "q1 Q0 d 1 nan t"])
def test_a_bad_line_of_a_run_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "run").write_text(f"q1 Q0 a 1 0.5 t\n{line}\n")
    with pytest.raises(DatasetError, match="run:2 is not question, Q0"):
        read_run(tmp_path / "run")


def test_the_file_is_the_unit_of_evidence_that_names_no_page() -> None:
    question = Question("q", "?", evidence=(Evidence("a.pdf"), Evidence("b.pdf", 2)))
    hits = (hit("a.pdf", 7, 9), hit("b.pdf", 2, 8), hit("a.pdf", 1, 7))
    assert qrels_of([question]) == {"q": {"a.pdf": 1, "b.pdf#p2": 1}}
    assert list(run_of([Trace(question, ranked=hits)])["q"]) == ["a.pdf", "b.pdf#p2"]


TOPICS = {
    "<top>\n<num> Number: 1\n<title> alpha\n</top>": ("1", "alpha"),
    "<top><num>2</num><title>closing\n tags</title><desc>d</desc></top>": ("2", "closing tags"),
    "<top>\n<head> Tipster\n<num> Number:  003\n<dom> Domain: x\n<title> Topic:  old\n<desc> d": ("003", "old"),
    "<TOP>\n<TITLE> a < b & c > d\n<NUM> 4%20x\n</TOP>": ("4 x", "a < b & c > d"),
}


def test_topics_of_every_age(tmp_path: Path) -> None:
    (tmp_path / "topics").write_text("\n\n".join(TOPICS))
    assert read_topics(tmp_path / "topics") == (dict(TOPICS.values()), [])


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("<top>\n<num> Number: 2\n<title> \n</top>", "topic '2' has no text"),
        ("<top>\n<num> Number: 2\n<desc> only\n</top>", "topic '2' has no text"),
        ("<top>\n<num> Number: \n<title> lost\n</top>", "it has no number"),
        ("<top>\n<title> lost\n</top>", "it has no number"),
        ("<top>\n<num> Number: 1\n<title> again\n</top>", "the number '1' was used before"),
    ],
)
def test_a_bad_topic_is_left_out_and_named(tmp_path: Path, bad: str, reason: str) -> None:
    first = next(iter(TOPICS))
    (tmp_path / "topics").write_text(f"{first}\n{bad}\n")
    topics, problems = read_topics(tmp_path / "topics")
    assert topics == {"1": "alpha"}
    assert [problem.line for problem in problems] == [5] and reason in problems[0].reason


def test_a_file_without_topics_is_refused(tmp_path: Path) -> None:
    (tmp_path / "topics").write_text("num,title\n1,alpha\n")
    with pytest.raises(DatasetError, match="holds no topic"):
        read_topics(tmp_path / "topics")
