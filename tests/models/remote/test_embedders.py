import json

import pytest
from loopback_models import Scripted, gemini_server, ollama_server, openai_server
from pytest import approx

from rag_lab.errors import ModelError
from rag_lab.models.remote.embedders import GeminiEmbedder, OllamaEmbedder, OpenAIEmbedder
from rag_lab.models.remote.ollama import NoAnswer
from rag_lab.models.remote.retries import RetryPolicy
from rag_lab.models.shared import embedder
from rag_lab.models.truncation import truncated_of
from rag_lab.testing import HashEmbedder

PROVIDERS = {
    "gemini": (gemini_server, GeminiEmbedder, "gemini-embedding-001"),
    "ollama": (ollama_server, OllamaEmbedder, "tiny"),
    "openai": (openai_server, OpenAIEmbedder, "m"),
}


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    for name in ("GOOGLE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "hunter2secret")


def rows(*vectors, places=None):
    places = places or range(len(vectors))
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in zip(places, vectors, strict=True)]
    return json.dumps({"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}})


@pytest.mark.parametrize(
    ("provider", "raw", "said"),
    [
        ("openai", rows(), "(data: "),
        ("openai", rows([1.0, float("nan")], [1.0, 1.0]), "(data.0.embedding.1: "),
        ("openai", rows([1.0], [2.0], places=[0, 0]), "do not count from 0"),
        ("openai", rows([1.0]), "returned 1 vectors for 2 texts"),
        ("openai", rows([1.0], [1.0, 2.0]), "different lengths"),
        ("ollama", '{"embeddings": []}', "(embeddings: "),
        ("ollama", '{"embeddings": [[1.0, NaN], [1.0, 1.0]]}', "(embeddings.0.1: "),
        ("ollama", '{"embeddings": [[1.0, 2.0], [1.0]]}', "different lengths (1 and 2)"),
        ("ollama", '{"embeddings": [[1.0]]}', "returned 1 vectors for 2 texts"),
        ("ollama", '{"error": "out of memory"}', "out of memory"),
        ("gemini", '{"embeddings": []}', "(embeddings: "),
        ("gemini", '{"embeddings": [{"values": []}, {"values": [1.0]}]}', "(embeddings.0.values: "),
        ("gemini", '{"embeddings": [{"values": [1.0, NaN]}, {"values": [1.0]}]}', "(embeddings.0.values.1: "),
        ("gemini", '{"embeddings": [{"values": [1.0, 2.0]}, {"values": [1.0]}]}', "different lengths (1 and 2)"),
        ("gemini", '{"embeddings": [{"values": [1.0]}]}', "returned 1 vectors for 2 texts"),
    ],
)  # fmt: skip
def test_vectors_that_cannot_be(provider, raw, said):
    server_of, kind, name = PROVIDERS[provider]
    with server_of([Scripted(raw=raw)] * 9) as server:
        model = kind(name, base_url=server.url)
        model.retry = RetryPolicy(2, sleep=lambda _: None)
        with pytest.raises(ModelError) as caught:
            model.embed_documents(["a", "b"])
    assert said in str(caught.value)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_batches_are_put_together_in_order(provider):
    server_of, kind, name = PROVIDERS[provider]
    texts = [f"text number {number}" for number in range(7)]
    with server_of() as server:
        small = kind(name, base_url=server.url, batch_size=2, concurrency=3).embed_documents(texts)
        assert len(server.bodies) == 4
        assert (kind(name, base_url=server.url).embed_documents(texts) == small).all()
    if provider == "gemini":
        assert small == approx(HashEmbedder(16).embed_documents(texts), abs=1e-6)


def test_gemini_tells_documents_and_questions_apart():
    with gemini_server() as server:
        model = GeminiEmbedder("gemini-embedding-001", base_url=server.url)
        model.embed_documents(["a"])
        model.embed_queries(["a"])
    assert [body["requests"][0]["taskType"] for body in server.bodies] == ["RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"]


def test_texts_go_out_as_they_are_with_prefixes_and_dimensions():
    with openai_server() as server:
        spec = f"openai:tiny?base_url={server.url}&dimensions=8&document_prefix=passage:%20&query_prefix=query:%20"
        model = embedder(spec)
        found = model.embed_documents(["a b"])
        model.embed_queries(["a b"])
    documents, queries = server.bodies
    assert server.paths == ["/v1/embeddings"] * 2
    assert (documents["input"], queries["input"]) == (["passage: a b"], ["query: a b"])
    assert (documents["dimensions"], documents["encoding_format"], found.shape) == (8, "float", (1, 8))


def test_what_changes_vectors_or_what_is_counted_of_them_is_in_the_identity_and_nothing_else():
    def identity(**options):
        return dict(OpenAIEmbedder("m", base_url="http://127.0.0.1:1/v1", **options).identity())

    assert identity() == {"provider": "openai", "name": "m", "base_url": "http://127.0.0.1:1/v1"}
    assert identity(batch_size=2, concurrency=1, timeout_s=3) == identity()
    for option in ({"dimensions": 8}, {"context": 512}, {"query_prefix": "q"}, {"document_prefix": "d"}):
        assert identity(**option) == identity() | option


def test_rows_are_put_in_their_places():
    with openai_server([Scripted(raw=rows([0.0, 2.0], [3.0, 0.0], places=[1, 0]))]) as server:
        found = OpenAIEmbedder("m", base_url=server.url).embed_documents(["a", "b"])
    assert found.tolist() == [[1, 0], [0, 1]]


def test_a_server_elsewhere_needs_a_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        OpenAIEmbedder("text-embedding-3-small").embed_documents(["a"])


def test_prefixes_window_and_dimensions_go_out_and_into_the_identity():
    with ollama_server() as server:
        spec = f"ollama:tiny?base_url={server.url}&context=512&dimensions=8&query_prefix=search_query:%20"
        model = embedder(spec)
        model.embed_documents(["a b"])
        found = model.embed_queries(["a b"])
        plain = OllamaEmbedder("tiny", base_url=server.url).identity()
    documents, queries = server.bodies
    assert (documents["input"], queries["input"]) == (["a b"], ["search_query: a b"])
    assert (queries["options"], queries["dimensions"], found.shape) == ({"num_ctx": 512}, 8, (1, 8))
    given = {"context": 512, "dimensions": 8, "query_prefix": "search_query: "}
    assert dict(model.identity()) == {**plain, **given}


def test_the_whole_window_of_the_model_is_asked_for_and_what_lies_beyond_is_counted():
    with ollama_server(context_tokens=64) as server:
        model = OllamaEmbedder("tiny", base_url=server.url, document_prefix="passage: ")
        given = OllamaEmbedder("tiny", base_url=server.url, context=32)
        long = "grease " * 100 + "The answer."
        found = model.embed_documents([long, long.replace("answer", "other word")])
        assert (found[0] == found[1]).all()  # nobody read the tail
        assert (model.most_tokens, given.most_tokens) == (64, 32)
        assert truncated_of(model, ["short", long], "document")[0] == 0
        assert truncated_of(model, [long], "document")[0] >= 103 - 64
    assert server.bodies[0]["options"] == {"num_ctx": 64}


def test_a_server_that_is_off_does_not_tell_its_window_and_is_asked_again_before_it_embeds(monkeypatch):
    def no_answer(name):
        raise NoAnswer("No Ollama answers.")

    with ollama_server(context_tokens=64) as server:
        model = OllamaEmbedder("tiny", base_url=server.url)
        with monkeypatch.context() as patch:
            patch.setattr(model.server, "described", no_answer)
            assert model.most_tokens is None
            with pytest.raises(NoAnswer):
                model.embed_documents(["a"])
        model.embed_documents(["a"])
    assert [body["options"] for body in server.bodies] == [{"num_ctx": 64}]
    assert model.most_tokens == 64
