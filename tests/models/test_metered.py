import pytest

from rag_lab.errors import ModelError
from rag_lab.memory.ledger import Ledger
from rag_lab.models import shared
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.models.shared import MeteredChat, booked, most_usd
from rag_lab.testing import ScriptedChat, openai_server


def request(text="one two three", max_tokens=8):
    return ChatRequest((Message("user", text),), max_tokens=max_tokens)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite")


def test_a_refused_call_is_not_made_and_is_a_transient_error(ledger):
    ledger.start(None, 2, None)
    inner = ScriptedChat(lambda asked: "yes")
    replies = MeteredChat(inner, "s:x", ledger, "v").generate([request()] * 3)
    assert [reply.text for reply in replies] == ["yes", "yes", ""]
    assert replies[2].transient
    assert "limits.calls" in replies[2].error
    assert len(inner.requests) == 2
    assert list(ledger.refused()) == ["v"]


def test_calls_are_booked_under_what_they_are_made_for(ledger):
    model = MeteredChat(ScriptedChat(lambda asked: "a b"), "s:x", ledger, "v")
    booked(model, "generate").generate([request()])
    booked(model, "ragas.faithfulness").generate([request(), request()])
    found = {caller.purpose: (calls, made.tokens_in, made.tokens_out) for caller, calls, made in ledger.calls()}
    assert found == {"generate": (1, 3, 2), "ragas.faithfulness": (2, 6, 4)}


class Priced(ScriptedChat):
    priced = True
    provider = "openai"


def test_what_fits_once_replies_turn_out_cheap_is_asked_too(ledger):
    cheap = ChatReply(text="ok", tokens_in=1, tokens_out=1, cost_usd=0.0001)
    inner = Priced(lambda asked: cheap, name="gpt-4o")
    most = most_usd(inner, request(max_tokens=1000))
    assert most == pytest.approx(0.01, rel=0.05)
    ledger.start(1.5 * most, None, None)
    replies = MeteredChat(inner, "openai:gpt-4o", ledger, "v").generate([request(max_tokens=1000)] * 4)
    assert [reply.text for reply in replies] == ["ok"] * 4
    assert ledger.used().cost_usd == pytest.approx(0.0004)


def test_money_runs_out_before_the_limit_is_passed(ledger):
    dear = ChatReply(text="ok", tokens_out=1000, cost_usd=0.0101)
    inner = Priced(lambda asked: dear, name="gpt-4o")
    ledger.start(0.05, None, None)
    replies = MeteredChat(inner, "openai:gpt-4o", ledger, "v").generate([request(max_tokens=1000)] * 9)
    assert sum(bool(reply.text) for reply in replies) == 4
    assert ledger.used().cost_usd <= 0.05
    assert "limits.cost_usd = 0.05" in replies[-1].error


def test_a_model_that_cannot_be_used_costs_nothing(ledger):
    with pytest.raises(ModelError):
        MeteredChat(ScriptedChat([]), "s:x", ledger, "v").generate([request()])
    assert ledger.used().calls == 0


def test_the_registry_meters_where_the_environment_names_a_ledger(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with openai_server(["Paris."]) as server:
        spec = f"openai:tiny?base_url={server.url}"
        plain = shared.chat_model(spec)
        monkeypatch.setenv("RAG_LAB_LEDGER", str(ledger.path))
        monkeypatch.setenv("RAG_LAB_PAYER", "baseline")
        model = shared.chat_model(spec, "hyde")
        assert model.generate([request()])[0].text == "Paris."
    assert isinstance(model, MeteredChat)
    assert model.identity() == plain.identity()
    [(caller, calls, _)] = ledger.calls()
    assert (caller.payer, caller.purpose, caller.model, calls) == ("baseline", "hyde", spec, 1)
