import csv
import io
import re
import shutil
from dataclasses import replace

import pandas as pd
import pytest

from rag_lab.comparison.across import compare_runs
from rag_lab.comparison.findings.conclusions import conclusions
from rag_lab.errors import RagLabError
from rag_lab.records import Answer, Citation, Passage
from rag_lab.report.compare_text import compare_text
from rag_lab.report.page.report_page import question_html, to_html
from rag_lab.report.shown_comparison import compare
from rag_lab.report.table import Table
from rag_lab.runs.run_folder import MANIFEST_FILE, SCORES_FILE, RunFolder, read_json, write_json
from rag_lab.runs.run_manifest import manifest_diff, suspects
from rag_lab.runs.variant_files import read_traces, write_traces


@pytest.fixture
def twins(wide, tmp_path):
    """Two copies of one run of 40 questions."""
    for name in ("monday", "tuesday"):
        shutil.copytree(wide.run.path, tmp_path / name)
    return tmp_path / "monday", tmp_path / "tuesday"


def edit_manifest(path, change):
    manifest = read_json(path / MANIFEST_FILE)
    change(manifest)
    write_json(path / MANIFEST_FILE, manifest)


def edit_scores(path, change):
    scores = change(pd.read_parquet(path / SCORES_FILE))
    scores.to_parquet(path / SCORES_FILE, index=False)


def test_two_runs_of_the_same_name_no_winner_and_no_suspect(twins):
    found = compare_runs(*twins)
    assert len(found.shared.questions) == 40
    assert set(found.same["difference"]) == {0}
    assert not set(found.same["verdict"]) & {"better", "worse"}
    assert found.changes == ()
    assert "no difference" in found.sentences[-1]
    assert set(found.summary["variant_id"]) >= {"monday/baseline", "tuesday/baseline"}


def test_differences_across_runs_are_those_of_the_shared_questions(twins):
    def better_and_fewer(scores):
        is_main = (scores["metric"] == "retrieval.ndcg@10") & (scores["variant_id"] == "baseline")
        scores.loc[is_main, "value"] = (scores.loc[is_main, "value"] + 0.25).where(scores["status"] == "scored")
        return scores[scores["question_id"] > "q010"]

    edit_scores(twins[1], better_and_fewer)
    found = compare_runs(*twins)
    assert len(found.shared.questions) == 30
    row = found.same[(found.same["variant_id"] == "tuesday/baseline") & (found.same["metric"] == "retrieval.ndcg@10")]
    assert row["difference"].item() == pytest.approx(0.25)
    assert row["verdict"].item() == "better"
    against = found.differences.set_index(["variant_id", "metric"])["difference"]
    assert against["tuesday/baseline", "retrieval.ndcg@10"] == pytest.approx(0.25)
    assert found.label("tuesday/baseline") == "tuesday: baseline"


def test_answers_that_changed_are_shown_and_those_whose_words_are_gone_are_out_of_date(twins):
    def revised(path, text, words, n):
        traces_file = path / "variants/baseline/traces.jsonl"
        traces = read_traces(traces_file)
        passage = Passage(1, "die.md#1", "die.md", None, 0, len(words), words)
        answer = Answer(text, (Citation(1, "die.md", None, words.partition(";")[0]),))
        write_traces(traces_file, [replace(one, answer=answer, passages=(passage,)) for one in traces[:n]] + traces[n:])

    revised(twins[0], "30,000 shots", "die life\n30,000 shots; cold", 2)
    revised(twins[1], "26,000 shots", "die life 26,000 shots; cold", 1)
    found = compare_runs(*twins)
    assert [one[2:] for one in found.changed_answers if one[-1]] == [("30,000 shots", "26,000 shots", "die.md")]
    assert "1 of those before cite words that stand in their file no more" in " ".join(found.sentences)
    assert "30,000 shots" in compare_text(*twins, only=["answers"])


def test_runs_that_share_no_question_are_refused(twins):
    edit_scores(twins[1], lambda scores: scores.assign(question_id="other"))
    with pytest.raises(RagLabError, match="share no question"):
        compare_runs(*twins)


def edit_questions(path, change):
    """Rewrite the questions of every variant's traces."""
    for file in path.glob("variants/*/traces.jsonl"):
        write_traces(file, [replace(trace, question=change(trace.question)) for trace in read_traces(file)])


def edit_plan(path, **changes):
    replace(RunFolder.open(path), **changes).write_plan()


def test_an_id_that_stands_for_another_question_is_left_out_and_said(twins):
    edit_questions(twins[1], lambda one: replace(one, text="Another?") if one.question_id < "q005" else one)
    found = compare_runs(*twins)
    assert found.shared.others == ("q001", "q002", "q003", "q004")
    assert not found.scores["question_id"].isin(found.shared.others).any()
    assert "share 36 of 40 and 40 questions" in found.sentences[0]
    assert found.sentences[1].startswith("Under 4 ids the runs ask different questions, which are left out: q001, q002")


def test_runs_whose_ids_are_the_same_and_questions_are_not_are_refused(twins):
    edit_questions(twins[1], lambda one: replace(one, text=f"{one.text} Or not?"))
    with pytest.raises(RagLabError, match=r"share no question \(40 ids in both, but for different questions\)"):
        compare_runs(*twins)


