import re
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_dataset import write_dataset

from rag_lab import Dataset, PipelineConfig
from rag_lab.models import shared
from rag_lab.pipeline import Pipeline
from rag_lab.stores.sparse import Analyzer, analyzer_for, terms
from rag_lab.testing import HashEmbedder

ANALYZERS = get_args(Analyzer)


def of(text, analyzer="unicode"):
    return terms([text], analyzer)[0]


def test_words_are_folded_and_punctuation_is_gone():
    assert of("The Ram-Guide (P-12) takes 3.5 ml; STRASSE, Straße!") == [
        "the", "ram", "guide", "p", "12", "takes", "3", "5", "ml", "strasse", "strasse",
    ]  # fmt: skip


def test_letters_that_look_alike_are_one():
    assert of("ﬁlter ①２") == ["filter", "12"]
    assert of("e\u0301te\u0301") == of("\u00e9t\u00e9")


def test_vowel_signs_belong_to_their_word():
    assert of("हिन्दी में") == ["हिन्दी", "में"]


def test_scripts_without_spaces_become_pairs():
    assert of("加州大学 is 好") == ["加州", "州大", "大学", "is", "好"]
    assert of("パリに行く") == ["パリ", "リに", "に行", "行く"]
    assert of("ภาษาไทย")  # Thai: vowel signs stay with their consonant


def test_scripts_are_told_apart_within_a_word():
    assert of("NBA总决赛") == ["nba", "总决", "决赛"]


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("english", "run runs running"),
        ("german", "Maschine Maschinen"),
        ("russian", "завод завода заводом"),
        ("spanish", "casa casas"),
        ("french", "continuer continuation"),
        ("turkish", "ev evler"),
    ],
)
def test_a_language_takes_forms_to_one_stem(language, forms):
    assert len(set(of(forms, language))) == 1
    assert len(set(of(forms))) == len(forms.split())


def test_ngrams_find_words_inside_words():
    assert set(of("Pumpe", "ngrams")) & set(of("Ölpumpen", "ngrams")) >= {"pum", "ump", "mpe"}
    assert of("a 加州大学", "ngrams") == ["_a_", "加州", "州大", "大学"]


@given(st.text(max_size=60), st.sampled_from(ANALYZERS))
@settings(max_examples=150, deadline=None)
def test_any_text_gives_terms_without_spaces_and_the_same_ones_in_capitals(text, analyzer):
    found = of(text, analyzer)
    assert all(term and not re.search(r"\s", term) for term in found)
    assert found or not any(character.isalnum() for character in text)


@given(st.lists(st.text("abc déŁ加州ру", max_size=12), max_size=6), st.sampled_from(ANALYZERS))
@settings(max_examples=60, deadline=None)
def test_texts_do_not_influence_each_other(texts, analyzer):
    assert terms(texts, analyzer) == [of(text, analyzer) for text in texts]


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
