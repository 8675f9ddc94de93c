"""Understanding, HyDE and a judge ask for no thinking; a model that thinks nevertheless still gives its reply."""

import json

import pytest
from loopback_models import Scripted, gemini_server, openai_server
from pydantic import BaseModel

from rag_lab.evaluation.judge_queue import UnusableReply, read_reply
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.models.remote.gemini import GeminiChat
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.records import Question, Trace
from rag_lab.stages.rewrite_and_hyde import Hyde
from rag_lab.stages.run_stage import run_stage
from rag_lab.stages.understand import LlmUnderstanding
from rag_lab.testing import ScriptedChat

TRACE = Trace(Question("q1", "What trips the oven?"), search_query="oven trips", hyde_route="general")
OBJECT = json.dumps({"class": "fuzzy", "rewritten": "What trips the curing oven?", "hyde": True})
NEEDS = 100  # tokens of thought, of which a word is one


class Verdict(BaseModel):
    verdict: int


def gemini_pro(body):
    """Think 100 words out of what may be written, as 2.5 Pro does whatever it is told."""
    sent = body["generationConfig"]
    assert sent["thinkingConfig"]["thinking_budget"] == 128
    if sent["maxOutputTokens"] <= NEEDS:
        return Scripted("", thinking="word " * sent["maxOutputTokens"], finish="length")
    schema = sent.get("responseJsonSchema", {}).get("properties", {})
    text = '{"verdict": 1}' if "verdict" in schema else OBJECT if schema else "The burner trips it."
    return Scripted(text, thinking="word " * NEEDS)


def always_thinking(body):
    """Think without end, as DeepSeek-R1's template lets it, until a thought is closed."""
    if not body.get("continue_final_message"):
        return Scripted("", thinking="word " * body["max_tokens"], finish="length")
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
    return Scripted('{"verdict": 1}' if "verdict" in schema else OBJECT if schema else "The burner trips it.")


@pytest.fixture(params=["gemini", "server"])
def model(request, monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "AIzaHunter2Secret")
    if request.param == "gemini":
        with gemini_server(gemini_pro) as server:
            yield GeminiChat("gemini-2.5-pro", base_url=server.url)
    else:
        with openai_server(always_thinking) as server:
            yield OpenAIChat("deepseek-r1-distill", base_url=server.url)


def test_it_understands_writes_and_judges(model):
    (understood,) = run_stage(LlmUnderstanding(model), [TRACE])
    assert (understood.proposed_query, understood.stages[-1].status) == ("What trips the curing oven?", "ok")
    assert understood.stages[-1].thinking_tokens > 0
    (written,) = run_stage(Hyde(model, max_tokens=64), [TRACE])
    assert (written.hypothetical, written.stages[-1].status) == ("The burner trips it.", "ok")
    (judged,) = model.generate([ChatRequest((Message("user", "?"),), 64, json_schema=Verdict.model_json_schema())])
    assert read_reply(judged, Verdict).verdict == 1


def test_a_thought_without_a_reply_is_named():
    thought = ChatReply(thinking="word", tokens_in=5, tokens_out=9, truncated=True)
    said = "the model thought and wrote no reply"
    for stage in (LlmUnderstanding(ScriptedChat([thought])), Hyde(ScriptedChat([thought]), max_tokens=9)):
        (done,) = run_stage(stage, [TRACE])
        assert (done.stages[-1].status, said in done.stages[-1].reason) == ("fallback", True)
    with pytest.raises(UnusableReply, match="the judge thought and wrote no reply"):
        read_reply(thought, Verdict)
