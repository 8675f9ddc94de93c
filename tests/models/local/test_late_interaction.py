import json
import math

import numpy as np
import pytest
from tiny_models import write_tiny_bert

from rag_lab._kit.home import home
from rag_lab.errors import ModelError
from rag_lab.experiment.stage_identities import model_problem
from rag_lab.memory.care import export_store, import_store
from rag_lab.memory.results import opened_memory
from rag_lab.models.local.late_interaction import MaxSimScorer
from rag_lab.models.local.sentence_transformers import SentenceTransformerEmbedder
from rag_lab.models.weights import packaged

QUESTION = "At which pressure does the press run?"
PASSAGES = ["The press runs at 140 bar.", "Lunch is at noon.", ""]
PAIRS = [(QUESTION, passage) for passage in PASSAGES]
INT8 = 0.01  # what eight bits and the error of float32 change of a mean of cosines


@pytest.fixture(scope="module")
def minilm():
    return MaxSimScorer("minilm", device="cpu", pool=1)


def token_vectors(folder, text):
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        rows = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_score_is_the_mean_of_the_best_cosines_of_the_question_s_tokens(minilm):
    asked = token_vectors(packaged("minilm"), QUESTION)
    expected = [float((asked @ token_vectors(packaged("minilm"), passage).T).max(1).mean()) for passage in PASSAGES]
    assert minilm.score(PAIRS) == pytest.approx(expected, abs=INT8)
    assert expected[0] > expected[1] + 0.2
    assert minilm.score([]) == []


def test_another_process_scores_the_same_since_nothing_is_drawn_by_chance(minilm):
    assert MaxSimScorer("minilm", device="cpu", pool=1).score(PAIRS) == minilm.score(PAIRS)


def test_who_embeds_by_the_same_weights_holds_them_in_the_same_process_and_once():
    scorer, embedder = (kind("minilm", device="cpu") for kind in (MaxSimScorer, SentenceTransformerEmbedder))
    assert scorer.weights_held == embedder.weights_held
    assert scorer.loaded is embedder.loaded
    assert scorer.identity() != embedder.identity()


def test_passages_are_embedded_once_whoever_asks(monkeypatch):
    MaxSimScorer("minilm", device="cpu").score(PAIRS)
    later, encode, kinds = MaxSimScorer("minilm", device="cpu"), MaxSimScorer._encode, []
    monkeypatch.setattr(
        MaxSimScorer, "_encode", lambda self, kind, texts: kinds.append(kind) or encode(self, kind, texts)
    )
    later.score([("Another question?", passage) for passage in PASSAGES])
    assert kinds == ["query"]
    later.score([(QUESTION, "New.")])
    assert kinds == ["query", "query", "document"]


def sizes():
    with opened_memory("vectors") as store:
        return sorted(len(value) for (value,) in store.execute("SELECT value FROM remembered"))


def test_a_vector_takes_a_byte_a_number_and_pooling_halves_their_number():
    passage = (
        "The press runs at 140 bar and its oil is changed every 500 hours by the maintenance crew of the night shift."
    )
    n_tokens, dim = token_vectors(packaged("minilm"), passage).shape
    MaxSimScorer("minilm", device="cpu", pool=1).score([(QUESTION, passage)])
    (whole,) = sizes()
    MaxSimScorer("minilm", device="cpu", pool=2).score([(QUESTION, passage)])
    half = sizes()[0]
    head = whole - n_tokens * dim
    assert 0 < head <= 16
    assert (half - head) // dim in range(n_tokens // 2, n_tokens // 2 + 2)


def test_what_is_longer_than_the_model_reads_is_read_in_windows(minilm):
    long = "Lunch is at noon.  " * 200 + PASSAGES[0]
    windows = minilm.windows("document", long)
    assert "".join(windows) == long
    assert len(windows) > 3
    assert max(minilm._read_length().counts([(window,) for window in windows])) <= minilm.most_tokens == 256
    lunch, press = minilm.score([(QUESTION, "Lunch is at noon.  " * 200), (QUESTION, long)])
    assert press > lunch + 0.1
    assert minilm.windows("document", PASSAGES[0]) == [PASSAGES[0]]
    assert "".join(minilm.windows("document", "x" * 2000)) == "x" * 2000  # no word ends where it could be cut


def test_a_model_that_was_trained_for_it_scores_as_the_library_does(tmp_path):
    from sentence_transformers import MultiVectorEncoder

    words = [word.strip(".?").lower() for text in (QUESTION, *PASSAGES) for word in text.split()]
    made = MultiVectorEncoder(str(write_tiny_bert(tmp_path / "bert", words, 1)), device="cpu")
    made.save_pretrained(str(tmp_path / "colbert"))
    encoded = [made.encode_document([passage])[0] for passage in PASSAGES[:2]]
    (asked,) = made.encode_query([QUESTION])
    expected = [float((asked @ rows.T).max(1).values.mean()) for rows in encoded]
    found = MaxSimScorer(str(tmp_path / "colbert"), device="cpu", pool=1).score(PAIRS[:2])
    assert found == pytest.approx(expected, abs=INT8)
    assert not math.isclose(*expected, abs_tol=INT8)


@pytest.fixture
def static(tmp_path):
    """The folder of a model that is a table of vectors, as its library would save it."""
    folder = tmp_path / "static"
    folder.mkdir()
    kind = "sentence_transformers.sentence_transformer.modules.static_embedding.StaticEmbedding"
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": kind}]))
    (folder / "config.json").write_text("{}")
    return folder


def test_a_model_without_vectors_of_tokens_is_refused_before_anything_runs(static):
    problem = model_problem("late_interaction", f"sentence_transformers:{static}")
    assert "has no vectors of tokens (it is made of StaticEmbedding); choose a transformer, such as minilm" in problem
    assert model_problem("late_interaction", "sentence_transformers:minilm") == ""
    assert "must be sentence_transformers" in model_problem("late_interaction", "openai:text-embedding-3-small")
    with pytest.raises(ModelError):  # where its files are not here before it is loaded
        MaxSimScorer(str(static)).score(PAIRS)


def test_the_memory_takes_in_what_it_gave_out(tmp_path):
    scorer = MaxSimScorer("minilm", device="cpu")
    scores = scorer.score(PAIRS)
    file = tmp_path / "memory.jsonl"
    export_store(file)
    (home() / "vectors.sqlite").unlink()
    assert import_store(file).refused == []
    scorer._encode = lambda kind, texts: MaxSimScorer._encode(scorer, kind, texts) if kind == "query" else 1 / 0
    assert scorer.score(PAIRS) == scores
