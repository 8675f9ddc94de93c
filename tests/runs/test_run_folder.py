"""A run is known by the same name from wherever its folder is seen, and no two runs by one."""

import json

import pytest

from rag_lab.errors import DamagedFile, RagLabError
from rag_lab.records import Question, Score, Trace
from rag_lab.runs.omissions import NOT_INDEXED
from rag_lab.runs.run_folder import RunFolder, VariantPlan, known_name, run_name, strict_json, write_json
from rag_lab.runs.variant_files import write_scores, write_traces


@pytest.fixture
def run(tmp_path):
    variants = (VariantPlan("baseline", "baseline", {}), VariantPlan("final_k-3", "final_k = 3", {"rerank.final_k": 3}))
    asked, answered = ("a", "b"), ("a",)
    run = RunFolder(
        tmp_path / "run", "n", "q?", "d", "baseline", ("cost.seconds",), 2, variants, asked, answered, "document"
    )
    run.write_plan()
    return run


def test_what_is_written_is_opened(run):
    assert RunFolder.open(run.path) == run
    assert RunFolder.open(str(run.path)) == run


@pytest.mark.parametrize("repeats", ["Infinity", "[" * 100_000])
def test_a_plan_with_numbers_without_end_or_far_too_deep_is_none(run, repeats):
    path = run.path / "plan.json"
    path.write_text(path.read_text().replace('"repeats": 2', f'"repeats": {repeats}'))
    with pytest.raises(RagLabError, match=r"its plan\.json is not a plan"):
        RunFolder.open(run.path)


def test_traces_of_a_variant_that_has_not_run_are_none(run):
    assert run.traces("baseline") == []
    run.variant_dir("baseline").mkdir(parents=True)
    traces = [Trace(Question(name, "why?"), repeat) for repeat in (0, 1) for name in "ab"]
    write_traces(run.variant_dir("baseline") / "traces.jsonl", traces)
    assert run.traces("baseline") == traces


def test_traces_that_are_missing_or_cut_are_said(run):
    path = run.variant_dir("baseline") / "traces.jsonl"
    path.parent.mkdir(parents=True)
    write_traces(path, [Trace(Question("a", "why?"))] * 3)
    with pytest.raises(DamagedFile, match=r"traces\.jsonl is damaged \(it holds 3 traces where 4 are planned\); start"):
        run.traces("baseline")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DamagedFile, match="line 3 is no trace"):
        run.traces("baseline")


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"a":' * 100_000, '{"seconds": Infinity}'])
def test_a_manifest_that_is_none_is_said(run, content):
    (run.path / "manifest.json").write_text(content)
    with pytest.raises(DamagedFile, match=r"manifest\.json is damaged \(it holds no JSON object\)"):
        run.manifest()


