"""What stage tests need of a corpus, without one: a few pages, found by name."""

from dataclasses import dataclass, field

from rag_lab.access import access_label
from rag_lab.records import Chunk, Hit
from rag_lab.stages.stage import Outcome

TEXTS = {
    "press#p1": "The press runs at 140 bar. Its ram guides take grease NLGI 2 every 500 hours.",
    "oven#p1": "The oven cures at 180 degrees. Its filter is changed every month by maintenance.",
    "oven#p2": "Alarm A7 of the oven means that the burner is locked out. " * 30,
    "log#0-50": "Night shift: oven tripped twice, burner reset.",
}


@dataclass
class Corpus:
    """The part of `CorpusIndex` that stages use; each parent is one child, but oven#p2, whose child is its middle."""

    digest: str = "corpus"
    vectors_identity: dict = field(default_factory=dict)
    searched: list = field(default_factory=list)
    truncation: None = None  # of an embedding model that does not say how much it reads

    @property
    def chunks(self):
        return self

    def parent(self, parent_id):
        text = TEXTS[parent_id]
        source, _, page = parent_id.partition("#p")
        return Chunk(parent_id, parent_id, f"{source}.pdf", int(page) if page else None, 0, len(text), text)

    def child(self, chunk_id):
        parent = self.parent(chunk_id.rpartition("/")[0])
        middle = len(parent.text) // 2 if parent.parent_id == "oven#p2" else 0
        text = parent.text[middle : middle + 60]
        return Chunk(chunk_id, parent.parent_id, parent.source, parent.page, middle, middle + len(text), text)

    labels = frozenset({access_label("", ())})

    def page_starts(self, source):
        return ()

    def text(self, hit):
        return self.parent(hit.parent_id).text[hit.start : hit.end]

    def search(self, vectors, k, allowed=None, level="parent", step="dense"):
        self.searched.append(len(vectors))
        return [hits(*list(TEXTS)[:k], step=step) for _ in vectors]

    def search_terms(self, name, analyzer, texts, k, allowed=None, level="parent"):
        self.searched.append(len(texts))
        return [hits(*list(TEXTS)[:k], step=name) for _ in texts]


def hits(*parent_ids, step="dense"):
    """Ranked hits of these parents, with scores 1, 1/2, 1/3, ..."""
    corpus = Corpus()
    found = []
    for rank, parent_id in enumerate(parent_ids, start=1):
        parent = corpus.parent(parent_id)
        found.append(
            Hit(
                parent_id,
                f"{parent_id}/0",
                parent.source,
                parent.page,
                parent.start,
                parent.end,
                1 / rank,
                {step: 1 / rank},
            )
        )
    return found


@dataclass
class Shout:
    """Upper-cases the question; counts how many traces it was run on."""

    version: int = 1
    batch_size: int = 2
    costly: bool = True
    name: str = "shout"
    reads: tuple = ("question.text",)
    writes: tuple = ("search_query",)
    seen: list = field(default_factory=list)
    fail_at: str = ""
    transient: str = ""

    def identity(self):
        return {"version": self.version}

    def run(self, traces):
        if any(trace.question.text == self.fail_at for trace in traces):
            raise RuntimeError("killed")
        self.seen += [trace.question.text for trace in traces]
        return [
            Outcome({"search_query": t.question.text.upper()}, lasting=t.question.text != self.transient)
            for t in traces
        ]
