"""The first model that answers plays a role; a trace, an identity and what is remembered are that model's."""

import logging

import pytest
from loopback_models import Scripted, gemini_server, ollama_server, openai_server, rerank_server

from rag_lab.errors import ModelError
from rag_lab.experiment.stage_identities import limit_problems, model_problem, price_of
from rag_lab.memory.results import Memory
from rag_lab.models import shared
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.remote import ollama as ollama
from rag_lab.records import Question, Trace
from rag_lab.stages.generate import Generate
from rag_lab.stages.run_stage import run_stage

OFF = "http://127.0.0.1:9"  # where nothing listens


@pytest.fixture(autouse=True)
def _later(monkeypatch):
    """Each choice is made anew, as a minute later or in another process."""
    monkeypatch.setattr(shared, "_HOLDS_S", -1.0)
    monkeypatch.setattr(shared, "_chosen_of", {})
    ollama._digest.cache_clear()


def of(server, name="tiny"):
    provider = "openai" if server.url.endswith("/v1") else "ollama"
    return f"{provider}:{name}?base_url={server.url}&max_attempts=1"


def test_the_first_answers_where_it_can_and_the_second_is_not_looked_at():
    with ollama_server() as first, openai_server() as second:
        text = f"{of(first)} | {of(second)}"
        model = shared.chat_model(text)
        assert shared.spec_of(model) == of(first)
        assert (first.looks, second.looks) == (["/api/tags"], [])
    assert shared.chosen_models([text, "other"]) == {text: [of(first)]}


@pytest.mark.parametrize(
    "seen", [Scripted(status=500), Scripted(status=401), Scripted(raw="<html>"), Scripted(delay_s=2)]
)
def test_the_second_plays_where_the_first_fails_its_check(seen, monkeypatch, caplog):
    monkeypatch.setattr(shared, "CHECK_S", 0.5 if seen.delay_s else 20)
    with ollama_server() as first, openai_server(["Paris."]) as second, caplog.at_level(logging.WARNING):
        first.seen = seen
        model = shared.chat_model(f"{of(first)} | {of(second)}")
        (reply,) = model.generate([ChatRequest((Message("user", "Capital of France?"),))])
        assert dict(model.identity()) == dict(shared.chat_model(of(second)).identity())
    assert (reply.text, shared.spec_of(model), first.bodies) == ("Paris.", of(second), [])
    assert f"{of(first)} does not answer" in caplog.text


def test_a_server_without_the_model_and_a_key_that_is_not_set_are_passed_over():
    with ollama_server(models=["other"]) as first, openai_server() as third:
        text = f"{of(first)} | gemini:gemini-2.5-flash | {of(third)}"
        assert shared.spec_of(shared.chat_model(text)) == of(third)


def test_where_none_answers_the_first_is_asked_and_says_why(caplog):
    text = f"openai:a?base_url={OFF}/v1&max_attempts=1 | openai:b?base_url={OFF}/v1&max_attempts=1"
    with caplog.at_level(logging.WARNING):
        model = shared.chat_model(text)
    assert shared.spec_of(model) == text.partition(" | ")[0]
    assert "None of" in caplog.text
    assert "did not answer" in model.generate([ChatRequest((Message("user", "?"),))])[0].error


def test_for_a_while_a_choice_holds_and_costs_no_look(monkeypatch):
    monkeypatch.setattr(shared, "_HOLDS_S", 60.0)
    with ollama_server() as first, openai_server() as second:
        text = f"{of(first)} | {of(second)}"
        assert {shared.spec_of(shared.chat_model(text)) for _ in range(5)} == {of(first)}
        assert first.looks == ["/api/tags"]


def test_traces_and_what_is_remembered_are_the_model_s_that_answered(tmp_path):
    memory, trace = Memory(tmp_path / "memory.sqlite"), Trace(Question("q1", "Capital of France?"))

    def answer(text):
        stage = Generate(shared.chat_model(text), max_tokens=9, temperature=0)
        (done,) = run_stage(stage, [trace], memory)
        return done.raw_text, done.stages[-1].model, done.stages[-1].remembered

    with ollama_server(["First."] * 9) as first, openai_server(["Second."] * 9) as second:
        text = f"{of(first)} | {of(second)}"
        first.seen = Scripted(status=503)
        assert answer(text) == ("Second.", of(second), False)
        first.seen = Scripted()
        assert answer(text) == ("First.", of(first), False)
        first.seen = Scripted(status=503)
        assert answer(text) == ("Second.", of(second), True)
        assert answer(of(second)) == ("Second.", of(second), True)
        first.seen = Scripted()
        assert answer(text) == ("First.", of(first), True)


def test_embedders_and_rerankers_have_stand_ins_too(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "hunter2secret")
    with gemini_server() as gemini, openai_server() as openai, rerank_server() as rerank:
        second = f"openai:tiny?base_url={openai.url}"
        first = f"gemini:gemini-embedding-001?base_url={gemini.url}"
        assert shared.embedder(f"{first} | {second}") is shared.embedder(first)
        assert gemini.looks == ["/v1beta/models/gemini-embedding-001"]
        gemini.seen = Scripted(status=404)
        assert shared.embedder(f"{first} | {second}") is shared.embedder(second)
        last = f"vllm:tiny?base_url={rerank.url}"
        assert shared.scorer("cross_encoder", f"tei:tiny?base_url={OFF} | {last}") is shared.scorer(
            "cross_encoder", last
        )


def test_weights_that_are_not_here_are_passed_over():
    text = "llamacpp:/none.gguf | llamacpp:smollm2"
    assert shared.spec_of(shared.chat_model(text)) == "llamacpp:smollm2"


def test_a_slip_in_any_name_is_told_and_a_lack_only_where_none_is_left():
    assert "Unknown chat model provider 'gemni'" in model_problem("generation", "llamacpp:smollm2 | gemni:x")
    assert model_problem("generation", "gemini:gemini-2.5-flash | llamacpp:smollm2") == ""
    both = model_problem("generation", "gemini:gemini-2.5-flash | openai:gpt-4o-mini")
    assert "GOOGLE_API_KEY" in both and "OPENAI_API_KEY" in both
    assert "shows no images" in model_problem("vision", "llamacpp:smollm2 | transformers:smollm2")
    with pytest.raises(ModelError, match="gemni"):
        shared.chat_model("llamacpp:smollm2 | gemni:x")


def test_money_is_limited_by_the_prices_of_all_that_may_play(monkeypatch):
    from rag_lab.experiment.config import Limits

    text = "llamacpp:smollm2 | openai:unheard-of-model"
    (problem,) = limit_problems(Limits(cost_usd=1), [("generation", text)])
    assert "openai:unheard-of-model" in problem
    assert price_of(text) == "free"
