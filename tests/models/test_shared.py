import subprocess
import sys

import pytest
from loopback_models import ollama_server, openai_server, rerank_server

from rag_lab.errors import ModelError
from rag_lab.memory.ledger import Ledger
from rag_lab.models import shared
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.models.providers import CHAT_MODELS, CROSS_ENCODERS, EMBEDDERS, MODEL_KINDS, providers_of
from rag_lab.models.remote.rerankers import TeiScorer, VllmScorer
from rag_lab.models.shared import MeteredChat, booked, most_usd
from rag_lab.testing import ScriptedChat

EXAMPLES = [(kind, provider.example) for kind in MODEL_KINDS for provider in providers_of(kind).values()]


@pytest.mark.parametrize(("kind", "example"), EXAMPLES, ids=str)
def test_construction_needs_neither_weights_nor_keys(kind, example):
    assert shared.model_of(kind, example) is shared.model_of(kind, example)


def test_an_option_makes_another_model():
    large = shared.chat_model("llamacpp:smollm2?context=8192")
    assert large.context_tokens == 8192
    assert large is not shared.chat_model("llamacpp:smollm2")


def test_a_kind_knows_its_own_providers_alone():
    with pytest.raises(
        ModelError, match="Unknown cross-encoder provider 'llamacpp'.*sentence_transformers.* named module:Class"
    ):
        shared.scorer("cross_encoder", "llamacpp:smollm2")


@pytest.mark.parametrize("name", ["lamacpp:smollm2", "opnai:llama3.2:3b?base_url=http://127.0.0.1:1/v1"])
def test_a_slip_in_a_provider_is_told_with_what_is_near(name):
    with pytest.raises(ModelError, match=r"Unknown chat model provider '.*did you mean '(llamacpp|openai)'"):
        shared.chat_model(name)


def test_constructing_every_model_imports_no_model_library():
    heavy = ["torch", "transformers", "sentence_transformers", "langchain_core", "xllamacpp", "unsloth"]
    code = f"""
import sys
from rag_lab.models import shared
from rag_lab.models.providers import MODEL_KINDS, providers_of
for kind in MODEL_KINDS:
    for provider in providers_of(kind).values():
        shared.model_of(kind, provider.example)
sys.exit(",".join(name for name in {heavy} if name in sys.modules) or 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_doctor_is_told_what_is_missing(monkeypatch):
    def found(kind, name):
        return shared.provider_problem(name, providers_of(kind)[name])

    assert "GOOGLE_API_KEY" in found(CHAT_MODELS, "gemini")
    assert "OPENAI_API_KEY" in found(CHAT_MODELS, "openai")
    monkeypatch.setenv("GEMINI_API_KEY", "x")
    assert found(CHAT_MODELS, "gemini") == found(EMBEDDERS, "gemini") == ""


def test_doctor_is_told_whether_ollama_answers(monkeypatch):
    with ollama_server() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        assert shared.provider_problem("ollama", providers_of(CHAT_MODELS)["ollama"]) == ""
    assert "No Ollama answers" in shared.provider_problem("ollama", providers_of(CHAT_MODELS)["ollama"])
    monkeypatch.setenv("OLLAMA_HOST", f"{server.url}/v1")
    assert "OpenAI interface" in shared.provider_problem("ollama", providers_of(EMBEDDERS)["ollama"])


def test_doctor_is_told_whether_a_reranking_server_answers_here(monkeypatch):
    providers = providers_of(CROSS_ENCODERS)
    with rerank_server() as server:
        monkeypatch.setattr(TeiScorer, "address", server.url)
        assert shared.provider_problem("tei", providers["tei"]) == ""
    monkeypatch.setattr(VllmScorer, "address", server.url)
    problem = shared.provider_problem("vllm", providers["vllm"])
    assert problem == f"Nothing answers at {server.url}; a server elsewhere is vllm:MODEL?base_url=ADDRESS."


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
