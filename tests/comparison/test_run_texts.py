from __future__ import annotations

from pathlib import Path

from run_folder_fixture import build_run

from rag_lab.report.shown_comparison import compare
from rag_lab.runs.run_folder import PASSAGES_FILE, write_json


def test_a_trace_of_a_run_shows_the_texts_that_the_run_kept_and_those_that_other_variants_read(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", 6, 3)
    before = compare(run.path).traces["baseline"][1]
    unread = next(hit for hit in before.ranked if not before.text(hit))
    write_json(run.variant_dir("baseline") / PASSAGES_FILE, {unread.parent_id: "Kept <b>words</b>."})
    traces = compare(run.path).traces
    trace = traces["baseline"][1]
    assert trace.text(unread) == "Kept <b>words</b>."
    assert "Kept &lt;b&gt;words&lt;/b&gt;." in trace._repr_html_()
    read = {passage.parent_id for some in traces.values() for one in some for passage in one.passages}
    assert all(trace.text(hit) for hit in trace.ranked if hit.parent_id in read)


def test_a_run_that_kept_no_texts_is_compared_without(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", 3, 2)
    (trace, *_) = compare(run.path).traces["baseline"]
    assert len(trace.texts) > 0 and "no such place" not in trace.texts
