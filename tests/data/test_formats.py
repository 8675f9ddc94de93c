import csv
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import ir_measures
import pandas as pd
import pymupdf
import pytest
import ranx
from hypothesis import given, settings
from hypothesis import strategies as st
from small_dataset import DOCUMENTS, write_dataset

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import locate_all, open_index
from rag_lab.corpus.folder import load_folder
from rag_lab.data.dataset import Dataset, Metadata
from rag_lab.data.formats import (
    IMPORTERS,
    docno,
    export_dataset,
    import_dataset,
    qrels_of,
    read_table,
    run_of,
    write_qrels,
    write_run,
    write_topics,
)
from rag_lab.data.importers import Draft, write_draft
from rag_lab.errors import ConfigError, DatasetError
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.records import Evidence, Hit, Question, Trace
from rag_lab.stores.config import StoreConfig
from rag_lab.testing import HashEmbedder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "set.jsonl"
    row = {"user_input": "Who?", "reference": "She.", "reference_contexts": ["It was she."]}
    path.write_text(json.dumps(row) + "\n{\n", encoding="utf-8")
    return path


def test_what_is_imported_is_loaded(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "target"
    dataset, problems = import_dataset(None, source, target, licence="MIT", language="en", description="Wer? 谁？")
    assert dataset == Dataset.load(target)
    assert (dataset.name, dataset.licence, dataset.language, dataset.page_base) == ("target", "MIT", "en", 1)
    assert dataset.description == "Wer? 谁？"
    assert [problem.line for problem in problems] == [2]
    assert (dataset.corpus_dir / dataset.questions[0].evidence[0].source).read_text() == "It was she."


def test_importing_twice_gives_the_same_digest(source: Path, tmp_path: Path) -> None:
    digests = {import_dataset("table", source, tmp_path / name, name="same")[0].digest for name in ("a", "b")}
    assert len(digests) == 1


def test_a_dataset_is_replaced_only_by_force(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    import_dataset(None, source, target)
    (target / "corpus" / "old.txt").write_text("old", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"exists; choose another folder, or replace it with --force"):
        import_dataset(None, source, target)
    import_dataset(None, source, target, force=True)
    assert [path.name for path in (target / "corpus").iterdir()] == ["context_00001.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set.jsonl", "target"]


def test_what_cannot_be_loaded_replaces_nothing(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    before, _ = import_dataset(None, source, target)
    unusable = Draft({"a.txt": "Text."}, [Question("1", " ")])
    with pytest.raises(DatasetError, match="Nothing was imported: the new questions.jsonl holds no usable question"):
        write_draft(unusable, Metadata(name="target"), target, force=True)
    assert Dataset.load(target) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set.jsonl", "target"]


def test_what_is_lost_at_loading_is_among_the_problems(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = Draft({"a.txt": "Text."}, [Question("1", "Why?"), Question("2", "Who?", evidence=(Evidence("gone.txt"),))])
    monkeypatch.setitem(IMPORTERS, "table", replace(IMPORTERS["table"], read=lambda _: draft))
    dataset, problems = import_dataset("table", source, tmp_path / "target")
    assert len(dataset.questions) == 2
    assert [problem.line for problem in problems] == [2] and "'gone.txt'" in problems[0].reason


def test_what_is_no_dataset_is_never_replaced(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.mkdir()
    (target / "thesis.txt").write_text("years", encoding="utf-8")
    with pytest.raises(DatasetError, match="is no dataset"):
        import_dataset(None, source, target, force=True)
    assert (target / "thesis.txt").read_text() == "years"


def test_a_target_around_the_source_is_refused(source: Path) -> None:
    (source.parent / "dataset.yaml").write_text("", encoding="utf-8")
    with pytest.raises(DatasetError, match="holds the source"):
        import_dataset(None, source, source.parent, force=True)


def test_nothing_usable_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "set.jsonl"
    source.write_text('{"user_input": "", "reference_contexts": []}', encoding="utf-8")
    with pytest.raises(DatasetError, match="no usable document; the first of 1 problems"):
        import_dataset(None, source, tmp_path / "target")
    assert [path.name for path in tmp_path.iterdir()] == ["set.jsonl"]


def test_a_target_that_cannot_be_written(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DatasetError, match="Cannot write"):
        import_dataset(None, source, tmp_path / "file" / "target")


def test_formats_and_options(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    with pytest.raises(
        DatasetError, match="Unknown format 'sqad': allowed are beir, squad, table; did you mean 'squad'"
    ):
        import_dataset("sqad", source, target)
    with pytest.raises(DatasetError, match="There is no .*gone to import"):
        import_dataset(None, tmp_path / "gone", target)
    with pytest.raises(DatasetError, match="Cannot tell the format"):
        import_dataset(None, tmp_path, target)
    with pytest.raises(ConfigError, match="The format 'table' has no option 'split'"):
        import_dataset(None, source, target, split="dev")
    assert not target.exists()


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset.load(write_dataset(tmp_path))


def back(dataset: Dataset, tmp_path: Path) -> tuple[Dataset, list[str]]:
    """Export, import again without a problem, and return the dataset and what was lost."""
    problems = export_dataset(dataset, "beir", tmp_path / "beir")
    again, faults = import_dataset("beir", tmp_path / "beir", tmp_path / "back")
    assert faults == []
    return again, [problem.reason for problem in problems]


def texts(dataset: Dataset, question: Question) -> list[str]:
    """Return the texts of the files of a question's evidence."""
    return sorted((dataset.corpus_dir / item.source).read_text() for item in question.evidence)


def test_beir_and_back(dataset: Dataset, tmp_path: Path) -> None:
    again, problems = back(dataset, tmp_path)
    answerable = [question for question in dataset.questions if question.answerable]
    assert [(q.question_id, q.text, q.answers) for q in again.questions] == [
        (q.question_id, q.text, q.answers) for q in answerable
    ]
    assert [texts(again, q) for q in again.questions] == [texts(dataset, q) for q in answerable]
    assert len(list(again.corpus_dir.iterdir())) == len(DOCUMENTS)
    assert problems[-1] == "question 'q4' was left out: it is unanswerable, which the format cannot say."


PAGES = ["Page one speaks of whales.", "Page two speaks of mountains.", "Page three speaks of deserts."]
OF_PAGES = [
    ("page", {"page": 1}),
    ("quote", {"quote": "speaks of deserts"}),
    ("file", {}),
    ("misquoted", {"quote": "speaks of rivers"}),
    ("gone", {"page": 9}),
]


@pytest.fixture
def paged(tmp_path: Path) -> Dataset:
    """Return a dataset with evidence in a PDF, of which the last three items tell no page."""
    asked = [
        {"id": name, "question": f"{name}?", "answers": ["x"], "evidence": [{"source": "man ual.pdf", **where}]}
        for name, where in OF_PAGES
    ]
    folder = write_dataset(tmp_path, "paged", asked)
    pdf = pymupdf.open()
    for text in PAGES:
        pdf.new_page().insert_text((72, 72), text)
    pdf.save(folder / "corpus/man ual.pdf")
    return Dataset.load(folder)


def test_every_document_that_is_judged_exists(paged: Dataset, tmp_path: Path) -> None:
    again, problems = back(paged, tmp_path)
    by_id = {question.question_id: question for question in again.questions}
    assert texts(again, by_id["page"]) == [PAGES[0]] and texts(again, by_id["quote"]) == [PAGES[2]]
    for name in ("file", "misquoted", "gone"):
        assert name not in by_id
        assert f"question '{name}' was left out: none of its evidence was found." in problems
        assert any(reason.startswith(f"question '{name}' lost its evidence in 'man ual.pdf'") for reason in problems)


def test_titles_are_written_where_readers_put_them(paged: Dataset, tmp_path: Path) -> None:
    (paged.corpus_dir / "one_line.txt").write_text("A single line.")
    (paged.corpus_dir / "titled.txt").write_text("A title\n\n  Indented text.")
    again, _ = back(paged, tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "beir/corpus.jsonl").read_text().splitlines()]
    assert {row["_id"]: row["title"] for row in rows if row["title"]} == {"titled.txt": "A title"}
    kept = {path.read_text() for path in again.corpus_dir.iterdir()}
    assert kept == {item.text for item in load_folder(paged.corpus_dir).documents}


def test_any_id_comes_back(tmp_path: Path) -> None:
    ids = ["a\tb", "a b/../c\n", "100%41", "Öl", '"']
    evidence = [{"source": "press.md", "quote": "290 bar"}]
    asked = [{"id": name, "question": f"{name}?", "answers": ["290 bar"], "evidence": evidence} for name in ids]
    again, _ = back(Dataset.load(write_dataset(tmp_path, extra_questions=asked)), tmp_path)
    assert set(ids) <= {question.question_id for question in again.questions}


def test_what_beir_cannot_hold_is_told_and_access_first(tmp_path: Path) -> None:
    evidence = [{"source": "press.md", "quote": "290 bar"}, {"source": "oven.txt"}]
    asked = {
        "question": "Which?", "answers": ["290 bar", "much"], "evidence": evidence, "may_see": ["staff"],
        "namespace": "", "history": [{"role": "user", "content": "Hi"}], "tags": ["t"],
    }  # fmt: skip
    extra = [{"id": "full", **asked}, {"id": "bare", "question": "Is 1 < 2?"}]
    folder = write_dataset(tmp_path, extra_questions=extra)
    (folder / "attributes.yaml").write_text("- files: notes/**\n  permissions: [staff]\n")
    (folder / "corpus/bad.pdf").write_bytes(b"no PDF")
    _, problems = back(Dataset.load(folder), tmp_path)
    assert [reason.split(":")[0] for reason in problems[:6]] == [
        "namespace and permissions of 1 file were not written",
        "`may_see` of 1 question was not written",
        "`namespace` of 1 question was not written",
        "`history` of 1 question was not written",
        "`class` of 3 questions was not written",
        "`tags` of 1 question was not written",
    ]
    assert "question 'bare' was left out: it has no evidence." in problems
    assert "the PDF is corrupt" in problems[-1]


def test_nothing_is_overwritten_and_the_format_must_be_known(dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="never overwritten"):
        export_dataset(dataset, "beir", tmp_path)
    for gone in ("squad", "table", "trec"):
        with pytest.raises(DatasetError, match=f"Unknown format '{gone}': allowed are beir"):
            export_dataset(dataset, gone, tmp_path / "new")
        assert not (tmp_path / "new").exists()


ROWS: list[dict[str, Any]] = [
    {"user_input": "Who?", "reference": "She.", "reference_contexts": ["It was she, 'tis said.", "Shared."]},
    {"user_input": "Where?\nThere?", "reference": "Here.", "reference_contexts": ["Shared."]},
]


def save(path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    frame = pd.DataFrame(rows)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True, force_ascii=False)
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_every_format(tmp_path: Path, suffix: str) -> None:
    draft = read_table(save(tmp_path / f"set{suffix}"))
    assert draft.problems == []
    assert draft.documents == {"context_00001.txt": "It was she, 'tis said.", "context_00002.txt": "Shared."}
    assert [(question.text, question.answers) for question in draft.questions] == [
        ("Who?", ("She.",)),
        ("Where?\nThere?", ("Here.",)),
    ]
    assert [[item.source for item in question.evidence] for question in draft.questions] == [
        ["context_00001.txt", "context_00002.txt"],
        ["context_00002.txt"],
    ]


@pytest.mark.parametrize(
    ("cell", "contexts"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['a', \"b's\"]", ["a", "b's"]),
        ("a plain text", ["a plain text"]),
        ("", []),
        ("[]", []),
    ],
)
def test_lists_in_csv_cells(tmp_path: Path, cell: str, contexts: list[str]) -> None:
    path = tmp_path / "set.csv"
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows([["user_input", "reference_contexts"], ["?", cell]])
    draft = read_table(path)
    assert list(draft.documents.values()) == contexts
    assert draft.questions[0].answers == ()


@pytest.mark.parametrize(
    "cell", ["[__import__('os').getcwd()]", "[1]", "['a'", "['a' 'b']", "['a'\n 'b']", "[" * 3000, "{'a': 1}["]
)
def test_a_cell_that_is_no_list_of_texts_is_reported_or_text(tmp_path: Path, cell: str) -> None:
    path = save(tmp_path / "set.csv", [*ROWS, {"user_input": "bad", "reference_contexts": cell}])
    draft = read_table(path)
    if cell.startswith("["):
        assert [question.text for question in draft.questions] == ["Who?", "Where?\nThere?"]
        assert str(draft.problems[0]).startswith(f"{path}:5: reference_contexts")
    else:
        assert cell in draft.documents.values()


def test_bad_rows_of_jsonl(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    good = json.dumps(ROWS[0])
    bad = [
        "{",
        "[]",
        '{"user_input": " ", "reference_contexts": []}',
        '{"user_input": ["a", "b"]}',
        '{"reference": "a"}',
    ]
    path.write_text("\n".join([good, *bad, "", good]), encoding="utf-8")
    draft = read_table(path)
    assert [problem.line for problem in draft.problems] == [2, 3, 4, 5, 6]
    assert draft.questions[1] == Question(
        "row_8", "Who?", ("She.",), evidence=(Evidence("context_00001.txt"), Evidence("context_00002.txt"))
    )


def test_a_context_without_text_is_left_out_and_named(tmp_path: Path) -> None:
    path = save(tmp_path / "set.jsonl", [{"user_input": "?", "reference_contexts": ["\u200b", " ", "Text."]}])
    draft = read_table(path)
    assert draft.documents == {"context_00001.txt": "Text."}
    assert draft.questions[0].evidence == (Evidence("context_00001.txt"),)
    assert [str(problem) for problem in draft.problems] == [
        f"{path}:1: a reference context holds no text and was left out."
    ]


def test_a_csv_row_with_too_many_cells_and_a_very_long_cell(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_text(f"user_input,reference_contexts\na,b,c\nlong,{'x' * 200_000}\n", encoding="utf-8")
    limit = csv.field_size_limit()
    draft = read_table(path)
    assert csv.field_size_limit() == limit
    assert str(draft.problems[0]).startswith(f"{path}:2: the row has more cells than the header")
    assert [len(text) for text in draft.documents.values()] == [200_000]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"question,contexts\na,b\n", "has no column user_input and reference_contexts; found: contexts"),
        ("a.csv", b"user_input,reference_contexts\n\xff\xfe,b\n", "is not UTF-8"),
        ("a.csv", b"user_input,reference_contexts\n", "holds no row"),
        ("a.jsonl", b"", "holds no row"),
        ("a.parquet", b"PAR1 not", "is not Parquet"),
        ("a.xlsx", b"", "allowed are .csv, .jsonl, .parquet"),
    ],
)
def test_what_is_no_table(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        read_table(tmp_path / name)


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(DatasetError, match="Cannot read"):
        read_table(tmp_path / "a.csv")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_grades_of_contexts_are_kept(tmp_path: Path, suffix: str) -> None:
    contexts = ["Best.", "Good.", "Not it.", "Good."]
    rows = [{"user_input": "Who?", "reference_contexts": contexts, "reference_grades": [3, 1, 0, 2]}]
    (question,) = read_table(save(tmp_path / f"set{suffix}", rows)).questions
    assert [item.grade for item in question.evidence] == [3, 2]
    assert [item.source for item in question.not_relevant] == ["context_00003.txt"]


@pytest.mark.parametrize(
    ("grades", "reason"),
    [
        ([1], "reference_grades holds 1 grades for 2 contexts, give one each; the row was left out."),
        ([1, 0.5], "reference_grades.1: must be a valid integer"),
        ([1, 101], "reference_grades.1: must be less than or equal to 100"),
    ],
)
def test_grades_that_cannot_be_used_are_said(tmp_path: Path, grades: list[float], reason: str) -> None:
    row = {"user_input": "Who?", "reference_contexts": ["a", "b"], "reference_grades": grades}
    draft = read_table(save(tmp_path / "set.jsonl", [row]))
    assert reason in str(draft.problems[0]) and draft.questions == []


TREC_QUESTIONS = [
    Question("q 1", "What is\nthe <torque>?", evidence=(Evidence("a b.pdf", 3), Evidence("notes.txt"))),
    Question("q2", "Anything?", answerable=False),
    Question("q3", "Öl?", evidence=(Evidence("öl.txt"),)),
]


def trec_hit(source: str, page: int | None, score: float, start: int = 0) -> Hit:
    return Hit(f"{source}#{page}:{start}", "c", source, page, start, start + 9, score)


TRACES = [
    Trace(
        TREC_QUESTIONS[0],
        ranked=(
            trec_hit("x.pdf", 1, 9),
            trec_hit("a b.pdf", 3, 8),
            trec_hit("a b.pdf", 3, 7, 50),
            trec_hit("notes.txt", None, 7),
        ),
    ),
    Trace(TREC_QUESTIONS[2], ranked=(trec_hit("öl.txt", None, 0.5),)),
]


def test_ir_measures_reads_what_was_found(tmp_path: Path) -> None:
    write_qrels(tmp_path / "qrels", qrels_of(TREC_QUESTIONS))
    write_run(tmp_path / "run", run_of(TRACES), "my run")
    qrels = ir_measures.read_trec_qrels(str(tmp_path / "qrels"))
    run = ir_measures.read_trec_run(str(tmp_path / "run"))
    found = ir_measures.calc_aggregate([ir_measures.RR, ir_measures.R @ 3], qrels, run)
    assert found == {ir_measures.RR: (1 / 2 + 1) / 2, ir_measures.R @ 3: 1.0}


@pytest.mark.slow
def test_ranx_reads_it_too(tmp_path: Path) -> None:
    ranx = pytest.importorskip("ranx")
    write_qrels(tmp_path / "qrels.txt", qrels_of(TREC_QUESTIONS))
    write_run(tmp_path / "run.txt", run_of(TRACES), "mine")
    qrels = ranx.Qrels.from_file(str(tmp_path / "qrels.txt"), kind="trec")
    run = ranx.Run.from_file(str(tmp_path / "run.txt"), kind="trec")
    assert ranx.evaluate(qrels, run, "mrr") == pytest.approx(3 / 4)


def test_topics_are_written(tmp_path: Path) -> None:
    write_topics(tmp_path / "topics", TREC_QUESTIONS)
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
    hits = (trec_hit("a.pdf", 7, 9), trec_hit("b.pdf", 2, 8), trec_hit("a.pdf", 1, 7))
    assert qrels_of([question]) == {"q": {"a.pdf": 1, "b.pdf#p2": 1}}
    assert list(run_of([Trace(question, ranked=hits)])["q"]) == ["a.pdf", "b.pdf#p2"]


QRELS = {"q1": {"a": 2, "b": 1, "c": 0, "d": 3}, "q2": {"b": 1, "d": 0}}
RUN = ["c", "b", "a", "e", "d"]


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("".join(f'{{"_id": "{d}", "text": "What {d} says."}}\n' for d in "abcde"))
    (folder / "queries.jsonl").write_text("".join(f'{{"_id": "{q}", "text": "Why {q}?"}}\n' for q in QRELS))
    lines = [f"{q}\t{d}\t{grade}\n" for q, judged in QRELS.items() for d, grade in judged.items()]
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    return folder


def hit(source: str, score: float = 1.0, page: int | None = None) -> Hit:
    return Hit(f"{source}/0", f"{source}/0", source, page, 0, 10, score)


def graded(question: Question) -> dict[str, int]:
    return {item.source.removesuffix(".txt"): item.grade for item in (*question.evidence, *question.not_relevant)}


def score(metric: str, trace: Trace) -> float | None:
    (found,) = evaluate([trace], [metric])
    return found.value


def test_grades_come_in_and_go_out_as_they_were(beir: Path, tmp_path: Path) -> None:
    dataset, problems = import_dataset("beir", beir, tmp_path / "graded")
    assert problems == []
    assert {question.question_id: graded(question) for question in dataset.questions} == QRELS
    assert [item.source for item in dataset.questions[0].not_relevant] == ["c.txt"]
    export_dataset(dataset, "beir", tmp_path / "beir")
    back, _ = import_dataset("beir", tmp_path / "beir", tmp_path / "back")
    judged = {question.question_id: graded(question) for question in back.questions}
    assert {asked: {d[0]: g for d, g in own.items()} for asked, own in judged.items()} == QRELS


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 3, 5])
def test_ndcg_counts_grades_as_other_programs_do(beir: Path, tmp_path: Path, k: int) -> None:
    dataset, _ = import_dataset("beir", beir, tmp_path / "graded")
    question = dataset.questions[0]
    trace = Trace(question, ranked=tuple(hit(f"{name}.txt", -rank) for rank, name in enumerate(RUN)))
    gains = [QRELS["q1"].get(name, 0) / math.log2(rank + 2) for rank, name in enumerate(RUN[:k])]
    ideal = [grade / math.log2(rank + 2) for rank, grade in enumerate([3, 2, 1][:k])]
    assert score(f"retrieval.ndcg@{k}", trace) == pytest.approx(sum(gains) / sum(ideal))
    qrels = {"q1": {name: int(grade) for name, grade in qrels_of([question])["q1"].items()}}
    theirs = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run_of([trace])), f"ndcg@{k}")
    assert score(f"retrieval.ndcg@{k}", trace) == pytest.approx(theirs)
    assert score(f"retrieval.recall@{k}", trace) == pytest.approx(sum(name in "abd" for name in RUN[:k]) / 3)


def test_a_copy_is_found_in_place_of_the_file_that_evidence_names(tmp_path: Path) -> None:
    path = write_dataset(tmp_path)
    text = (path / "corpus/oven.txt").read_bytes()
    (path / "corpus/again.txt").write_bytes(text.replace(b"\n", b"\r\n") + b"\n")  # other bytes, the same text
    dataset = Dataset.load(path)
    index = open_index(
        dataset.corpus_dir, CorpusConfig(), HashEmbedder(), home=tmp_path / "home", store=StoreConfig(name="exact")
    )
    (question,), _ = locate_all(index, [dataset.questions[1]])
    assert question.evidence[0].copies == ("again.txt",)
    ranked = (hit("canteen.txt"), replaced("again.txt"), replaced("oven.txt"))
    trace = Trace(question, ranked=ranked)
    assert score("retrieval.mrr@10", trace) == 0.5
    assert score("retrieval.precision@2", trace) == 0.5
    assert score("retrieval.precision@3", trace) == pytest.approx(1 / 3)
    assert score("retrieval.ndcg@3", trace) == pytest.approx(1 / math.log2(3))
    assert list(run_of([trace])["q2"]) == ["canteen.txt", "oven.txt"]


def replaced(source: str) -> Hit:
    return Hit(f"{source}/0", f"{source}/0", source, None, 0, 500, 1.0)


def test_a_copy_that_the_asker_may_not_see_is_not_named(tmp_path: Path) -> None:
    path = write_dataset(tmp_path)
    (path / "corpus/south").mkdir()
    shutil.copy(path / "corpus/oven.txt", path / "corpus/south/oven.txt")
    (path / "attributes.yaml").write_text(
        "- {files: oven.txt, namespace: north}\n- {files: 'south/*', namespace: south}"
    )
    dataset = Dataset.load(path)
    index: Any = open_index(
        dataset.corpus_dir, CorpusConfig(), HashEmbedder(), home=tmp_path / "home", store=StoreConfig(name="exact")
    )
    asked = Question("q", "?", evidence=(Evidence("oven.txt", quote="Alarm A7 means"),), namespace="north")
    (question,), _ = locate_all(index, [asked])
    assert question.evidence[0].copies == ()
