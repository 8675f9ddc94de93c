import pytest

from rag_lab.errors import ModelError
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.models.providers import MODEL_KINDS
from rag_lab.testing import HashEmbedder, OverlapScorer, ScriptedChat


def ask(text):
    return ChatRequest((Message("user", text),))


def test_a_script_is_followed_and_recorded():
    model = ScriptedChat(["one two", ChatReply(error="no")])
    first, second = model.generate([ask("a b c"), ask("d")])
    assert (first.text, first.tokens_in, first.tokens_out, second.error) == ("one two", 3, 2, "no")
    assert [request.messages[0].content for request in model.requests] == ["a b c", "d"]
    with pytest.raises(ModelError, match="2 replies"):
        model.generate([ask("e")])


def test_a_function_is_a_script_too():
    model = ScriptedChat(lambda request: request.messages[-1].content.upper())
    assert model.generate([ask("a")])[0].text == "A"


def test_texts_that_share_words_are_near():
    model = HashEmbedder()
    near, far = model.embed_documents(["the press runs at 140 bar", "lunch is served"])
    (question,) = model.embed_queries(["Press, 140 bar?"])
    assert question @ near > question @ far
    assert (model.documents, model.queries) == (["the press runs at 140 bar", "lunch is served"], ["Press, 140 bar?"])


def test_overlap_is_a_share_of_the_question():
    assert OverlapScorer().score([("press bar", "The press."), ("?", "x"), ("a a", "a")]) == [0.5, 0, 1]


def test_no_double_can_be_named_by_a_user():
    assert not any("testing" in provider.target for kind in MODEL_KINDS for provider in kind.built_in.values())
