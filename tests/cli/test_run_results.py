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


def test_answers_are_drawn_rated_elsewhere_and_merged(rag_lab, tmp_path):
    run = build_run(tmp_path / "run", questions=30, variants=2)
    status, out, err = rag_lab("labels", "ask", run.path, "--n", 20)
    assert status == 0 and "B (rerank.name=query_likelihood) and A (baseline) are compared" in out
    assert "judged" in out and f"rag-lab open {run.path}" in err
    asked = json.loads((run.path / "labels_asked.json").read_text())
    assert len(asked["answers"]) <= asked["n"] == 20
    lines = [
        {"question_id": name, "shown": shown, "rating": "up", "by": "anna", "made": f"2026-01-01T00:00:{n:02}"}
        for n, (name, shown) in enumerate(asked["answers"])
    ]
    theirs = tmp_path / "anna.jsonl"
    theirs.write_text("".join(json.dumps(line) + "\n" for line in lines) + "{}\n")
    status, out, err = rag_lab("labels", "merge", run.path, theirs)
    assert status == 0 and out.startswith(f"{len(lines)} new ratings.")
    assert f"All {len(lines)} ratings of anna are up: were the answers read?" in out
    assert f"anna.jsonl, line {len(lines) + 1} is no rating" in err
    assert rag_lab("labels", "merge", run.path, theirs)[1].startswith("0 new ratings.")
    assert "labels and judge" in rag_lab("compare", run.path, "--table", "labels")[1]


def test_labels_of_nobody_and_of_what_is_not_there_are_refused(rag_lab, tmp_path):
    run = build_run(tmp_path / "run", questions=6, variants=2)
    assert "No such file" in rag_lab("labels", "merge", run.path, tmp_path / "none.jsonl")[2]
    assert "Unknown letter of a variant 'Z'" in rag_lab("labels", "ask", run.path, "--variants", "Z,A")[2]
    assert "takes two different letters" in rag_lab("labels", "ask", run.path, "--variants", "B")[2]
