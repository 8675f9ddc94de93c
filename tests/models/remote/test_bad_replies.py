"""A gateway before a model may answer anything with status 200: it is never remembered, and told in words."""

import gzip
import json

import pytest

from rag_lab.errors import ModelError
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.remote.embedders import GeminiEmbedder
from rag_lab.models.remote.failures import BadReply
from rag_lab.models.remote.gemini import GeminiChat
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.models.remote.replies import check_completion
from rag_lab.models.remote.requests import RetryPolicy
from rag_lab.records import Question, Trace
from rag_lab.stages.answer.generate import Generate
from rag_lab.stages.run_stage import run_stage
from rag_lab.testing import Scripted, gemini_server, openai_server

pytestmark = pytest.mark.slow

ASKED = ChatRequest((Message("user", "Capital of France?"),), max_tokens=9)
MESSAGE = {"role": "assistant", "content": "Paris."}
CHOICE = {"index": 0, "finish_reason": "stop", "message": MESSAGE}
PAGE = "<!DOCTYPE html><html><head><title>502 Bad\nGateway</title></head></html>"


def completion(**changes):
    return json.dumps(
        {"id": "1", "object": "chat.completion", "created": 0, "model": "tiny", "choices": [CHOICE], **changes}
    )


def usage(prompt_tokens, completion_tokens):
    return {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens, "total_tokens": 1}


ANY = {
    "page": (PAGE, "a web page instead of JSON: 502 Bad Gateway"),
    "text": ("upstream connect error", "not JSON: 'upstream connect error'"),
    "nothing": ("", "with nothing instead of JSON"),
    "list": ("[1, 2]", "JSON that is no "),
    "null": ("null", "JSON that is no "),
    "deep": ("[" * 100_000, "not JSON"),
    "latin1": ('{"choices": "é"}'.encode("latin-1"), "not UTF-8"),
    "half_a_pair": (r'{"candidates": "\ud800", "choices": "\ud800"}', "not JSON"),
    "error": ('{"error": {"message": "no healthy upstream", "code": 503}}', "under status 200: no healthy upstream"),
    "error_text": ('{"error": "no credit left"}', "under status 200: no credit left"),
    "other": ('{"ok": true}', "Field required"),
    "half": (completion()[:90], "ends in the middle: '{"),
    "half_a_stream": (
        'data: {"choices": [{"delta": {"content": "Par"}}]}\n\ndata: {"cho',
        "a stream of events where one",
    ),
}
OPENAI = {
    "null_choices": (completion(choices=None), "(choices: "),
    "no_choice": (completion(choices=[]), "(choices: "),
    "choices_text": (completion(choices="none"), "(choices: "),
    "no_message": (completion(choices=[{"index": 0}]), "(choices.0.message: "),
    "null_message": (completion(choices=[{"message": None}]), "(choices.0.message: "),
    "no_role": (completion(choices=[{**CHOICE, "message": {"content": "Paris."}}]), "(choices.0.message.role: "),
    "content_number": (
        completion(choices=[{**CHOICE, "message": {**MESSAGE, "content": 5}}]),
        "(choices.0.message.content",
    ),
    "usage_words": (completion(usage=usage("seven", "three")), "(usage.prompt_tokens: "),
    "usage_null": (completion(usage=usage(None, None)), "(usage.prompt_tokens: "),
    "usage_list": (completion(usage=[7, 3]), "(usage: "),
    "usage_empty": (completion(usage={}), "(usage.prompt_tokens: "),
    "silence": (
        completion(choices=[{"index": 0, "message": {"role": "assistant", "content": None}}]),
        "no text (finish reason: none given)",
    ),
}
GEMINI = {
    "null_candidates": ('{"candidates": null}', "(candidates: "),
    "no_candidate": ('{"candidates": []}', "(candidates: "),
    "candidate_text": ('{"candidates": ["Paris."]}', "(candidates.0: "),
    "parts_text": ('{"candidates": [{"content": {"parts": ["Paris."]}}]}', "(candidates.0.content.parts.0: "),
    "usage_words": (
        '{"candidates": [{"content": {"parts": []}}], "usageMetadata": {"promptTokenCount": "seven"}}',
        "(usageMetadata.promptTokenCount: ",
    ),
}


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "AIzaHunter2Secret")


