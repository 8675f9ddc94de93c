"""The steps of a pipeline, in their order, from the one table of them, steps.yaml; and what is built in."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from rag_lab._kit.config_file import read_shipped
from rag_lab._kit.registry import kinds_of
from rag_lab.errors import unknown_name
from rag_lab.records import Hit

Group = Literal["query", "corpus", "retrieval", "rerank", "answer"]  # of steps that are chosen together, in this order


class ScoreName(NamedTuple):
    """A score of a hit: what stands above its column, and what it means."""

    short: str
    meaning: str


class Step(NamedTuple):
    """A step, under its name on a trace; what its fields are stands in steps.yaml."""

    name: str
    title: str
    group: Group
    switches: tuple[str, ...]
    keys: tuple[str, ...]
    slot: str
    module: str
    scores: Mapping[str, ScoreName]


SAID = read_shipped(Path(__file__).with_name("settings.yaml"))  # what settings mean, where it takes more than a line
STEPS = tuple(
    Step(
        name,
        one["title"],
        one["group"],
        tuple(one["switches"]),
        tuple(one.get("keys", ())),
        one.get("slot", ""),
        one.get("module", ""),
        {score: ScoreName(**texts) for score, texts in one.get("scores", {}).items()},
    )
    for name, one in read_shipped(Path(__file__).with_name("steps.yaml")).items()
)

ORDERED_BY = ScoreName("sum", "reranker's and retrieval score, each scaled to 0…1, summed by weight")
_SCORES = {name: score for step in STEPS for name, score in step.scores.items()}  # in the order of the pipeline


def step_of(key: str) -> Step | None:
    """Return the step that reads a key: the one that names the longest beginning of it."""
    found = [(len(start), step) for step in STEPS for start in (*step.switches, *step.keys) if key.startswith(start)]
    return max(found, key=lambda item: item[0])[1] if found else None


def stage_name(stage: str) -> str:
    """Return what a stage is called where people read it; a custom search by its name."""
    found = next((step.title for step in STEPS if step.name == stage), "")
    return found or stage.removeprefix("search_")


def scores_of(hits: Iterable[Hit]) -> list[tuple[str, ScoreName]]:
    """Return the steps that scored any of the hits, in the pipeline's order, custom ones last, each with its score."""
    found = dict.fromkeys(step for hit in hits for step in hit.scores)
    order = {step: place for place, step in enumerate(_SCORES)}
    in_order = sorted(found, key=lambda step: order.get(step, len(order)))
    return [(step, _SCORES.get(step, ScoreName(step, ""))) for step in in_order]


FOLLOW_UPS = "follow_ups"
Normalization = Literal["none", "min_max", "z_score", "rank", "reciprocal_rank"]
Cut = Literal["none", "knee"]
Diversity = Literal["none", "mmr"]
Merging = Literal["rrf", "base_first"]
RRF_CONSTANT = 60  # Cormack, Clarke and Büttcher 2009, section 2
RRF = "rrf"  # combines by reciprocal ranks
_SEVERAL: dict[str, tuple[str, ...]] = {
    "hybrid": ("dense", "bm25"),
    "multi": ("dense", "bm25", "tfidf"),
    RRF: ("dense", "bm25"),
}


(UNDERSTANDINGS, REWRITINGS, HYDE_WRITERS, SEARCHES, FUSIONS, SELECTIONS, RERANKERS, CONTEXTS, READERS) = kinds_of(
    Path(__file__).with_name("modules.yaml"), "rag_lab.stages"
)


class Modes:
    """The modes, as a field of a configuration knows them."""

    def names(self) -> list[str]:
        """Return what can be named without a colon."""
        return [*SEARCHES.names(), *_SEVERAL]

    def check(self, mode: str) -> str:
        """Return `mode` if it can be one."""
        for part in mode.split("+"):
            name = part.partition("?")[0]
            if ":" not in name and name not in _SEVERAL and name not in SEARCHES.names():
                sentence = unknown_name("search", name, self.names())
                raise ValueError(f"{sentence} One of your own is named module:Class.")
            if name not in _SEVERAL:
                SEARCHES.check(part)
        return mode

    def problem(self, mode: str) -> str:
        """Return why a search that `mode` names cannot be used here, or ''; see `Kind.problem`."""
        return " ".join(filter(None, map(SEARCHES.problem, searches_of(mode))))


def searches_of(mode: str) -> tuple[str, ...]:
    """Return the searches that a mode makes, each once: `hybrid+my_search:Splade` makes three."""
    return tuple(dict.fromkeys(name for part in mode.split("+") for name in _SEVERAL.get(part, (part,))))
