import json

from run_folder_fixture import build_run
from typer.testing import CliRunner

from rag_lab.cli import app


def test_the_status_of_a_run_for_people_and_for_programs(tmp_path):
    run = build_run(tmp_path / "run", questions=4)
    told = CliRunner().invoke(app, ["status", str(run.path)])
    assert told.exit_code == 1  # a variant has failed
    assert "reranker_and_hyde: finished" in told.output
    assert told.output.count(" ok ") == 3 and "failed" in told.output
    read = json.loads(CliRunner().invoke(app, ["status", str(run.path), "--json", "--watch"]).output)
    assert (read["state"], len(read["variants"]), read["rounds"]) == ("finished", 4, [])


def test_a_run_in_which_nothing_failed_exits_with_0(tmp_path):
    run = build_run(tmp_path / "run", questions=4, variants=2)
    path = run.path / "manifest.json"
    manifest = json.loads(path.read_text())
    for state in manifest["variants"].values():
        state["failed_stages"] = {}
    path.write_text(json.dumps(manifest))
    assert CliRunner().invoke(app, ["status", str(run.path)]).exit_code == 0


def test_without_a_run_all_in_results_are_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["status"]).output == "There are no runs in results/ here.\n"
    build_run(tmp_path / "results" / "one", questions=4)
    (tmp_path / "results" / "two").mkdir()
    (tmp_path / "results" / "two" / "plan.json").write_text("{")
    listed = CliRunner().invoke(app, ["status"])
    assert listed.exit_code == 0
    assert "results/one  finished  4 of 4" in listed.output and "results/two  damaged" in listed.output
    assert [run["run"] for run in json.loads(CliRunner().invoke(app, ["status", "--json"]).output)] == [
        "results/two", "results/one",
    ]  # fmt: skip
