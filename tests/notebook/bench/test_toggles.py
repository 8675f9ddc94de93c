from pathlib import Path

import pytest

from rag_lab.config import PipelineConfig, dotted_keys
from rag_lab.errors import RagLabError
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.notebook.bench.toggles import BOXES, add_variants, box_of, box_of_stage, fields, fields_of, is_off, read
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


START = PipelineConfig()
RERANKED = START.override({"rerank.name": "query_likelihood"})
SMALL = START.override({"corpus.chunk_size": 400, "query.class_to_hyde": {**START.query.class_to_hyde, "fuzzy": False}})


def add(path: Path, *settings: PipelineConfig) -> list[str]:
    return add_variants(path, settings, "plant_docs", ["retrieval.ndcg@10"], "Which serves best?")


def test_a_new_file_is_an_experiment_with_the_first_setting_as_its_baseline(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "My bench.yaml"
    assert add(path, START, RERANKED) == ["start", "rerank-query_likelihood"]
    experiment = ExperimentConfig.load(path)
    assert (experiment.name, experiment.dataset, experiment.design) == ("my-bench", "plant_docs", "list")
    assert experiment.variants == {"start": START, "rerank-query_likelihood": RERANKED}
    assert experiment.metrics == ["retrieval.ndcg@10"]


def test_a_file_is_extended_with_its_comments_and_order_kept(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "# what I want to know\nname: mine\nquestion: Why?\ndataset: plant_docs\nbase: {rerank: {final_k: 3}}\n"
        "design: list\nvariants:   # the first is the baseline\n    plain: {}   # as it is\n\n    # to come\n"
        "metrics: [retrieval.mrr@5]  # one is enough\n"
    )
    base = START.override({"rerank.final_k": 3})
    assert add(path, base, RERANKED, SMALL) == ["rerank-query_likelihood__final_k-5", _second(path)]
    text = path.read_text()
    for kept in ("# what I want to know", "# the first is the baseline", "# as it is", "# to come", "# one is enough"):
        assert kept in text
    assert list(ExperimentConfig.load(path).variants.values()) == [base, RERANKED, SMALL]
    assert add(path, SMALL, base) == []  # it holds them already
    assert path.read_text() == text


def _second(path: Path) -> str:
    return list(ExperimentConfig.load(path).variants)[2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: a\nquestion: q\ndataset: d\nfactors: {rerank.name: [none]}\n", "has the design one_factor"),
        ("name: a\nquestion: q\ndataset: d\ndesign: list\nvariants: {plain: {}}\n", "block of its own"),
        ("name: a\nquestion: q\ndesign: list\nvariants:\n  plain: {}\n", "dataset: missing"),
        ("name: [\n", "is not YAML"),
    ],
)
def test_a_file_that_cannot_be_extended_stays_as_it_was(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(RagLabError, match=said):
        add(path, RERANKED)
    assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_settings_of_the_same_name_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    alike = [START.override({"models.generation": name}) for name in ("openai:a b", "openai:A-b")]
    names = add(path, START, *alike)
    assert names == ["start", "generation-openai-a-b", "generation-openai-a-b-2"]
    assert len(ExperimentConfig.load(path).variants) == 3


def test_the_variants_of_a_new_file_are_named_by_what_differs_from_the_first(tmp_path: Path) -> None:
    laptop = START.override({"models.likelihood": "transformers:smollm2?passage_tokens=64", "seed": 3})
    assert add(tmp_path / "new.yaml", laptop, laptop.override({"rerank.final_k": 4})) == ["start", "final_k-4"]
    experiment = ExperimentConfig.load(tmp_path / "new.yaml")
    assert experiment.base == laptop and experiment.variants["final_k-4"].rerank.final_k == 4
