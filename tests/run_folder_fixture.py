"""A realistic run folder: variants that differ, one that failed, fallbacks, failed scores, hostile text; or unlabelled.

Run it to look at a page: `python tests/run_folder_fixture.py DIR [questions] [variants]`.
"""

import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_lab.records import (
    QUERY_CLASSES,
    Answer,
    Citation,
    Evidence,
    Hit,
    Passage,
    Question,
    StageRecord,
    Trace,
)
from rag_lab.runs.run_folder import RunFolder, VariantPlan, write_json
from rag_lab.runs.variant_files import write_scores, write_traces

HOSTILE = '<script>alert("x")</script> & </details><img src=http://evil.example/x.png onerror=alert(1)>'
FAILED = "cross_encoder"
METRICS = ("retrieval.ndcg@10", "retrieval.evidence_recall@5", "ragas.semantic_similarity", "citations.precision")
COSTS = ("cost.seconds", "cost.tokens")
CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"rerank.name": "query_likelihood"},
    {"query.hyde": "always"},
    {"rerank.name": FAILED},
    {"query.rewrite": "none"},
    {"query.hyde": "none", "rerank.name": "query_likelihood"},
    {"retrieval.base_k": 40},
    {"rerank.final_k": 3},
    {"query.rewrite": "none", "query.hyde": "none"},
    {"corpus.chunk_size": 400, "corpus.chunk_overlap": 80},
    {"answer.context_tokens": 600},
    {"answer.temperature": 0.7},
)
TOPICS = (
    ("maintenance/press_p40.pdf", "hydraulic press P-40", "What is the torque of the ram bolts on the press P-40?"),
    ("maintenance/press_p42.pdf", "hydraulic press P-42", "How does the P-42 differ from the P-40 in lubrication?"),
    ("safety/solvent_sds.pdf", "solvent SX-7", "Something about what to do when the solvent gets into the eyes"),
    ("quality/qp_017_incoming.md", "incoming inspection", "How do I release a quarantined batch?"),
    ("minutes/2024_03_line2.txt", "line 2 meeting", "Suggest three ways to cut change-over time on line 2."),
)
TEXT = (
    "The {topic} is inspected every 500 operating hours. Tighten the ram bolts crosswise to 85 Nm, then check the seal "
    "for oil. A batch in quarantine is released by the quality engineer only, on form QF-17, after the second sample. "
    "Values given in revision C replace those of revision B. See section {number} for the spare parts list."
)


def build_run(path: Path, questions: int = 12, variants: int = 4, repeats: int = 1, seed: int = 7) -> RunFolder:
    """Write a run folder at `path` and return it. The fourth variant failed; the first question is hostile."""
    asked = [_question(index) for index in range(questions)]
    plans = tuple(_plan(CHANGES[index]) for index in range(variants))
    run = RunFolder(
        path=path,
        name="reranker_and_hyde",
        question="Does classified HyDE still help once a reranker sees the top 20?",
        dataset="plant_docs",
        baseline=plans[0].variant_id,
        metrics=(*METRICS, *COSTS),
        repeats=repeats,
        variants=plans,
        questions=tuple(question.question_id for question in asked),
        answered=tuple(question.question_id for question in asked),
    )
    run.write_plan()
    rows: list[dict[str, Any]] = []
    for index, plan in enumerate(plans):
        run.variant_dir(plan.variant_id).mkdir(parents=True)
        (run.variant_dir(plan.variant_id) / "notebook.ipynb").write_text("{}")
        if plan.changes.get("rerank.name") == FAILED:
            continue
        traces = [_trace(q, index, repeat, seed) for repeat in range(repeats) for q in asked]
        write_traces(run.variant_dir(plan.variant_id) / "traces.jsonl", traces)
        rows += [row for trace in traces for row in _scores(trace, plan.variant_id, index, seed)]
    _write_scores(path / "scores.parquet", rows)
    write_json(path / "manifest.json", _manifest(run, rows))
    return run


def _plan(changes: dict[str, Any]) -> VariantPlan:
    label = ", ".join(f"{key}={value}" for key, value in changes.items()) or "baseline"
    return VariantPlan(label.replace("=", "-").replace(", ", "_"), label, changes)


