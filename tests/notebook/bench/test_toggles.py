from pathlib import Path

import pytest

from rag_lab.config import PipelineConfig, dotted_keys
from rag_lab.notebook.bench.toggles import BOXES, box_of, box_of_stage, fields, fields_of, is_off, read
from rag_lab.pipeline import Pipeline


def test_every_key_of_the_configuration_stands_in_one_box_and_its_main_switches_first() -> None:
    drawn = [field.key for box in BOXES for field in fields_of(box)]
    assert sorted(drawn) == sorted(dotted_keys())
    for box in BOXES:
        assert tuple(field.key for field in fields_of(box))[: len(box.mains)] == box.mains
    assert box_of("retrieval.hyde_k").name == "hyde" and box_of("retrieval.base_k").name == "search"
    assert box_of("rerank.input_limit").name == "merge" and box_of("answer.context_bytes").name == "context"


@pytest.mark.parametrize(
    ("key", "kind", "some"),
    [
        ("query.hyde", "choice", "classified"),
        ("retrieval.analyzer", "choice", "auto"),
        ("rerank.name", "module", "cross_encoder"),
        ("retrieval.mode", "module", "hybrid"),
        ("corpus.splitter", "module", "sentences"),
        ("store.name", "module", "exact"),
        ("query.class_to_hyde", "flags", "fuzzy"),
    ],
)
def test_a_field_offers_what_its_type_and_the_registry_allow(key: str, kind: str, some: str) -> None:
    assert fields()[key].kind == kind
    assert some in fields()[key].choices


def test_numbers_have_their_bounds_and_every_field_says_what_it_is() -> None:
    assert (fields()["rerank.final_k"].low, fields()["rerank.final_k"].high) == (1, 100)
    assert fields()["answer.thinking"].kind == "flag" and fields()["answer.temperature"].kind == "float"
    assert [key for key, field in fields().items() if not field.help] == []


def test_a_label_names_the_section_where_the_box_does_not() -> None:
    labels = {key: field.label for key, field in fields().items()}
    assert (labels["rerank.final_k"], labels["store.name"], labels["seed"]) == ("final k", "store name", "seed")


def test_what_a_browser_sends_is_read_by_the_kind_of_the_field() -> None:
    assert read(fields()["rerank.final_k"], 4.0) == 4
    assert read(fields()["corpus.readers"], "{.eml: mail:read}") == {".eml": "mail:read"}
    assert read(fields()["corpus.readers"], "") == {}
    with pytest.raises(ValueError, match="line 1"):
        read(fields()["corpus.readers"], "{.eml: [")


def test_every_stage_of_a_pipeline_has_its_box(dataset: Path, tmp_path: Path) -> None:
    every = {"query.phrasings": 2, "retrieval.mode": "multi", "rerank.name": "query_likelihood", "select.cut": "knee"}
    for config in (PipelineConfig(), PipelineConfig().override(every)):
        stages = Pipeline(dataset, config, home=tmp_path, progress=False).stages
        assert [stage.name for stage in stages if box_of_stage(stage.name) is None] == []
    assert box_of_stage("search_bm25").name == "search" and box_of_stage("retrieve_hyde").name == "hyde"


def test_a_box_is_off_where_all_its_main_switches_are() -> None:
    off = {box.name for box in BOXES if is_off(box, PipelineConfig().flat())}
    assert off == {"understand", "hyde", "rerank", "select"}
    cut = PipelineConfig().override({"select.cut": "knee"}).flat()
    assert "select" not in {box.name for box in BOXES if is_off(box, cut)}
