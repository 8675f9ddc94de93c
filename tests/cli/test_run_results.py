"""How a run stands, for people and for programs."""

import json

from run_folder_fixture import build_run


def test_the_status_of_a_run_for_people_and_for_programs(rag_lab, tmp_path):
    run = build_run(tmp_path / "run", questions=4)
    status, out, _ = rag_lab("status", run.path)
    assert status == 1  # a variant has failed
    assert "reranker_and_hyde: finished" in out
    assert out.count(" ok ") == 3 and "failed" in out
    read = json.loads(rag_lab("status", run.path, "--json", "--watch")[1])
    assert (read["state"], len(read["variants"]), read["rounds"]) == ("finished", 4, [])


def test_a_run_in_which_nothing_failed_exits_with_0(rag_lab, tmp_path):
    run = build_run(tmp_path / "run", questions=4, variants=2)
    manifest = run.manifest()
    for state in manifest["variants"].values():
        state["failed_stages"] = {}
    (run.path / "manifest.json").write_text(json.dumps(manifest))
    assert rag_lab("status", run.path)[0] == 0


def test_without_a_run_all_in_results_are_listed(rag_lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert rag_lab("status")[1] == "There are no runs in results/ here.\n"
    build_run(tmp_path / "results" / "one", questions=4)
    (tmp_path / "results" / "two").mkdir()
    (tmp_path / "results" / "two" / "plan.json").write_text("{")
    status, out, _ = rag_lab("status")
    assert status == 0 and "results/one  finished  4 of 4" in out and "results/two  damaged" in out
    assert [run["run"] for run in json.loads(rag_lab("status", "--json")[1])] == ["results/two", "results/one"]
