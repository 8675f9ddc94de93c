"""Sparse indexes: what all keep to, and their formulas, worked out another way."""

import math
import re
from collections import Counter
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from small_dataset import write_dataset
from tolerance import FLOAT32

from rag_lab import Dataset, PipelineConfig
from rag_lab.models import shared
from rag_lab.pipeline import Pipeline
from rag_lab.records import Chunk
from rag_lab.stores.sparse import SPARSE, Analyzer, analyzer_for, best, open_sparse, terms
from rag_lab.testing import HashEmbedder

TEXTS = [
    "The press runs at 140 bar.",
    "The oven cures at 180 degrees; the oven trips.",
    "",
    "The press runs at 140 bar.",
    "!!!",
    "Grease the ram guides of the press every 500 hours, oven or not.",
]
IDS = [f"t{number}" for number in range(len(TEXTS))]

words = st.lists(st.sampled_from(["press", "oven", "bar", "grease", "ram", "hour"]), max_size=8).map(" ".join)
corpora = st.lists(words, min_size=1, max_size=12)


@pytest.fixture(params=SPARSE)
def name(request):
    return request.param


def built(name, path, texts=TEXTS, analyzer="unicode"):
    ids = [f"t{number}" for number in range(len(texts))]
    SPARSE[name].build(path / name, ids, texts, analyzer)
    return SPARSE[name](path / name)


def bm25(texts, query, analyzer="unicode", k1=1.5, b=0.75):
    """Robertson's formula with Lucene's idf, written down again."""
    documents = [Counter(found) for found in terms(texts, analyzer)]
    mean = sum(document.total() for document in documents) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for term in terms([query], analyzer)[0]:
            n = sum(term in other for other in documents)
            idf = math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
            tf = document[term]
            score += idf * tf / (tf + k1 * (1 - b + b * document.total() / mean)) if tf else 0.0
        scores.append(score)
    return scores


def tfidf(texts, query, analyzer="unicode"):
    """Cosines of scikit-learn's vectors, which refuses texts without terms."""
    if not any(terms(texts, analyzer)):
        return [0.0] * len(texts)
    vectorizer = TfidfVectorizer(analyzer=lambda text: terms([text], analyzer)[0], dtype=np.float32)
    documents = vectorizer.fit_transform(texts)
    return (vectorizer.transform([query]) @ documents.T).toarray()[0].tolist()


FORMULAS = {"bm25": bm25, "tfidf": tfidf}


@given(corpora, words, st.integers(1, 14))
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("name", SPARSE)
def test_scores_are_those_of_the_formula_best_first(name, tmp_path_factory, texts, query, k):
    index = built(name, tmp_path_factory.mktemp("index"), texts)
    (ids,), (scores,) = index.search([query], k)
    wanted = FORMULAS[name](texts, query)
    matching = [score for score in wanted if score > 0]
    assert scores == pytest.approx(sorted(matching, reverse=True)[:k], abs=FLOAT32 if name == "bm25" else 0)
    assert [wanted[int(found[1:])] for found in ids] == pytest.approx(scores, abs=FLOAT32)


@pytest.mark.parametrize("analyzer", get_args(Analyzer))
def test_every_analyzer_searches(name, tmp_path, analyzer):
    (ids,), (scores,) = built(name, tmp_path, analyzer=analyzer).search(["oven"], 2)
    assert ids == ["t1", "t5"]
    assert scores == pytest.approx(sorted(FORMULAS[name](TEXTS, "oven", analyzer), reverse=True)[:2], abs=FLOAT32)


def test_only_texts_that_share_a_term_are_found_and_scores_fall(name, tmp_path):
    index = built(name, tmp_path)
    assert index.search(["canteen", "", "?!"], 5) == ([[], [], []], [[], [], []])
    assert len(index.search(["the"], 50)[0][0]) == 4
    (ids,), (scores,) = index.search(["oven of the press"], 6)
    assert len(ids) == len(set(ids)) == len(scores)
    assert scores == sorted(scores, reverse=True) and all(score > 0 for score in scores)


def test_ties_keep_the_order_of_insertion_even_across_the_cut(name, tmp_path):
    index = built(name, tmp_path, ["press bar", "oven", *["press oven"] * 50])
    assert index.search(["oven press"], 3)[0] == [["t2", "t3", "t4"]]


def test_a_batch_gives_what_single_queries_give(name, tmp_path):
    index, queries = built(name, tmp_path), ["press", "oven trips", "nothing of this", "ram guides"] * 80
    ids, scores = index.search(queries, 3)
    for query, found, values in list(zip(queries, ids, scores, strict=True))[:4]:
        assert index.search([query], 3) == ([found], [values])
    assert ids[:4] == ids[-4:]
    assert index.search([], 3) == ([], [])


def test_texts_without_terms_are_no_error(name, tmp_path):
    for place, texts in enumerate(([""], ["", "..."], ["", "oven"])):
        found = built(name, tmp_path / str(place), texts).search(["oven", ""], 3)[0]
        assert found == [["t1"] if "oven" in texts else [], []]


def test_it_is_the_same_after_its_folder_was_moved(name, tmp_path):
    here = built(name, tmp_path).search(["oven press", "ram"], 4)
    (tmp_path / name).rename(tmp_path / "moved")
    assert SPARSE[name](tmp_path / "moved").search(["oven press", "ram"], 4) == here


def test_no_file_holds_a_pickle(name, tmp_path):
    built(name, tmp_path)
    files = [file for file in (tmp_path / name).rglob("*") if file.is_file()]
    assert {file.suffix for file in files} <= {".json", ".npy", ".npz"}
    for file in files:
        if file.suffix == ".npy":
            assert np.load(file, allow_pickle=False) is not None


def test_it_is_built_once_beside_the_vectors_and_then_opened(name, tmp_path):
    asked = []

    def children():
        asked.append(name)
        return [Chunk(i, "p", "f", None, 0, 1, text) for i, text in zip(IDS, TEXTS, strict=True)]

    first = open_sparse(tmp_path, name, "unicode", children)
    again = open_sparse(tmp_path, name, "unicode", children)
    assert first.search(["oven"], 2) == again.search(["oven"], 2)
    assert asked == [name]
    open_sparse(tmp_path, name, "english", children)
    assert asked == [name, name]


def test_a_build_that_fails_leaves_nothing_behind(name, tmp_path):
    with pytest.raises(ZeroDivisionError):
        open_sparse(tmp_path, name, "unicode", lambda: 1 / 0)
    assert open_sparse(tmp_path, name, "unicode", lambda: [Chunk("c", "p", "f", None, 0, 1, "oven")]).search(
        ["oven"], 1
    )[0] == [["c"]]


@given(st.lists(st.floats(0, 1, width=32) | st.sampled_from([0.25, 0.5]), max_size=20), st.integers(1, 25))
def test_the_best_are_those_of_a_full_sort(scores, k):
    positions = sorted((p for p, score in enumerate(scores) if score > 0), key=lambda p: (-scores[p], p))
    assert best(np.array(scores, np.float32), k).tolist() == positions[:k]


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
