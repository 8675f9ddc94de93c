"""An answer in the tail of a long chunk: at every boundary what no model read is counted on the trace."""

import json

import pytest
from loopback_models import Scripted, openai_server

from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question
from rag_lab.testing import HashEmbedder

FILLER = "Maintenance of the press follows the plan of the plant and is written down by the shift. "
ANSWER = "The relief valve opens at 212 bar."
ASKED = Question("q", "At which pressure does the relief valve open?")
ONE_CHUNK = {"corpus.chunk_size": 8000, "corpus.chunk_overlap": 0, "corpus.parents": "none", "answer.name": "none",
             "query.rewrite": "none", "query.hyde": "none"}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One file whose answer stands behind 80 sentences, and one that is short."""
    corpus = tmp_path_factory.mktemp("long")
    (corpus / "press.txt").write_text(FILLER * 80 + ANSWER, encoding="utf-8")
    (corpus / "oven.txt").write_text("The filter of the oven is changed every month.", encoding="utf-8")
    return corpus


def asked(folder, question=ASKED, **changes):
    config = PipelineConfig().override(ONE_CHUNK | {key.replace("__", "."): value for key, value in changes.items()})
    (trace,) = Pipeline(folder, config, progress=False).run([question])
    return trace


def record(trace, stage):
    return next(record for record in trace.stages if record.stage == stage)


def test_what_was_never_embedded_of_the_chunks_found_is_on_the_trace(folder):
    found = record(asked(folder, retrieval__mode="dense"), "search_dense")
    assert found.truncated_tokens > 1000
    assert found.reason == f"of 1 of 2 chunks found, {found.truncated_tokens:,} tokens were never embedded"
    assert record(asked(folder, retrieval__mode="dense", corpus__chunk_size=600), "search_dense").truncated_tokens == 0


def test_a_question_that_is_longer_than_the_model_reads_is_counted(folder):
    long = Question("q", "maintenance " * 300 + ASKED.text)
    short = asked(folder, retrieval__mode="dense", corpus__chunk_size=600)
    found = record(asked(folder, long, retrieval__mode="dense", corpus__chunk_size=600), "search_dense")
    assert record(short, "search_dense").truncated_tokens == 0
    assert found.truncated_tokens == 300 + 9 + 2 - 256
    assert found.reason == "55 tokens of what is searched by were not read"


def test_who_embeds_nothing_loses_nothing_there(folder):
    assert {r.truncated_tokens for r in asked(folder, retrieval__mode="bm25").stages} == {0}


def test_where_it_is_refused_a_corpus_that_would_be_cut_is_not_embedded(folder):
    with pytest.raises(ConfigError, match="50% of the chunks are longer than minilm reads .* on_truncation is refuse"):
        asked(folder, retrieval__mode="dense", on_truncation="refuse")
    assert asked(folder, retrieval__mode="bm25", on_truncation="refuse").failure is None


class KnownLate(HashEmbedder):
    """As weights of the hub: how much they read is known once they are here."""

    @property
    def most_tokens(self):
        return 20 if self.documents or self.queries else None

    def text_tokens(self, texts, kind):
        return [len(text.split()) for text in texts]


def test_what_is_known_of_a_model_only_once_it_has_embedded_is_refused_or_counted_then(folder):
    def pipeline(on_truncation):
        config = PipelineConfig().override(
            ONE_CHUNK | {"retrieval.mode": "dense", "on_truncation": on_truncation, "corpus.chunk_size": 7000}
        )
        return Pipeline(folder, config, progress=False).replace(embedding_model=KnownLate())

    with pytest.raises(ConfigError, match="of the chunks are longer than KnownLate.* reads .* on_truncation is refuse"):
        pipeline("refuse").run([ASKED])
    counting = pipeline("count")
    assert counting.truncation is None
    (trace,) = counting.run([ASKED])
    assert record(trace, "search_dense").truncated_tokens > 1000
    assert counting.truncation.total.n_longer == 2


def test_where_it_is_refused_a_question_that_would_be_cut_fails_and_others_do_not(folder):
    refusing = {"retrieval__mode": "dense", "corpus__chunk_size": 600, "on_truncation": "refuse"}
    assert asked(folder, **refusing).failure is None
    trace = asked(folder, Question("q", "maintenance " * 300), **refusing)
    assert trace.failure.stage == "search_dense"
    assert trace.failure.reason == ("refused, as on_truncation says: 46 tokens of what is searched by were not read")
    counted = asked(folder, Question("q", "maintenance " * 300), **refusing | {"on_truncation": "count"})
    assert counted.failure is None and record(counted, "search_dense").remembered


def answered(folder, window, **changes):
    """Ask with the whole file as context, of a server that reads `window` tokens of a prompt."""
    reply = Scripted(json.dumps({"answer": "212 bar", "citations": [1]}), window=window)
    with openai_server(lambda _: reply) as server:
        chat = {"models.generation": f"openai:tiny?base_url={server.url}", "answer.name": "llm",
                "answer.context_tokens": 8000, "retrieval.mode": "bm25"}  # fmt: skip
        config = PipelineConfig().override(ONE_CHUNK | chat | changes)
        (trace,) = Pipeline(folder, config, progress=False).run([ASKED])
    return trace


def test_what_a_chat_server_did_not_read_of_a_prompt_is_counted_and_refused_where_it_should_be(folder):
    whole, cut = answered(folder, None), answered(folder, 512)
    assert ANSWER in cut.prompt
    assert record(whole, "generate").truncated_tokens == 0
    n_words = len(whole.prompt.split())
    assert 0 < n_words - 512 - record(cut, "generate").truncated_tokens < 10  # the roles are no part of what is sent
    assert cut.answer is not None
    refused = answered(folder, 512, on_truncation="refuse")
    assert refused.failure.stage == "generate"
    assert refused.failure.reason.startswith("refused, as on_truncation says: ")


@pytest.mark.slow
def test_what_a_reranker_does_not_read_is_counted(folder):
    reranked = {"retrieval__mode": "bm25", "rerank__name": "query_likelihood"}
    found = record(asked(folder, **reranked), "rerank")
    assert found.truncated_tokens > 1000
    assert found.reason == "1 of 2 passages are longer than the reranker reads"
    assert record(asked(folder, **reranked, corpus__chunk_size=600), "rerank").truncated_tokens == 0