def _question(index: int) -> Question:
    source, topic, text = TOPICS[index % len(TOPICS)]
    evidence = (Evidence(source, 1 + index % 3, "85 Nm", 10, 200),)
    return Question(
        question_id=f"q{index + 1:03d}",
        text=HOSTILE if index == 0 else f"{text} ({index + 1})" if index >= len(TOPICS) else text,
        answers=(f"85 Nm, according to revision C of the manual of the {topic}.",),
        answerable=index % 9 != 8,
        query_class=QUERY_CLASSES[index % len(QUERY_CLASSES)],
        evidence=() if index % 9 == 8 else evidence,
    )


def _hits(question: Question, variant: int, seed: int) -> list[Hit]:
    order = random.Random(f"{seed} {question.question_id}")
    pool = [(source, page) for source, _, _ in TOPICS for page in (1, 2, 3, 4)]
    order.shuffle(pool)
    better = random.Random(f"{seed} {question.question_id} {variant}")
    gold = [(e.source, e.page) for e in question.evidence]
    skill = {1: 0.95, 5: 0.95}.get(variant, 0.45)
    if gold and better.random() < skill:
        pool.sort(key=lambda place: place not in gold)
    elif variant % 2:
        pool[2:6] = reversed(pool[2:6])
    return [
        Hit(f"{s}#p{p}", f"{s}#p{p}.0", s, p, 0, 900, 1 / rank, {"dense": 0.9 - rank / 50, "rrf": 1 / (60 + rank)})
        for rank, (s, p) in enumerate(pool[:14], 1)
    ]


def _trace(question: Question, variant: int, repeat: int, seed: int) -> Trace:
    chance = random.Random(f"{seed} {question.question_id} {variant} {repeat} trace")
    hits = tuple(_hits(question, variant, seed))
    passages = tuple(
        Passage(n, h.parent_id, h.source, h.page, h.start, h.end, TEXT.format(topic=h.source, number=n))
        for n, h in enumerate(hits[:5], 1)
    )
    refused = int(question.question_id[1:]) % 4 == 0 and variant != 4
    hyde = f"A manual would say: {question.text} The bolts take 85 Nm." if variant == 2 or refused else None
    trace = Trace(
        question=question,
        repeat=repeat,
        query_class="fuzzy" if refused else question.query_class,
        proposed_query="the weather in Bonn" if refused else f"{question.text} torque",
        hyde_suggested=True,
        search_query=question.text if refused or variant == 4 else f"{question.text} torque",
        hypothetical=hyde,
        base_hits=hits,
        hits={"hyde": hits[:4]} if hyde else {},
        candidates=hits,
        ranked=hits[:10],
        passages=passages,
        prompt="Answer from the passages and cite them.",
        stages=_stages(variant, refused, chance),
    )
    if int(question.question_id[1:]) % 7 == 0 and variant == 1:
        broken = StageRecord("parse", "failed", "the reply is no JSON object", 0.0001)
        return replace(trace, raw_text="{answer: 85 Nm", stages=(*trace.stages, broken))
    citations = (Citation(1, hits[0].source, hits[0].page, "85 Nm"),)
    answer = Answer(
        f"The ram bolts take 85 Nm [1].{' Revision C applies.' if variant == 1 else ''}",
        citations,
        ("[9]",) if refused else (),
        thinking="The passage says 85 Nm.",
        abstained=not question.answerable,
    )
    parsed = StageRecord("parse", seconds=0.0002)
    return replace(trace, raw_text='{"answer": "…"}', answer=answer, stages=(*trace.stages, parsed))


def _stages(variant: int, refused: bool, chance: random.Random) -> tuple[StageRecord, ...]:
    def about(value: float) -> float:
        return value * (0.8 + 0.4 * chance.random())

    drift = StageRecord("rewrite", "fallback", "the rewrite drifted (cosine 0.31 < 0.60)", about(0.01))
    return (
        StageRecord("understand", "ok", "", about(0.9), 410, 38, remembered=variant > 0),
        drift if refused else StageRecord("rewrite", "ok", "", about(0.01)),
        StageRecord("hyde", "ok", "", about(1.1) if variant == 2 else 0.0, 180 if variant == 2 else 0, 70),
        StageRecord("retrieve", "ok", "", about(0.02)),
        StageRecord("merge", "ok", "", about(0.0005)),
        StageRecord("rerank", "ok", "", about(9.0) if variant in (1, 5) else 0.0, 8800 if variant in (1, 5) else 0),
        StageRecord("context", "ok", "", about(0.003)),
        StageRecord("generate", "ok", "", about(1.4), 1180, 44),
    )


