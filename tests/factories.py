"""Small values for tests: evidence, questions, hits, traces, samples and the effects of a design."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pandas as pd

from rag_lab.records import Answer, Citation, Evidence, Hit, Passage, Question, StageRecord, Trace
from rag_lab.statistics.effects import design_effects, effects_table, read_factors
from rag_lab.statistics.families import Options, Pairs, answers, differences_table, pairs_among, score_pairs
from rag_lab.statistics.intervals import Interval, PairedDifference, Sample, mean_intervals, paired_differences

SOURCE = "manuals/oven.pdf"
TEXT = "The oven is heated to 180 degrees before the first batch."


def make_evidence(page: int | None = 1, start: int | None = None, end: int | None = None, **changes: Any) -> Evidence:
    return Evidence(**({"source": SOURCE, "page": page, "start": start, "end": end, "context": TEXT} | changes))


def make_question(question_id: str = "q1", **changes: Any) -> Question:
    """An answerable question with one reference and one evidence item, page 1."""
    defaults = {"text": "How hot is the oven?", "answers": ("180 degrees",), "evidence": (make_evidence(),)}
    return Question(question_id, **(defaults | changes))


def make_hit(page: int | None = 1, start: int = 0, end: int = 100, source: str = SOURCE, score: float = 1.0) -> Hit:
    parent_id = f"{source}:{page}:{start}"
    return Hit(parent_id, f"{parent_id}:c", source, page, start, end, score)


def make_passage(number: int = 1, page: int | None = 1, text: str = TEXT, **changes: Any) -> Passage:
    place = {"parent_id": f"{SOURCE}:{page}:0", "source": SOURCE, "page": page, "start": 0, "end": 100}
    return Passage(number=number, text=text, **(place | changes))


def make_answer(text: str = "It is 180 degrees.", cites: tuple[int, ...] = (1,), **changes: Any) -> Answer:
    return Answer(text, tuple(Citation(number, SOURCE, 1) for number in cites), **changes)


def make_trace(question: Question | None = None, **changes: Any) -> Trace:
    """A trace that went well: one hit and one passage on the evidence, one cited answer."""
    stages = (
        StageRecord("rerank", seconds=0.5, tokens_in=10),
        StageRecord("context"),
        StageRecord("generate", seconds=1.5, tokens_in=100, tokens_out=20, cost_usd=0.25, remembered=True),
    )
    defaults = {"ranked": (make_hit(),), "passages": (make_passage(),), "answer": make_answer(), "stages": stages}
    return Trace(question or make_question(), **(defaults | changes))


def make_failed_trace(stage: str, reason: str = "out of memory", **changes: Any) -> Trace:
    """A trace that ended in `stage`; what that stage and later ones write is empty."""
    failed = (StageRecord(stage, "failed", reason, seconds=0.1),)
    return make_trace(**({"ranked": (), "passages": (), "answer": None, "stages": failed} | changes))


RAN = tuple(StageRecord(name) for name in ("merge", "rerank", "context", "generate", "parse"))


def trace_of(question, repeat, state):
    """A trace under which the first piece of evidence ends in `state` and every other one is not found."""
    gold, other = (Hit(name, name, f"{name}.txt", None, 0, 9, 1.0) for name in ("gold", "other"))
    passage = Passage(1, "gold", "gold.txt", None, 0, 9, "words")
    found = state not in ("not_found", "not_indexed")
    return Trace(
        question,
        repeat,
        hits={"dense": (gold,) if found else (other,)},
        candidates=(gold,) if found and state != "merging" else (other,),
        ranked=(gold,) if state in ("budget", "unused", "used") else (other,),
        passages=(passage,) if state in ("unused", "used") else (),
        answer=Answer("so", (Citation(1, "", None),) if state == "used" else ()),
        stages=RAN,
    )


def asked(number, n_items, query_class):
    items = tuple(Evidence("gold.txt" if place == 0 else f"more{place}.txt") for place in range(n_items))
    return Question(f"q{number}", "?", ("yes",), query_class=query_class, evidence=items)


def mean_interval(values: Sample, confidence: float = 0.95, seed: int = 0) -> Interval:
    """Return the interval of one sample."""
    return mean_intervals([values], confidence, seed)[0]


def paired_difference(a: Sample, b: Sample) -> PairedDifference:
    """Return the difference of one pair of samples."""
    return paired_differences([(a, b)])[0]


def score_table(columns: Mapping[str, Sequence[Any]], metric: str = "m") -> pd.DataFrame:
    """Return the scores of each variant on q0, q1, …: None or NaN is a failure, "" is not applicable."""
    rows = []
    for variant, values in columns.items():
        for number, value in enumerate(values):
            is_failed = value is None or value != value
            status = "failed" if is_failed else "not_applicable" if isinstance(value, str) else "scored"
            rows.append((variant, f"q{number}", metric, value if status == "scored" else None, status, ""))
    names = ["variant_id", "question_id", "metric", "value", "status", "reason"]
    return pd.DataFrame(rows, columns=names).astype({"value": float})


def comparisons(
    scores: pd.DataFrame, baseline: Any, pairs: Pairs = "baseline", options: Options | None = None
) -> pd.DataFrame:
    """Return the differences of all variants from the baseline, or of all pairs; the first metric is primary."""
    others = [variant for variant in dict.fromkeys(scores["variant_id"]) if variant != baseline]
    wanted = score_pairs(scores, pairs_among([baseline, *others], pairs))
    return differences_table(wanted, answers(scores, [one.hypothesis for one in wanted], options))


def effects(
    scores: pd.DataFrame, values: Mapping[Any, Mapping[str, Any]], baseline: Any, planned: str = ""
) -> pd.DataFrame:
    """Return the effects that the variants with these values of the factors can show."""
    scored = set(scores.loc[scores["status"] == "scored", "variant_id"])
    known = {variant: values[variant] for variant in values if variant in scored or variant == baseline}
    wanted = design_effects(scores, read_factors(known, baseline, planned=planned))
    return effects_table(wanted, answers(scores, [one.hypothesis for one in wanted]))


HYDE, RULE, RERANK = "hyde", "rule", "rerank"
LEVELS = {HYDE: ["none", "classified"], RULE: ["a", "b"], RERANK: ["off", "on"]}
CELLS = [dict(zip(LEVELS, cell, strict=True)) for cell in product(*LEVELS.values())]
RUN = {"-".join(cell.values()): cell for cell in CELLS if (cell[HYDE], cell[RULE]) != ("none", "b")}
SAME = [({HYDE: "none", RULE: "b", RERANK: rerank}, f"none-a-{rerank}") for rerank in LEVELS[RERANK]]
BASE = "none-a-off"
