"""Presets are the systems they are named after: each value, the table that says so, and its twin of packaged models."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_lab.config import PipelineConfig
from rag_lab.experiment.config import ExperimentConfig, checkout_file
from rag_lab.models.config import from_yaml

FOLDER = checkout_file("experiments/presets")
REPOSITORY = Path(__file__).parents[2]
DOCUMENTS = Path(os.environ.get("RAG_LAB_DATA") or REPOSITORY.parent / "shared" / "data").parent / "seeds"
SYSTEMS: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("systems_as_documented.yaml").read_text(encoding="utf-8")
)
TWINS = [name for name in SYSTEMS if name != "assistant_gemini"]  # whose twin is the assistant's
NOT_STATED = "not stated"
ROLES = {"embedding", "understanding", "hyde", "generation", "likelihood"}
PACKAGED = ("sentence_transformers:minilm", "llamacpp:smollm2", "transformers:smollm2")


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.yaml"


def table(name: str) -> list[tuple[str, str, str, str, str]]:
    """The rows of a preset's table: key, the system's value, where, the value here, why where they differ."""
    rows = [line[2:].strip() for line in path_of(name).read_text().splitlines() if line.startswith("# |")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert cells[0] == ["key", "the system", "where", "here", "why, where they differ"]
    return [(key, system, where, here, why) for key, system, where, here, why in cells[2:]]


def squeezed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.skipif(not DOCUMENTS.is_dir(), reason=f"the documents are not at {DOCUMENTS}; set RAG_LAB_DATA")
@pytest.mark.parametrize("name", SYSTEMS)
def test_what_is_listed_of_a_document_stands_in_it(name: str) -> None:
    texts = [squeezed(path.read_text(encoding="utf-8")) for path in DOCUMENTS.glob("*.txt")]
    (document,) = [text for text in texts if squeezed(SYSTEMS[name]["title"]) in text]
    quotes = {key: quote for key, (_, _, quote) in SYSTEMS[name]["values"].items()}
    assert {key: quote for key, quote in quotes.items() if squeezed(quote) not in document} == {}


@pytest.mark.parametrize("name", SYSTEMS)
def test_each_value_is_the_documents(name: str) -> None:
    flat = PipelineConfig.load(path_of(name)).flat()
    documented = {key: value for key, (value, _, _) in SYSTEMS[name]["values"].items()}
    assert {key: flat[key] for key in documented} == documented


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_table_names_the_section_and_says_not_stated_only_where_the_document_is_silent(name: str) -> None:
    rows = {key: row for key, *row in table(name) if key != "–"}
    documented = {key: where for key, (_, where, _) in SYSTEMS[name]["values"].items()}
    stated = {key: where for key, (system, where, _, _) in rows.items() if system != NOT_STATED}
    assert stated == documented
    assert {where for system, where, _, _ in rows.values() if system == NOT_STATED} <= {"–"}


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_table_says_what_the_file_does_and_why_where_that_is_not_the_systems(name: str) -> None:
    flat = PipelineConfig.load(path_of(name)).flat()
    rows = [row for row in table(name) if row[0] != "–"]
    parsed = {key: yaml.safe_load(here) for key, *_, here, _ in rows}
    written = {key: from_yaml(value) if key.startswith("models.") else value for key, value in parsed.items()}
    assert written == {key: flat[key] for key in parsed}
    unexplained = [
        key for key, system, _, here, why in table(name) if not why and (NOT_STATED in system or here == "–")
    ]
    assert unexplained == []


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_a_preset_sets_beside_the_defaults_stands_in_its_table(name: str) -> None:
    set_here = PipelineConfig.load(path_of(name)).differing().keys()
    assert set_here - {key for key, *_ in table(name)} <= {"rerank.input_limit"}  # what merging hands on


def test_the_assistant_with_gemini_differs_by_its_chat_model_alone() -> None:
    assistant, gemini = (PipelineConfig.load(path_of(name)) for name in ("assistant", "assistant_gemini"))
    assert gemini.differing(assistant).keys() == {f"models.{role}" for role in ("understanding", "hyde", "generation")}


@pytest.mark.parametrize("name", TWINS)
def test_the_twin_swaps_models_for_packaged_ones_and_nothing_else(name: str) -> None:
    system, twin = (PipelineConfig.load(path_of(one)) for one in (name, f"{name}_laptop"))
    changed = twin.differing(system)
    assert {key for key in changed if not key.startswith("models.")} <= {"rerank.name"}
    assert (system.rerank.name, twin.rerank.name) in {("none", "none"), ("cross_encoder", "query_likelihood")}
    assert all(getattr(twin.models, role).partition("?")[0] in PACKAGED for role in ROLES)


def test_the_comparison_of_systems_runs_the_twin_of_each() -> None:
    variants = ExperimentConfig.load(checkout_file("experiments/systems.yaml")).variants
    assert variants == {name: PipelineConfig.load(path_of(f"{name}_laptop")) for name in TWINS}