def test_a_rule_for_clusters_that_one_run_declares_holds_for_both_in_any_order(twins):
    edit_plan(twins[1], clusters="document")
    found, turned = compare_runs(*twins), compare_runs(*reversed(twins))
    assert found.shared.rule == turned.shared.rule == "document"
    assert found.shared.clusters == turned.shared.clusters
    assert [change.what for change in found.changes] == ["plan: clusters"]
    assert "plan" in found.sentences[-1]
    for one in (found, turned):
        assert any("questions are in 5 clusters (document)" in told for told in one.sentences)
        assert any("Only tuesday declares this." in told for told in one.sentences)
    columns = ["metric", "low", "high"]
    for name in ("monday/baseline", "tuesday/baseline"):
        tables = [one.summary[one.summary["variant_id"] == name][columns] for one in (found, turned)]
        pd.testing.assert_frame_equal(*(table.reset_index(drop=True) for table in tables))


def test_the_same_rule_for_clusters_is_used_as_the_run_does_that_makes_fewer_units(twins):
    for path in twins:
        edit_plan(path, clusters="tag:item-")
    edit_questions(twins[0], lambda one: replace(one, tags=(f"item-{one.question_id}",)))
    edit_questions(twins[1], lambda one: replace(one, tags=(f"item-{int(one.question_id[1:]) % 4}",)))
    assert len(set(compare_runs(*twins).shared.clusters.values())) == 4
    assert len(set(compare_runs(*reversed(twins)).shared.clusters.values())) == 4


def test_runs_with_different_rules_for_clusters_are_refused(twins):
    edit_plan(twins[0], clusters="document")
    edit_plan(twins[1], clusters="tag:item-")
    with pytest.raises(RagLabError, match=r"`clusters: document` and .*`clusters: tag:item-`"):
        compare_runs(*twins)


def test_the_changed_lines_are_named_and_nothing_else(twins):
    def change(manifest):
        manifest |= {"commit": "f" * 40, "end": "later"}
        manifest["versions"]["torch"] = "2.14.0"
        manifest["models"]["generation"]["quantization"] = "Q8_0"
        manifest["dataset"]["digest"] = "sha256:00"
        manifest["variants"]["baseline"] |= {"seconds": 99, "config_identity": "abc"}

    edit_manifest(twins[1], change)
    found = {line.what: (line.first, line.second) for line in manifest_diff(*map(RunFolder.open, twins))}
    assert set(found) == {
        "variant baseline: configuration",
        "dataset: digest",
        "models: generation.quantization",
        "commit: commit",
        "versions: torch",
    }
    assert found["versions: torch"] == ("2.13.0", "2.14.0")
    sentence = suspects(manifest_diff(*map(RunFolder.open, twins)))
    assert "variant baseline, dataset, models, commit, versions" in sentence


def test_latex_is_balanced_escaped_and_has_booktabs_rules(comparison):
    latex = comparison.to_latex()
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") >= 2
    assert latex.count(r"\toprule") == latex.count(r"\bottomrule") == latex.count(r"\begin{table}")
    assert not re.search(r"(?<!\\)[_%#]", latex)
    columns = re.search(r"\\begin{tabular}{(\w+)}", latex)[1]
    body = latex.partition(r"\midrule")[2].partition(r"\bottomrule")[0].strip().splitlines()
    assert all(len(re.findall(r"(?<!\\)&", row)) == len(columns) - 1 and row.endswith(r"\\") for row in body)


def test_a_cell_cannot_break_a_table():
    table = Table("50% & more", ("a_b", "n"), (("x|y\n<b>", "−1"), (r"\end{table} $", "2")))
    assert r"50\% \& more" in table.to_latex()
    assert r"\textbackslash{}end\{table\} \$" in table.to_latex()
    assert r"| x\|y &lt;b&gt; | −1 |" in table.to_markdown()
    assert len(table.to_text().splitlines()) == 4


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_every_format_tells_scores_differences_and_failures(wide, form):
    told = compare_text(wide.run.path, form=form)
    flat = told.replace("\\", "")
    for said in ("retrieval.ndcg@10", "rerank.name=query_likelihood", "is not on this machine", "40"):
        assert said in flat, said


def test_csv_has_one_row_a_variant_and_metric(wide, twins):
    rows = list(csv.DictReader(io.StringIO(compare_text(wide.run.path, form="csv"))))
    assert len(rows) == len(wide.summary)
    assert {"mean", "low", "high", "scored", "difference", "low_of_difference", "verdict"} <= set(rows[0])
    both = list(csv.DictReader(io.StringIO(compare_text(*twins, form="csv"))))
    assert len(both) == 2 * len(rows)


def test_the_command_prints_and_refuses(wide, twins, monkeypatch, capsys):
    import sys

    from rag_lab import cli

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["rag-lab", "compare", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    status, out, _ = run(wide.run.path, "--all")
    assert (status, out) == (0, compare_text(wide.run.path))
    status, out, _ = run(*twins, "--format", "markdown")
    assert status == 0
    assert "monday: baseline" in out
    status, out, err = run(wide.run.path, "--format", "html")
    assert (status, out) == (2, "")
    assert "text" in err


def test_a_variant_stopped_by_a_limit_stands_among_those_without_scores(wide, tmp_path):
    shutil.copytree(wide.run.path, tmp_path / "run")
    reason = "stopped by limits.calls = 3; raise it"
    failed = next(iter(wide.failed))
    edit_manifest(tmp_path / "run", lambda m: m["variants"][failed].update(status="stopped", reason=reason))
    found = compare(tmp_path / "run")
    assert found.failed == {failed: reason}
    code = found.codes[failed]
    told = f"{code} ({found.label(failed)}) was stopped by a limit and is not compared."
    assert told in conclusions(found)
    assert re.search(rf"^\| {code} .*\| stopped \|", found.to_markdown(), re.MULTILINE)
    assert reason in to_html(found)
    assert not re.search(rf"failed:(</span>)? {reason}", to_html(found))
    assert "What failed" not in found.to_markdown()
    assert f"{found.label(failed)} (stopped)" in question_html(found, "q001")