def patient(model):
    model.retry = RetryPolicy(2, sleep=lambda _: None)
    return model


def assert_named_and_transient(reply, said):
    assert (reply.text, reply.transient, reply.tokens_out) == ("", True, 0)
    assert said in reply.error
    assert not any(word in reply.error for word in ("Error:", "NoneType", "index out of range", "subscriptable", "\n"))


@pytest.mark.parametrize("kind", [*ANY, *OPENAI])
def test_an_openai_compatible_server(kind):
    raw, said = (ANY | OPENAI)[kind]
    with openai_server([Scripted(raw=raw)] * 9) as server:
        (reply,) = patient(OpenAIChat("tiny", base_url=server.url)).generate([ASKED])
    assert_named_and_transient(reply, said)
    assert len(server.bodies) == (1 if kind == "silence" else 2)


@pytest.mark.parametrize("kind", [*ANY, *GEMINI])
def test_gemini(kind):
    raw, said = (ANY | GEMINI)[kind]
    with gemini_server([Scripted(raw=raw)] * 9) as server:
        (reply,) = patient(GeminiChat("gemini-2.5-flash", base_url=server.url)).generate([ASKED])
    assert_named_and_transient(reply, said)
    assert len(server.bodies) == 2


@pytest.mark.parametrize(("raw", "said"), ANY.values())
def test_embeddings(raw, said):
    with gemini_server([Scripted(raw=raw)] * 9) as server:
        model = patient(GeminiEmbedder("gemini-embedding-001", base_url=server.url))
        with pytest.raises(ModelError) as caught:
            model.embed_documents(["a", "b"])
    assert said in str(caught.value)


def test_a_prompt_that_gemini_blocks_is_no_accident():
    blocked = '{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}'
    with gemini_server([Scripted(raw=blocked)]) as server:
        (reply,) = patient(GeminiChat("gemini-2.5-flash", base_url=server.url)).generate([ASKED])
    assert (reply.transient, reply.error) == (False, "The model returned no text (finish reason: prohibited_content).")


def test_content_in_parts_and_usage_that_is_left_out_are_allowed():
    parts = completion(choices=[{**CHOICE, "message": {**MESSAGE, "content": [{"type": "text", "text": "Paris."}]}}])
    with openai_server([Scripted(raw=parts)]) as server:
        (reply,) = OpenAIChat("tiny", base_url=server.url).generate([ASKED])
    assert (reply.text, reply.error) == ("Paris.", "")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Scripted(raw=b" " * 5_000_000), "longer than 4 MiB"),
        (Scripted(raw=b" " * 65_536, endless=True), "longer than 4 MiB"),
        (Scripted(raw=gzip.compress(b" " * 50_000_000), headers={"Content-Encoding": "gzip"}), "compressed"),
    ],
    ids=["told", "endless", "packed"],
)
def test_a_reply_is_read_up_to_a_bound(answer, said):
    with openai_server([answer] * 9) as server:
        (reply,) = patient(OpenAIChat("tiny", base_url=server.url)).generate([ASKED])
    assert_named_and_transient(reply, said)
    assert "identity" in server.headers[0].values()


def test_a_body_that_trickles_on_for_ever_ends_with_the_time_out():
    with openai_server([Scripted(raw=b" ", endless=True)]) as server:
        model = OpenAIChat("tiny", base_url=server.url, timeout_s=0.3, max_attempts=1)
        (reply,) = model.generate([ASKED])
    assert reply.transient
    assert "did not answer" in reply.error or "longer than" in reply.error


@pytest.mark.parametrize("status", [401, 500])
def test_a_failure_is_known_by_its_status_whatever_its_body(status):
    answer = Scripted(status=status, raw=gzip.compress(b" " * 9_000_000), headers={"Content-Encoding": "gzip"})
    with openai_server([answer] * 9) as server:
        model = patient(OpenAIChat("tiny", base_url=server.url))
        if status == 401:
            with pytest.raises(ModelError, match="key was rejected"):
                model.generate([ASKED])
        else:
            assert "status 500" in model.generate([ASKED])[0].error


