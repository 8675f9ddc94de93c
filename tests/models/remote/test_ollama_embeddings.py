import pytest

from rag_lab.errors import ModelError
from rag_lab.models.remote.embedders import OllamaEmbedder
from rag_lab.models.remote.ollama_server import NoAnswer
from rag_lab.models.remote.requests import RetryPolicy
from rag_lab.models.shared import embedder
from rag_lab.models.truncation import truncated_in_texts
from rag_lab.testing import Scripted, ollama_server


def test_prefixes_window_and_dimensions_go_out_and_into_the_identity():
    with ollama_server() as server:
        spec = f"ollama:tiny?base_url={server.url}&context=512&dimensions=8&query_prefix=search_query:%20"
        model = embedder(spec)
        model.embed_documents(["a b"])
        rows = model.embed_queries(["a b"])
        plain = OllamaEmbedder("tiny", base_url=server.url).identity()
    documents, queries = server.bodies
    assert (documents["input"], queries["input"]) == (["a b"], ["search_query: a b"])
    assert (queries["options"], queries["dimensions"], rows.shape) == ({"num_ctx": 512}, 8, (1, 8))
    given = {"context": 512, "dimensions": 8, "query_prefix": "search_query: "}
    assert dict(model.identity()) == {**plain, **given}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ('{"embeddings": []}', "(embeddings: "),
        ('{"embeddings": [[1.0, NaN], [1.0, 1.0]]}', "(embeddings.0.1: "),
        ('{"embeddings": [[1.0, 2.0], [1.0]]}', "different lengths (1 and 2)"),
        ('{"embeddings": [[1.0]]}', "returned 1 vectors for 2 texts"),
        ('{"error": "out of memory"}', "out of memory"),
    ],
)
def test_vectors_that_cannot_be(raw, said):
    with ollama_server([Scripted(raw=raw)] * 9) as server:
        model = OllamaEmbedder("tiny", base_url=server.url)
        model.retry = RetryPolicy(2, sleep=lambda _: None)
        with pytest.raises(ModelError) as caught:
            model.embed_documents(["a", "b"])
    assert said in str(caught.value)


def test_batches_are_put_together_in_order():
    with ollama_server() as server:
        small = OllamaEmbedder("tiny", base_url=server.url, batch_size=2, concurrency=3).embed_documents(list("abcde"))
        whole = OllamaEmbedder("tiny", base_url=server.url).embed_documents(list("abcde"))
    assert [len(body["input"]) for body in server.bodies[-1:]] == [5]
    assert (small == whole).all()


def test_the_whole_window_of_the_model_is_asked_for_and_what_lies_beyond_is_counted():
    with ollama_server(context_tokens=64) as server:
        model = OllamaEmbedder("tiny", base_url=server.url, document_prefix="passage: ")
        given = OllamaEmbedder("tiny", base_url=server.url, context=32)
        long = "grease " * 100 + "The answer."
        rows = model.embed_documents([long, long.replace("answer", "other word")])
        assert (rows[0] == rows[1]).all()  # nobody read the tail
        assert (model.most_tokens, given.most_tokens) == (64, 32)
        assert truncated_in_texts(model, ["short", long], "document")[0] == 0
        assert truncated_in_texts(model, [long], "document")[0] >= 103 - 64
    assert server.bodies[0]["options"] == {"num_ctx": 64}


def test_a_server_that_is_off_does_not_tell_its_window_and_is_asked_again_before_it_embeds(monkeypatch):
    with ollama_server(context_tokens=64) as server:
        model = OllamaEmbedder("tiny", base_url=server.url)
        with monkeypatch.context() as patch:
            patch.setattr(model.server, "described", _no_answer)
            assert model.most_tokens is None
            with pytest.raises(NoAnswer):
                model.embed_documents(["a"])
        model.embed_documents(["a"])
    assert [body["options"] for body in server.bodies] == [{"num_ctx": 64}]
    assert model.most_tokens == 64


def _no_answer(name):
    raise NoAnswer("No Ollama answers.")
