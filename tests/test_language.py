"""Words are cut by the language that a data set declares, else by the one that its texts are in."""

import pytest

from rag_lab.config import PipelineConfig
from rag_lab.experiment.run.variant_work import VariantWork
from rag_lab.pipeline import Pipeline

FILLER = " Das ist so, weil es nicht anders sein kann, und wer das nicht weiß, der wird es bei der Arbeit noch lernen."
BY_WORDS = {"retrieval.mode": "bm25", "query.rewrite": "none", "query.hyde": "none", "answer.name": "none"}


@pytest.fixture
def german(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in {
        "a": "Die Ventile öffnen bei 290 bar.",
        "b": "Die Pumpe läuft.",
        "c": "Der Ofen ist heiß.",
    }.items():
        (folder / f"{name}.txt").write_text(text + FILLER * 2, encoding="utf-8")
    return folder


def asked(folder, tmp_path, **changes):
    config = PipelineConfig().override({**BY_WORDS, **changes})
    pipeline = Pipeline(folder, config, home=tmp_path / "home", progress=False)
    return pipeline, [hit.source for hit in pipeline.ask("Ventils").ranked]


def cut_by(pipeline):
    return pipeline.index.analyzer(pipeline.parts.retrieval.analyzer)


def test_the_detected_language_takes_words_to_their_stems(german, tmp_path):
    pipeline, found = asked(german, tmp_path)
    assert pipeline.language == "german"
    assert cut_by(pipeline) == "german"
    assert found == ["a.txt"]


def test_what_is_set_or_declared_comes_before_what_is_detected(german, tmp_path):
    pipeline, found = asked(german, tmp_path, **{"retrieval.analyzer": "unicode"})
    assert (cut_by(pipeline), found) == ("unicode", [])
    (german / "dataset.yaml").write_text("language: fr")
    (german / "corpus").mkdir()
    for file in german.glob("*.txt"):
        file.rename(german / "corpus" / file.name)
    assert cut_by(asked(german, tmp_path)[0]) == "french"


def test_a_language_that_cannot_be_told_is_cut_plainly(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "parts.txt").write_text("4711 valve 290 bar")
    assert cut_by(asked(tmp_path / "docs", tmp_path)[0]) == "unicode"


def test_a_search_by_meaning_does_not_ask_for_the_language(german, tmp_path):
    pipeline = Pipeline(german, home=tmp_path / "home", progress=False).set("retrieval.mode", "dense")
    assert pipeline.stages and not pipeline.index._languages


@pytest.mark.parametrize(("declared", "told"), [("", "german (detected)"), ("de", "de (declared)")])
def test_the_record_of_a_variant_says_which_language_and_who_says_so(german, tmp_path, declared, told):
    if declared:
        (german / "dataset.yaml").write_text(f"language: {declared}")
        (german / "corpus").mkdir()
        (german / "a.txt").rename(german / "corpus" / "a.txt")
    pipeline = asked(german, tmp_path)[0]
    assert VariantWork(pipeline, (), (), ()).record()["language"] == told