def test_the_same_command_asks_again_once_the_gateway_is_mended(tmp_path):
    memory, trace = Memory(tmp_path / "memory.sqlite"), Trace(Question("q1", "Capital of France?"))
    with openai_server([Scripted(raw=PAGE), Scripted(raw=PAGE), completion()]) as server:
        stage = Generate(patient(OpenAIChat("tiny", base_url=server.url)), max_tokens=9, temperature=0)
        (first,) = run_stage(stage, [trace], memory)
        assert "a web page instead of JSON" in first.failure.reason
        assert memory.counts() == {}
        (second,) = run_stage(stage, [trace], memory)
    assert not second.failure
    assert memory.counts() == {"generate": 1}


def test_a_page_of_titles_that_never_close_is_refused_at_once():
    with pytest.raises(BadReply, match="a web page instead of JSON$"):
        check_completion(b"<html>" + b"<title>" * 500_000)


TOOL = {"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}


@pytest.mark.parametrize("arguments", ["{}", "{not json"])
def test_a_tool_that_is_called_in_place_of_a_reply_is_named_and_may_be_an_accident(arguments):
    tool = {**TOOL, "function": {"name": "search", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [tool]}
    raw = completion(choices=[{"index": 0, "finish_reason": "tool_calls", "message": message}])
    with openai_server([Scripted(raw=raw)]) as server:
        (reply,) = OpenAIChat("tiny", base_url=server.url).generate([ASKED])
    assert_named_and_transient(reply, "called a tool (search) that nobody offered it")


def test_gemini_calls_no_tool_either():
    parts = [{"functionCall": {"name": "search", "args": {}}}]
    raw = json.dumps({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
    with gemini_server([Scripted(raw=raw)]) as server:
        (reply,) = GeminiChat("gemini-2.5-flash", base_url=server.url).generate([ASKED])
    assert_named_and_transient(reply, "called a tool (search)")


def test_a_server_that_dies_in_the_middle_is_asked_again():
    dying = Scripted(raw=completion(), dies_after=90)
    with openai_server([dying] * 9) as server:
        (reply,) = patient(OpenAIChat("tiny", base_url=server.url)).generate([ASKED])
        assert_named_and_transient(reply, "did not answer")
        assert len(server.bodies) == 2
    with openai_server([dying, "Paris."]) as server:
        (reply,) = patient(OpenAIChat("tiny", base_url=server.url)).generate([ASKED])
    assert (reply.text, reply.error) == ("Paris.", "")


def test_another_model_than_was_asked_for_gives_no_reply_and_is_not_remembered(tmp_path):
    memory, trace = Memory(tmp_path / "memory.sqlite"), Trace(Question("q1", "Capital of France?"))
    with openai_server([Scripted(raw=completion(model="llama3"))] * 2) as server:
        stage = Generate(patient(OpenAIChat("tiny", base_url=server.url)), max_tokens=9, temperature=0)
        (done,) = run_stage(stage, [trace], memory)
        assert done.failure.reason.startswith("The server answered as llama3, and tiny was asked for; name the model")
        assert memory.counts() == {}
        believed = OpenAIChat("tiny", base_url=server.url, answers_as="llama3").generate([ASKED])
    assert believed[0].text == "Paris."


def test_a_reply_cut_at_its_length_is_kept_as_far_as_it_goes():
    raw = completion(choices=[{**CHOICE, "finish_reason": "length"}])
    with openai_server([Scripted(raw=raw)]) as server:
        (reply,) = OpenAIChat("tiny", base_url=server.url).generate([ASKED])
    assert (reply.text, reply.truncated, reply.error) == ("Paris.", True, "")


def test_a_reply_of_ten_megabytes_is_one_sentence_and_not_remembered(tmp_path):
    memory, trace = Memory(tmp_path / "memory.sqlite"), Trace(Question("q1", "Capital of France?"))
    message = {"role": "assistant", "content": "Paris. " * 1_500_000}
    raw = completion(choices=[{**CHOICE, "message": message}])
    assert len(raw) > 10_000_000
    with openai_server([Scripted(raw=raw)] * 2) as server:
        stage = Generate(patient(OpenAIChat("tiny", base_url=server.url)), max_tokens=9, temperature=0)
        (done,) = run_stage(stage, [trace], memory)
    assert "longer than 4 MiB" in done.failure.reason
    assert memory.counts() == {}
