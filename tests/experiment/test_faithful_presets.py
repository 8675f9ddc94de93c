"""Presets are the systems they are named after: each value, the table that says so, and its twin of packaged models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_lab.config import PipelineConfig
from rag_lab.experiment.checkout import checkout_file
from rag_lab.experiment.config import ExperimentConfig

FOLDER = checkout_file("experiments/presets")
QWEN3 = "unsloth:qwen3-8b"
PIECES = {"corpus.splitter": "sentences", "corpus.chunk_words": 100, "corpus.overlap_words": 20, "corpus.min_pieces": 3}
PLAIN = {"query.rewrite": "none", "query.hyde": "none", "rerank.name": "none", "corpus.parents": "none"}
HOMER = PLAIN | {
    "query.rewrite": "follow_ups", "query.guard": False,
    "corpus.pdf": "tables", "corpus.pdf_unit": "file", "corpus.splitter": "recursive", "corpus.chunk_size": 4000,
    "corpus.chunk_overlap": 200, "store.name": "chroma", "retrieval.base_k": 5, "rerank.final_k": 5,
}  # fmt: skip
SYSTEMS: dict[str, dict[str, Any]] = {
    "assistant": {
        "query.rewrite": "llm", "query.guard": False, "query.hyde": "classified", "corpus.parents": "page",
        "retrieval.mode": "dense", "retrieval.merge": "base_first", "rerank.name": "cross_encoder",
        "rerank.passage": "parent", "answer.context": "retrieved",
        "models.embedding": "sentence_transformers:BAAI/bge-m3",
        "models.cross_encoder": "sentence_transformers:BAAI/bge-reranker-v2-m3", "models.understanding": QWEN3,
        "models.hyde": QWEN3, "models.generation": QWEN3,
    },
    "homer": HOMER | {"retrieval.mode": "dense", "retrieval.min_score": 0.4},
    "homer_hybrid": HOMER | {"retrieval.mode": "hybrid", "retrieval.dense_weight": 0.7, "retrieval.bm25_weight": 0.3},
    "epistemon": PLAIN | PIECES
    | {"retrieval.mode": "rrf", "retrieval.bm25_weight": 0.3, "retrieval.dense_weight": 0.7},
    "docgenie": PLAIN | {"retrieval.mode": "dense", "retrieval.base_k": 5, "rerank.final_k": 5},
    "ragsystem": PLAIN | PIECES
    | {
        "retrieval.mode": "multi", "retrieval.dense_weight": 0.4, "retrieval.bm25_weight": 0.3,
        "retrieval.tfidf_weight": 0.3, "retrieval.units": "document", "retrieval.base_k": 10, "rerank.final_k": 10,
        "retrieval.min_score": None, "select.cut": "none", "select.diversity": "none", "select.mmr_trade_off": 0.5,
    },
}  # fmt: skip
ROLES = {"embedding", "understanding", "hyde", "generation", "likelihood"}
PACKAGED = ("sentence_transformers:minilm", "llamacpp:smollm2", "transformers:smollm2")


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.yaml"


def table(name: str) -> list[tuple[str, str, str, str]]:
    """The rows of a preset's table: key, the system's value, the value here, why where they differ."""
    rows = [line[2:].strip() for line in path_of(name).read_text().splitlines() if line.startswith("# |")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert cells[0] == ["key", "the system", "here", "why, where they differ"]
    return [(key, system, here, why) for key, system, here, why in cells[2:]]


@pytest.mark.parametrize("name", SYSTEMS)
def test_each_value_is_the_systems(name: str) -> None:
    flat = PipelineConfig.load(path_of(name)).flat()
    assert {key: flat[key] for key in SYSTEMS[name]} == SYSTEMS[name]


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_table_says_what_the_file_does_and_why_where_that_is_not_the_systems(name: str) -> None:
    flat, rows = PipelineConfig.load(path_of(name)).flat(), table(name)
    assert {key: yaml.safe_load(here) for key, _, here, _ in rows} == {key: flat[key] for key, *_ in rows}
    assert SYSTEMS[name].keys() <= {key for key, *_ in rows}
    assert [key for key, system, _, why in rows if "not told" in system and not why] == []


def test_what_a_preset_sets_beside_the_defaults_stands_in_its_table() -> None:
    for name in SYSTEMS:
        set_here = PipelineConfig.load(path_of(name)).differing().keys()
        assert set_here - {key for key, *_ in table(name)} <= {"rerank.input_limit"}, name  # what merging hands on


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_twin_swaps_models_for_packaged_ones_and_nothing_else(name: str) -> None:
    system, twin = (PipelineConfig.load(path_of(one)) for one in (name, f"{name}_laptop"))
    changed = twin.differing(system)
    assert {key for key in changed if not key.startswith("models.")} <= {"rerank.name"}
    assert (system.rerank.name, twin.rerank.name) in {("none", "none"), ("cross_encoder", "query_likelihood")}
    assert all(getattr(twin.models, role).partition("?")[0] in PACKAGED for role in ROLES)


def test_the_comparison_of_systems_runs_the_twin_of_each() -> None:
    variants = ExperimentConfig.load(checkout_file("experiments/systems.yaml")).variants
    assert variants == {name: PipelineConfig.load(path_of(f"{name}_laptop")) for name in SYSTEMS}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_what_ships_in_the_package_is_what_people_edit(path: Path) -> None:
    assert (checkout_file("rag_lab/experiment/presets") / path.name).read_bytes() == path.read_bytes()