def test_scores_that_are_none_or_of_another_plan_are_said(run):
    (run.path / "scores.parquet").write_bytes(b"PAR1")
    with pytest.raises(DamagedFile, match="it holds no scores"):
        run.scores()
    write_scores(run.path / "scores.parquet", {"removed": [Score("a", "cost.seconds", 0, 1.0, "scored")]})
    with pytest.raises(DamagedFile, match="scores of removed, which is none of the variants planned"):
        run.scores()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"variants": []}, "none of its 0 variants"),
        ({"metrics": ["m"] * 501}, "has 501 metrics, where 500 are the most"),
        ({"questions": ["q" * 1_000_000]}, "has a name of 1,000,000 characters, where 250 are the most"),
        ({"questions": [7]}, "is not a plan"),
        ({"baseline": "gone"}, "'gone', is none of its 2 variants"),
        ({"left_out": [8]}, "is not a plan"),
        ({"left_out": "8"}, "is not a plan"),
        ({"variants": [{"variant_id": "baseline", "label": "", "changes": {}}] * 2}, "only 1 have a name of their own"),
    ],
)
def test_a_plan_that_cannot_be_is_one_sentence(run, change, said):
    plan = json.loads((run.path / "plan.json").read_text()) | change
    (run.path / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(RagLabError, match=f"is no run folder: .*{said}"):
        RunFolder.open(run.path)


def test_an_unfinished_run_has_no_manifest_and_may_have_no_scores(run):
    assert run.manifest() == {}
    with pytest.raises(RagLabError, match=r"scores\.parquet"):
        run.scores()
    write_json(run.path / "manifest.json", {"name": "n"})
    assert run.manifest() == {"name": "n"}


@pytest.mark.parametrize("content", [None, "", "[]", "{}", "nonsense", json.dumps({"name": "n", "variants": 3})])
def test_what_is_no_run_folder_is_one_sentence(tmp_path, content):
    if content is not None:
        (tmp_path / "plan.json").write_text(content)
    with pytest.raises(RagLabError, match="is no run folder"):
        RunFolder.open(tmp_path)
    with pytest.raises(RagLabError, match="no such folder"):
        RunFolder.open(tmp_path / "missing")


def test_what_was_declared_is_read_back(tmp_path):
    variants = (VariantPlan("a", "a"), VariantPlan("b", "b"), VariantPlan("c", "c"))
    run = RunFolder(
        tmp_path, "n", "q", "d", "a", ("m",), 1, variants, design="list", pairs=(("c", "b"),), margins={"m": 0.05},
        post_hoc_margins=("m",), strict=True,
    )  # fmt: skip
    run.write_plan()
    assert RunFolder.open(tmp_path) == run


def test_an_older_plan_declares_each_variant_against_the_baseline(tmp_path):
    variants = (VariantPlan("a", "a"), VariantPlan("b", "b"), VariantPlan("c", "c"))
    RunFolder(tmp_path, "n", "q", "d", "b", (), 1, variants).write_plan()
    plan = json.loads((tmp_path / "plan.json").read_text())
    for name in ("design", "pairs", "margins", "post_hoc_margins", "strict"):
        del plan[name]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    found = RunFolder.open(tmp_path)
    assert found.pairs == (("a", "b"), ("c", "b"))
    assert (found.design, found.margins, found.post_hoc_margins, found.strict) == ("", {}, (), False)


def test_a_pair_of_a_stranger_is_no_plan(tmp_path):
    RunFolder(tmp_path, "n", "q", "d", "a", (), 1, (VariantPlan("a", "a"),), pairs=(("z", "a"),)).write_plan()
    with pytest.raises(RagLabError, match="names 'z', which is none of its 1 variants"):
        RunFolder.open(tmp_path)


def test_what_is_not_indexed_is_read_from_the_record_where_it_says_it_and_is_no_damaged_value(run):
    variant_id = run.variants[0].variant_id
    folder = run.variant_dir(variant_id)
    folder.mkdir(parents=True, exist_ok=True)
    assert run.recorded(variant_id, *NOT_INDEXED) is None
    write_json(folder / "record.json", {"traces": 1})
    assert run.recorded(variant_id, *NOT_INDEXED) is None
    write_json(folder / "record.json", {"not_indexed": {"q1": [0, 2]}})
    assert run.recorded(variant_id, *NOT_INDEXED) == {"q1": [0, 2]}
    for damaged in (["q1"], {"q1": 0}, {"q1": ["first"]}, "q1"):
        write_json(folder / "record.json", {"not_indexed": damaged})
        with pytest.raises(DamagedFile, match="not indexed"):
            run.recorded(variant_id, *NOT_INDEXED)


def test_a_name_stays_with_the_folder_and_two_folders_of_one_name_differ(tmp_path):
    for folder in ("a/my run", "b/my run"):
        (tmp_path / folder).mkdir(parents=True)
    assert known_name(tmp_path / "a/my run") == ""
    first = run_name(tmp_path / "a/my run")
    assert first.startswith("my_run-")
    assert first != run_name(tmp_path / "b/my run")
    (tmp_path / "a/my run").rename(tmp_path / "moved")
    assert run_name(tmp_path / "moved") == known_name(tmp_path / "moved") == first


def test_json_as_we_write_it_is_read():
    assert strict_json(b'{"a": [1, -2.5, true, null, "Infinity"], "b": 1764000000000000000}') == {
        "a": [1, -2.5, True, None, "Infinity"],
        "b": 1_764_000_000_000_000_000,
    }


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "Infinity", "-1e999", "NaN", "9" * 5000, "1e308"])
def test_what_is_too_deep_or_no_number_is_a_fault_like_any_other(text):
    with pytest.raises(ValueError):
        strict_json(f'{{"repeats": {text}}}')
