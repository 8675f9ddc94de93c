"""The counts of the waterfall: they add up, by variant and class, and say what moved; runs say what they recorded."""

import numpy as np
import pytest
from factories import asked, trace_of
from small_dataset import write_dataset
from synthetic_run import MAIN, write_run

from rag_lab import Pipeline, compare
from rag_lab.comparison.comparison import read_comparison
from rag_lab.comparison.tables.evidence import NO_CLASS, STATES
from rag_lab.runs.run_folder import RunFolder, write_json
from rag_lab.runs.variant_files import write_traces


@pytest.fixture
def run(tmp_path):
    """Builds a run: variant to the state of each question's first piece; question 2 has three, question 3 none."""

    def build(states, classes=("specific", "fuzzy", "fuzzy", None), recorded=(), repeats=1):
        n = len(classes)
        scores = {name: np.zeros((repeats, n)) for name in states}
        made = write_run(tmp_path / "run", {name: {} for name in states}, {MAIN: scores})
        items = [1, 1, 3, 0]
        for name, ends in states.items():
            questions = [asked(number, items[number], classes[number]) for number in range(n)]
            traces = [
                trace_of(one, repeat, state)
                for repeat in range(repeats)
                for one, state in zip(questions, ends, strict=True)
            ]
            write_traces(made.variant_dir(name) / "traces.jsonl", traces)
            if name in recorded:
                write_json(made.variant_dir(name) / "record.json", {"not_indexed": {"q2": [1]}})
        return read_comparison(made.path).evidence

    return build


BOTH = {"base": ["used", "merging", "not_found", "used"], "other": ["used", "used", "reranking", "used"]}


def counts(table, **where):
    for column, value in where.items():
        table = table[table[column] == value]
    (row,) = table.to_dict("records")
    return {state: row[state] for state in STATES if row[state]}


def test_counts_by_variant_and_class_add_up_to_the_labelled_pieces(run):
    found = run(BOTH, recorded=BOTH, repeats=2)
    assert list(found.by_variant["items"]) == [10, 10]  # five pieces, asked twice
    assert (found.by_variant[list(STATES)].sum(axis=1) == found.by_variant["items"]).all()
    by_class = found.by_class.groupby("variant_id")[["items", *STATES]].sum()
    assert (by_class.to_numpy() == found.by_variant.set_index("variant_id").to_numpy()).all()
    assert counts(found.by_variant, variant_id="base") == {"not_indexed": 2, "not_found": 4, "merging": 2, "used": 2}
    assert counts(found.by_class, variant_id="other", query_class="specific") == {"used": 2}
    assert found.states == ("not_indexed", "not_found", "merging", "reranking", "used")


def test_what_moved_is_told_from_the_state_under_the_baseline_the_most_first(run):
    found = run(BOTH, recorded=BOTH, repeats=3)
    moved = found.moved.to_dict("records")
    assert moved == [
        {"variant_id": "other", "before": "not_found", "after": "reranking", "items": 3},
        {"variant_id": "other", "before": "merging", "after": "used", "items": 3},
    ]
    changed = {state: counts(found.by_variant, variant_id="other").get(state, 0) for state in STATES}
    before = counts(found.by_variant, variant_id="base")
    for state in STATES:
        net = sum(row["items"] * ((row["after"] == state) - (row["before"] == state)) for row in moved)
        assert changed[state] == before.get(state, 0) + net


def test_what_was_cut_off_is_counted_beside_what_stood_too_deep(run):
    found = run({"base": ["budget", "used", "budget", "used"], "other": ["used"] * 4}, recorded=BOTH)
    assert found.cut == {"base": (2, 2)}
    assert list(found.items.loc[found.items["cut"], "question_id"]) == ["q0", "q2"]


def test_a_run_that_did_not_record_its_index_says_so_and_counts_what_was_not_found(run):
    found = run(BOTH, recorded=("base",))
    assert found.unrecorded == ("other",)
    assert counts(found.by_variant, variant_id="base") == {"not_indexed": 1, "not_found": 2, "merging": 1, "used": 1}
    assert counts(found.by_variant, variant_id="other") == {"not_found": 2, "reranking": 1, "used": 2}


def test_without_classes_there_is_no_table_by_class(run):
    assert run(BOTH, classes=(None,) * 4).by_class.empty


def test_a_question_without_a_class_stands_beside_those_that_have_one(run):
    assert set(run(BOTH, classes=("fuzzy", None, "fuzzy", None)).by_class["query_class"]) == {"fuzzy", NO_CLASS}


def test_without_evidence_and_without_a_baseline_nothing_is_told(run, tmp_path):
    none = run({"base": ["used"], "other": ["used"]}, classes=(None,))
    assert not none.items.empty
    lines = tmp_path / "run" / "variants" / "base" / "traces.jsonl"
    lines.unlink()
    alone = read_comparison(tmp_path / "run").evidence
    assert list(alone.by_variant["variant_id"]) == ["other"] and alone.moved.empty
    (tmp_path / "run" / "variants" / "other" / "traces.jsonl").unlink()
    empty = read_comparison(tmp_path / "run").evidence
    assert empty.items.empty and empty.by_variant.empty and empty.by_class.empty and empty.moved.empty
    assert empty.states == ()


def test_a_run_records_what_its_index_does_not_hold(tmp_path):
    path = write_dataset(tmp_path / "data")
    (path / "corpus" / "oven.txt").write_text(" ")
    base = Pipeline(path, home=tmp_path / "home").set(
        {"retrieval.mode": "bm25", "query.rewrite": "none", "query.hyde": "none", "answer.name": "none"}
    )
    found = compare({"base": base, "narrow": base.set("rerank.final_k", 1)}, ["retrieval.ndcg@5"], progress=False)
    assert RunFolder.open(found.run.path).not_indexed("base") == {"q2": [0]}
    assert found.evidence.unrecorded == ()
    assert counts(found.evidence.by_variant, variant_id="narrow")["not_indexed"] == 1
