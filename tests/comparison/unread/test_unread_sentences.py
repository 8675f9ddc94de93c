"""Where variants were not cut alike, every place that a reader looks at says so: first screen, scores, sentences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from rag_lab.comparison.advice.module_rows import module_rows
from rag_lab.comparison.advice.recommendation import recommendation
from rag_lab.comparison.conclusions import topics
from rag_lab.comparison.read_comparison import read_comparison
from rag_lab.comparison.unread.unread_sentences import unread_told
from rag_lab.corpus.index.unread_children import UnreadChildren
from rag_lab.errors import DamagedFile
from rag_lab.models.limits.unread import Unread
from rag_lab.records import Hit, Question, StageRecord, Trace
from rag_lab.report.page.report_page import to_html
from rag_lab.report.shown_comparison import compare
from rag_lab.report.text.compare_screen import screen
from rag_lab.runs.run_folder import RECORD_FILE
from rag_lab.runs.trace_file import read_traces, write_traces
from rag_lab.runs.unread_record import UnreadRecord, unread_record

SIZES = {"small": {}, "large": {"corpus.chunk_size": 2000}}
CUT = {"small": Unread(256, 1000, 4, 800_000, 200_000, 200), "large": Unread(256, 100, 66, 200_000, 50_000, 16_000)}


@pytest.fixture
def ran(synthetic: ModuleType, tmp_path: Path) -> Any:
    """A run whose second variant is worse, and of which 66% of the chunks were cut."""
    values = np.linspace(0.2, 0.9, 40)
    run = synthetic.write_run(
        tmp_path / "run", SIZES, {synthetic.MAIN: {"small": values, "large": values - 0.1}}, design="one_at_a_time"
    )
    for name, chunks in CUT.items():
        record = UnreadRecord("sentence_transformers:minilm", chunks, 200, 150 if name == "large" else 0, 40, 0, 0)
        (run.variant_dir(name) / RECORD_FILE).write_text(json.dumps({"unread": record.to_json()}))
    return run


def test_a_difference_of_variants_that_were_not_cut_alike_is_no_fair_comparison(ran: Any) -> None:
    found = compare(ran.path)
    warning = (
        "Not a fair comparison: of B 66% against A 0.4% of the chunks, the embedding model read the beginning alone"
    )
    assert recommendation(found).reasons[0].startswith(warning)
    (row,) = [row for row in module_rows(found) if row.variant_id == "large"]
    assert row.why.startswith("or what was cut: 66% of its chunks were not read to their end, against 0.4%")
    assert topics(found)["Not read"] == [
        next(reason for reason in recommendation(found).reasons if reason.startswith(warning)),
        "A: 0.4% of the chunks are longer than minilm reads (256 tokens, here about 1,020 characters); what stands "
        "behind, 0.1% of the text, is not searched by meaning, and 0% of the passages at the ranks that a reader gets "
        "stand on such a chunk.",
        "B: 66% of the chunks are longer than minilm reads (256 tokens, here about 1,020 characters); what stands "
        "behind, 32% of the text, is not searched by meaning, and 75% of the passages at the ranks that a reader gets "
        "stand on such a chunk.",
    ]


def test_it_stands_beside_the_variant_wherever_a_report_is_read(ran: Any) -> None:
    found = compare(ran.path)
    page, text = to_html(found), found.to_markdown()
    assert page.count('<span class="sub warn">66% of chunks cut at 256 tokens</span>') >= 2  # first screen, scores
    assert '<span class="sub">0.4% of chunks cut at 256 tokens</span>' in page
    for shown in (text, " ".join(screen(found).split())):
        assert "Not a fair comparison: of B 66% against A 0.4% of the chunks" in shown
    assert "(66% of chunks cut at 256 tokens) |" in text


@pytest.mark.parametrize("cut", [4, 66])
def test_a_level_that_adds_less_than_the_margin_is_known_as_such_whatever_was_cut(
    synthetic: ModuleType, tmp_path: Path, cut: int
) -> None:
    random = np.random.default_rng(1)
    noise = {name: random.normal(0, 0.15, 300).clip(-0.4, 0.4) for name in synthetic.GRID}
    values = {name: 0.5 + 0.025 * ("query" in name) + noise[name] for name in synthetic.GRID}
    run = synthetic.write_run(tmp_path / "grid", synthetic.GRID, {synthetic.MAIN: values})
    for name in synthetic.GRID:
        chunks = Unread(256, 100, cut if "query" in name else 4, 200_000, 50_000, 16_000)
        record = UnreadRecord("sentence_transformers:minilm", chunks, 200, 0, 40, 0, 0)
        (run.variant_dir(name) / RECORD_FILE).write_text(json.dumps({"unread": record.to_json()}))
    found = read_comparison(run.path, margins={synthetic.MAIN: 0.3})
    dear = [4.0 if "query" in name else 1.0 for name in found.latency["variant_id"]]
    found = replace(found, latency=found.latency.assign(median_s=dear))
    (row,) = [row for row in module_rows(found) if row.factor == "rerank.name"]
    assert row.word == "better" and "but by less than 0.3" in row.why
    assert ("or what was cut" in row.why) == (cut == 66)
    assert row.is_lesser


def test_where_all_was_read_nothing_is_said(synthetic: ModuleType, tmp_path: Path) -> None:
    values = np.linspace(0.2, 0.9, 40)
    run = synthetic.write_run(tmp_path / "run", SIZES, {synthetic.MAIN: {"small": values, "large": values - 0.1}})
    for name in SIZES:
        record = UnreadRecord("sentence_transformers:minilm", Unread(256, 9, 0, 900, 300, 0), 200, 0, 40, 0, 0)
        (run.variant_dir(name) / RECORD_FILE).write_text(json.dumps({"unread": record.to_json()}))
    found = compare(run.path)
    assert found.unread == {} and unread_told(found) == [] and "Not read" not in topics(found)
    assert "cut at" not in to_html(found)


def test_what_a_stage_did_not_read_of_questions_is_told(synthetic: ModuleType, ran: Any) -> None:
    path = ran.variant_dir("large") / "traces.jsonl"
    cut = [
        replace(trace, stages=(*trace.stages, StageRecord("rerank", truncated_tokens=100 * (place < 10))))
        for place, trace in enumerate(read_traces(path))
    ]
    write_traces(path, cut)
    found = compare(ran.path)
    assert found.unread["large"].mark == (
        "66% of chunks cut at 256 tokens; reranking: not all read on 10 of 40 questions"
    )
    assert (
        "B: Reranking: its model did not read all that it was sent: 100 tokens on average, of 10 of 40 questions."
        in unread_told(found)
    )


def test_questions_that_were_cut_are_told_apart_from_the_chunks_that_they_found() -> None:
    def trace(tokens: int, *chunks: str) -> Trace:
        hits = tuple(Hit(name, name, "a.txt", None, 0, 1, 1.0) for name in chunks)
        stages = (StageRecord("search_dense", truncated_tokens=tokens), StageRecord("merge"))
        return Trace(Question("q", "?"), hits={"dense": hits}, ranked=hits, stages=stages)

    children = UnreadChildren(CUT["large"], {"a": 30, "b": 5})
    record = UnreadRecord.of("m", children, [trace(35, "a", "b"), trace(42, "c", "a"), trace(0, "c")], 1)
    assert (record.given, record.given_cut) == (3, 1)
    assert (record.asked, record.asked_cut, record.asked_tokens) == (3, 1, 12)


@pytest.mark.parametrize("damage", [{"model": "m"}, {"chunks": 3}, [1], {"chunks": {"limit": "x"}}])
def test_a_record_that_is_damaged_is_named(ran: Any, damage: Any) -> None:
    path = ran.variant_dir("large") / RECORD_FILE
    path.write_text(json.dumps({"unread": damage}))
    with pytest.raises(DamagedFile, match="record.json"):
        unread_record(ran, "large")
    path.write_text("{}")
    assert unread_record(ran, "large") is None