def _scores(trace: Trace, variant_id: str, variant: int, seed: int) -> list[dict[str, Any]]:
    chance = random.Random(f"{seed} {trace.question.question_id} {variant} {trace.repeat} score")
    gold = {(e.source, e.page) for e in trace.question.evidence}
    rank = next((r for r, hit in enumerate(trace.ranked, 1) if (hit.source, hit.page) in gold), None)
    values: dict[str, float | None] = {
        "retrieval.ndcg@10": 1 / rank if rank else 0.0,
        "retrieval.evidence_recall@5": float(rank is not None and rank <= 5),
        "ragas.semantic_similarity": 0.5 + 0.4 * chance.random(),
        "citations.precision": float(rank == 1),
        "cost.seconds": sum(record.seconds for record in trace.stages),
        "cost.tokens": float(sum(record.tokens_in + record.tokens_out for record in trace.stages)),
    }
    return [_row(trace, variant_id, metric, value, bool(gold)) for metric, value in values.items()]


def _row(trace: Trace, variant_id: str, metric: str, value: float | None, answerable: bool) -> dict[str, Any]:
    status, reason = "scored", ""
    if trace.failure and metric in METRICS[2:]:
        status, reason, value = "failed", f"no answer: {trace.failure.reason}", None
    elif not answerable and metric.startswith("retrieval."):
        status, reason, value = "not_applicable", "the question has no evidence", None
    return {
        "variant_id": variant_id,
        "question_id": trace.question.question_id,
        "metric": metric,
        "repeat": trace.repeat,
        "value": value,
        "status": status,
        "reason": reason,
        "judge": "",
        "seconds": 0.01,
        "calls": 0,
        "truncated_tokens": 0,
    }


def _write_scores(path: Path, rows: list[dict[str, Any]]) -> None:
    import pandas as pd

    table = pd.DataFrame(rows)
    table["value"] = table["value"].astype(float)
    table.to_parquet(path, index=False)


def _manifest(run: RunFolder, rows: list[dict[str, Any]]) -> dict[str, Any]:
    reason = "ModelError: BAAI/bge-reranker-v2-m3 is not on this machine; name a folder that holds it."
    failed = {"status": "failed", "reason": reason, "seconds": 1.2}
    finished = {"status": "ok", "reason": "", "seconds": 61.5}
    counts = {status: sum(row["status"] == status for row in rows) for status in ("scored", "failed", "not_applicable")}
    return {
        "name": run.name,
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "dirty": True,
        "start": "2026-11-21T20:00:00+00:00",
        "end": "2026-11-21T20:06:21+00:00",
        "dataset": {"name": "plant_docs", "digest": "sha256:" + "ab" * 32},
        "versions": {"python": "3.11.9", "rag_lab": "0.1.0", "ragas": "0.4.3", "torch": "2.13.0"},
        "seeds": [0],
        "models": {"generation": {"provider": "llamacpp", "name": "smollm2", "quantization": "Q4_1"}},
        "counts": counts,
        "problems": ["corpus/scan_07.pdf: the PDF holds images only; run it through OCR"],
        "variants": {
            plan.variant_id: failed if plan.changes.get("rerank.name") == FAILED else finished for plan in run.variants
        },
    }


if __name__ == "__main__":
    numbers = [int(value) for value in sys.argv[2:4]]
    build_run(Path(sys.argv[1]), *numbers)


def build_unlabelled(path: Path, questions: int = 12, variants: int = 4) -> RunFolder:
    """Write the run at `path` without evidence, answers and classes, measured by what it costs alone."""
    run = replace(build_run(path, questions, variants), metrics=COSTS)
    run.write_plan()
    for plan in run.variants:
        if run.has_traces(plan.variant_id):
            traces = [
                replace(
                    trace,
                    question=replace(trace.question, evidence=(), answers=(), answerable=True, query_class=None),
                )
                for trace in run.traces(plan.variant_id)
            ]
            write_traces(run.variant_dir(plan.variant_id) / "traces.jsonl", traces)
    scores = run.scores()
    write_scores(path / "scores.parquet", scores[scores["metric"].isin(COSTS)])
    return RunFolder.open(path)
