import pytest
from small_dataset import write_dataset

from rag_lab import Dataset, PipelineConfig
from rag_lab.models import shared
from rag_lab.pipeline import Pipeline
from rag_lab.stores.analyzer import analyzer_for
from rag_lab.testing import HashEmbedder


@pytest.mark.parametrize(
    ("language", "analyzer"),
    [
        ("en", "english"), ("English", "english"), (" EN-us ", "english"), ("en_GB", "english"), ("eng", "english"),
        ("de", "german"), ("ger", "german"), ("German", "german"), ("nb", "norwegian"), ("pt-BR", "portuguese"),
        ("", "unicode"), ("zh", "unicode"), ("klingon", "unicode"), ("en, de", "unicode"), ("auto", "unicode"),
    ],
)  # fmt: skip
def test_a_language_by_any_of_its_names_has_its_analyzer_and_others_the_plain_one(language, analyzer):
    assert analyzer_for("auto", language) == analyzer
    assert analyzer_for("ngrams", language) == "ngrams"


def test_auto_follows_the_dataset_and_shares_results_with_the_analyzer_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "embedder", lambda spec: HashEmbedder())
    dataset = Dataset.load(write_dataset(tmp_path))
    assert dataset.language == "en"

    def planned(analyzer):
        config = PipelineConfig().override({"retrieval.mode": "bm25", "retrieval.analyzer": analyzer})
        return Pipeline.planned(config, dataset, home=tmp_path / "home")

    def identity(analyzer):
        stages = planned(analyzer).stages
        return next(stage.identity() for stage in stages if stage.name == "search_bm25")

    assert PipelineConfig().retrieval.analyzer == "auto"
    assert planned("auto").parts.retrieval.analyzer == "english"
    assert identity("auto") == identity("english") != identity("unicode")
