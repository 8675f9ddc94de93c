"""Modules of one's own for every place of the pipeline: functions, frozen dataclasses, stages, and faulty ones."""

import time
from dataclasses import dataclass, replace
from typing import ClassVar

from rag_lab.records import Answer, Citation
from rag_lab.stages.stage import Outcome


def understand(question):
    return {"class": "fuzzy", "rewrite": question.lower(), "hyde": True}


def rewrite(question, history):
    return question.rstrip("?")


def hyde(question, query_class):
    return f"{query_class}: {question}"


def search(query, k):
    return ["The canteen opens at 11:30", "The curing oven runs at 180 degrees Celsius."][:k]


def fusion(lists, k):
    return list({unit_id: score / 2 for found in lists.values() for unit_id, score in found[:2]}.items())


def rerank(question, passages):
    return [-len(passage) for passage in passages]


def select(question, passages, scores):
    return [1, 0]


def context(question, passages):
    return [passage[:20] for passage in passages]


def reader(question, passages):
    return Answer(passages[0], (Citation(1, "", None), Citation(99, "", None)))


FUNCTIONS = {
    "understand": understand,
    "rewrite": rewrite,
    "hyde": hyde,
    "search": search,
    "fusion": fusion,
    "rerank": rerank,
    "select": select,
    "context": context,
    "reader": reader,
}


@dataclass(frozen=True)
class AsClass:
    """Any of the functions as a class with a parameter."""

    slot: str

    version: ClassVar[int] = 1

    def __call__(self, *arguments):
        return FUNCTIONS[self.slot](*arguments)


@dataclass(frozen=True)
class AsStage:
    """A whole stage for a place: it sets values from the trace."""

    slot: str

    version: ClassVar[int] = 1
    name: ClassVar[str] = "whole"
    reads: ClassVar[tuple[str, ...]] = ("question.text", "candidates", "ranked", "passages", "hits.dense")
    batch_size: ClassVar[int] = 8
    costly: ClassVar[bool] = True

    @property
    def writes(self):
        return WRITES[self.slot]

    def identity(self):
        return {"slot": self.slot}

    def run(self, traces):
        return [Outcome({path: SETS[path](trace) for path in self.writes}) for trace in traces]


WRITES = {
    "understand": ("query_class", "proposed_query", "hyde_suggested"),
    "rewrite": ("proposed_query",),
    "hyde": ("hypothetical",),
    "search": ("hits.mine",),
    "fusion": ("base_hits",),
    "rerank": ("ranked",),
    "select": ("ranked",),
    "context": ("passages",),
    "reader": ("answer",),
}
SETS = {
    "query_class": lambda trace: "fuzzy",
    "proposed_query": lambda trace: trace.question.text,
    "hyde_suggested": lambda trace: True,
    "hypothetical": lambda trace: "The oven trips.",
    "hits.mine": lambda trace: (),
    "base_hits": lambda trace: trace.hits["dense"][:1],
    "ranked": lambda trace: trace.candidates[:1],
    "passages": lambda trace: (),
    "answer": lambda trace: Answer("yes"),
}


@dataclass(frozen=True)
class Faulty:
    """Goes wrong in one way for the question about the oven, and is the function of its place for the others."""

    slot: str
    fault: str

    version: ClassVar[int] = 1
    deterministic: ClassVar[bool] = False
    timeout_s: ClassVar[float] = 0.3

    def __call__(self, *arguments):
        given = FUNCTIONS[self.slot](*arguments)
        if "oven" not in str(arguments[0]) and self.slot != "fusion":
            return given
        if self.fault == "raises":
            raise RuntimeError("out of paper")
        if self.fault == "hangs":
            time.sleep(60)
        if self.fault == "wrong type":
            return object()
        return SPOILT[self.slot]


# For each place something that is nearly right: too few, NaN, what is not there.
SPOILT = {
    "understand": {"class": "urgent"},
    "rewrite": 7,
    "hyde": 7,
    "search": [("The canteen opens at 11:30", float("nan"))],
    "fusion": [("nobody found this", 1.0)],
    "rerank": [1.0],
    "select": [999],
    "context": ["one"],
    "reader": " ",
}


@dataclass(frozen=True)
class NanStage(AsStage):
    """A whole stage that sets a score which is no number."""

    def run(self, traces):
        nan = float("nan")
        return [
            Outcome({"ranked": tuple(replace(hit, score=nan if "oven" in trace.question.text else 1.0)
                                     for hit in trace.candidates)})
            for trace in traces
        ]  # fmt: skip
