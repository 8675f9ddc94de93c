"""The tool `search(query, namespace)` of an agent: the retrieval of its pipeline, within what the asker may see."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from rag_lab.access import allowed_labels
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.memory.results import Memory, Replayed
from rag_lab.records import Passage, Question, Trace
from rag_lab.stages.run_stage import run_stage
from rag_lab.stages.stage import Stage

ALL = "all"  # in place of a namespace: whatever the asker may see


@dataclass(frozen=True)
class SearchTool:
    """Finds `results` units by the stages of retrieval; `context` makes what turns so many hits into passages."""

    index: CorpusIndex
    retrieval: tuple[Stage, ...]
    results: int
    context: Callable[[int], Stage]
    context_tokens: int

    def identity(self) -> dict[str, object]:
        """The stages by which it searches and assembles, and how many results each search gives."""
        stages = [dict(stage.identity()) for stage in (*self.retrieval, self.context(1))]
        return {"stages": stages, "results": self.results}

    def namespaces(self, question: Question) -> list[str]:
        """Return what the asker may search in: `all`, and the namespaces in order where there are several."""
        labels = self.index.chunks.labels
        allowed = allowed_labels(labels, question)
        names = sorted({json.loads(label)[0] for label in (labels if allowed is None else allowed)} - {""})
        return [ALL, *names]

    def find(self, asked: Question, query: str, namespace: str, memory: Memory | None, replayed: Replayed) -> Trace:
        """Return a trace with the best `results` as `ranked`, for the rights of who `asked`."""
        name = asked.namespace if namespace == ALL else namespace  # of those that `namespaces` returns
        question = Question(asked.question_id, query, may_see=asked.may_see, namespace=name)
        trace = Trace(question, search_query=query)
        for stage in self.retrieval:
            (trace,) = run_stage(stage, [trace], memory, replayed=replayed)
        return replace(trace, ranked=trace.ranked[: self.results])

    def longest_context(self, n: int) -> tuple[Passage, ...]:
        """Return `n` passages that fill the budget, as a forecast counts them."""
        text = "word " * (self.context_tokens // max(n, 1))
        return tuple(Passage(number, "?", "?", None, 0, 0, text) for number in range(1, n + 1))
