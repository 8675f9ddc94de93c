import json

import pytest

from rag_lab.errors import ModelError
from rag_lab.models.remote.embedders import OpenAIEmbedder
from rag_lab.models.remote.requests import RetryPolicy
from rag_lab.models.shared import embedder
from rag_lab.testing import Scripted, openai_server


def rows(*vectors, places=None):
    places = places or range(len(vectors))
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in zip(places, vectors, strict=True)]
    return json.dumps({"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}})


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


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (rows(), "(data: "),
        (rows([1.0, float("nan")], [1.0, 1.0]), "(data.0.embedding.1: "),
        (rows([1.0], [2.0], places=[0, 0]), "do not count from 0"),
        (rows([1.0]), "returned 1 vectors for 2 texts"),
        (rows([1.0], [1.0, 2.0]), "different lengths"),
        ("<html>", "a web page"),
        ('{"error": {"message": "no credit left"}}', "no credit left"),
    ],
)
def test_vectors_that_cannot_be(raw, said):
    with openai_server([Scripted(raw=raw)] * 9) as server:
        model = OpenAIEmbedder("m", base_url=server.url)
        model.retry = RetryPolicy(2, sleep=lambda _: None)
        with pytest.raises(ModelError) as caught:
            model.embed_documents(["a", "b"])
    assert said in str(caught.value)


def test_a_rejected_key_is_not_tried_again_and_not_repeated(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2secret")
    answers = [Scripted("hunter2secret is wrong", status=401)] * 9
    with openai_server(answers) as server, pytest.raises(ModelError, match="key was rejected") as caught:
        OpenAIEmbedder("m", base_url=server.url).embed_documents(["a"])
    assert len(server.bodies) == 1
    assert "hunter2secret" not in str(caught.value)


def test_a_server_elsewhere_needs_a_key():
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        OpenAIEmbedder("text-embedding-3-small").embed_documents(["a"])
