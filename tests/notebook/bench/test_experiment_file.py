from pathlib import Path

import pytest

from rag_lab.config import PipelineConfig
from rag_lab.errors import RagLabError
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.notebook.bench.toggles import add_variants

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


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RagLabError, match=r"name one that ends in \.yaml"):
        add(tmp_path / "notes.txt", START)


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
