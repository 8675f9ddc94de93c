from pathlib import Path

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.data.formats import docno, qrels_of, run_of, write_qrels, write_run, write_topics
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


def test_topics_are_written(tmp_path: Path) -> None:
    write_topics(tmp_path / "topics", QUESTIONS)
    assert (tmp_path / "topics").read_text(encoding="utf-8") == (
        "<top>\n<num> Number: q%201\n<title> What is the torque>?\n</top>\n"
        "<top>\n<num> Number: q2\n<title> Anything?\n</top>\n"
        "<top>\n<num> Number: q3\n<title> Öl?\n</top>\n"
    )


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text(min_size=1).filter(str.isprintable))
def test_numbers_of_documents_hold_no_whitespace_and_differ(one: str, other: str) -> None:
    assert docno(one, 1).split() == [docno(one, 1)]
    assert (docno(one, None) == docno(other, None)) == (one == other)


def test_the_file_is_the_unit_of_evidence_that_names_no_page() -> None:
    question = Question("q", "?", evidence=(Evidence("a.pdf"), Evidence("b.pdf", 2)))
    hits = (hit("a.pdf", 7, 9), hit("b.pdf", 2, 8), hit("a.pdf", 1, 7))
    assert qrels_of([question]) == {"q": {"a.pdf": 1, "b.pdf#p2": 1}}
    assert list(run_of([Trace(question, ranked=hits)])["q"]) == ["a.pdf", "b.pdf#p2"]
