"""What a server, or a gateway before it, does wrong means the same whichever model it is of, and is told in words."""

import gzip
import json

import pytest
from loopback_models import Scripted, gemini_server, ollama_server, openai_server, rerank_server
from pytest import approx

from rag_lab.errors import ModelError
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.remote import embedders, rerankers
from rag_lab.models.remote.gemini import GeminiChat
from rag_lab.models.remote.http import BadReply
from rag_lab.models.remote.ollama import OllamaChat
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.models.remote.replies import check_completion
from rag_lab.models.remote.retries import RetryPolicy
from rag_lab.records import Question, Trace
from rag_lab.stages.generate import Generate
from rag_lab.stages.run_stage import run_stage

KEY = "hunter2secret"
ASKED = ChatRequest((Message("user", "Capital of France?"),), max_tokens=9)
CHATS = {
    "gemini": (gemini_server, GeminiChat, "gemini-2.5-flash"),
    "ollama": (ollama_server, OllamaChat, "tiny"),
    "openai": (openai_server, OpenAIChat, "tiny"),
}
EMBEDDERS = {
    "gemini_embedder": (gemini_server, embedders.GeminiEmbedder, "gemini-embedding-001"),
    "ollama_embedder": (ollama_server, embedders.OllamaEmbedder, "tiny"),
    "openai_embedder": (openai_server, embedders.OpenAIEmbedder, "tiny"),
}
SCORERS = {
    name: (lambda answers: rerank_server(script=answers), kind, "tiny")
    for name, kind in {
        "tei": rerankers.TeiScorer, "vllm": rerankers.VllmScorer,
        "cohere": rerankers.CohereScorer, "jina": rerankers.JinaScorer,
    }.items()
}  # fmt: skip
MODELS = CHATS | EMBEDDERS | SCORERS


@pytest.fixture(autouse=True)
def _keys(monkeypatch):
    for name in ("GOOGLE_API_KEY", "OPENAI_API_KEY", "CO_API_KEY", "JINA_API_KEY", "VLLM_API_KEY", "TEI_API_KEY"):
        monkeypatch.setenv(name, KEY)


def call(model):
    """Ask for a text, a vector or a score, once."""
    if hasattr(model, "generate"):
        return model.generate([ASKED])[0]
    return model.embed_documents(["a"]) if hasattr(model, "embed_documents") else model.score([("a", "a b")])


def asked(name, answers, attempts=2, **options):
    """Ask a model whose server gives these answers; return what it gives, or its error, with waits and the server."""
    server_of, kind, model_name = MODELS[name]
    with server_of(answers) as server:
        model, waits = kind(model_name, base_url=server.url, **{"concurrency": 1, **options}), []
        model.retry = RetryPolicy(attempts, waits.append)
        try:
            found = call(model)
        except ModelError as error:
            found = error
    return found, waits, server


def said(found):
    """The error in a reply, or that was raised; of a reply in its place there is nothing else."""
    if isinstance(found, ModelError):
        return str(found)
    assert (found.text, found.tokens_out) == ("", 0)
    assert not any(word in found.error for word in ("Error:", "NoneType", "index out of range", "subscriptable", "\n"))
    return found.error


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("failure", "sentence", "n_calls"),
    [
        (Scripted(status=500), "status 500", 2),
        (Scripted(status=429), "status 429", 2),
        (Scripted("too long", status=400), "status 400: too long", 1),
        (Scripted(f"{KEY} is wrong", status=401), "key was rejected", 1),
        (Scripted(raw="<html><title>Proxy</title>"), "a web page instead of JSON: Proxy", 2),
        (Scripted(raw=""), "with nothing instead of JSON", 2),
        (Scripted(raw='{"error": {"message": "no credit left"}}'), "no credit left", 2),
        (Scripted("late", delay_s=0.6), "did not answer", 2),
    ],
    ids=["500", "429", "400", "401", "page", "nothing", "error", "late"],
)
def test_each_fault_of_each_model(name, failure, sentence, n_calls):
    found, _, server = asked(name, [failure] * 9, timeout_s=0.2 if failure.delay_s else 20)
    assert sentence in said(found) and KEY not in said(found)
    assert len(server.bodies) == n_calls
    if name in CHATS and "rejected" not in sentence:
        assert (found.text, found.transient) == ("", n_calls > 1)
    else:
        assert isinstance(found, ModelError)


@pytest.mark.parametrize("name", MODELS)
def test_a_rate_limit_is_waited_for_as_asked(name):
    good = "Paris." if name in CHATS else Scripted()
    found, waits, server = asked(name, [Scripted(status=429, headers={"Retry-After": "11"}), good])
    assert (waits, len(server.bodies)) == ([approx(11, abs=1)], 2)
    assert not isinstance(found, ModelError)


@pytest.mark.parametrize("name", CHATS)
def test_a_bad_request_fails_alone(name):
    server_of, kind, model_name = CHATS[name]
    with server_of(["one", Scripted("too long", status=400), "three"]) as server:
        replies = kind(model_name, base_url=server.url, concurrency=1).generate([ASKED] * 3)
    assert [reply.text for reply in replies] == ["one", "", "three"]


MESSAGE = {"role": "assistant", "content": "Paris."}
CHOICE = {"index": 0, "finish_reason": "stop", "message": MESSAGE}
PAGE = "<!DOCTYPE html><html><head><title>502 Bad\nGateway</title></head></html>"


def completion(**changes):
    return json.dumps(
        {"id": "1", "object": "chat.completion", "created": 0, "model": "tiny", "choices": [CHOICE], **changes}
    )


def choices(**changes):
    return completion(choices=[{**CHOICE, **changes}])


def usage(prompt_tokens, completion_tokens):
    counts = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens, "total_tokens": 1}
    return completion(usage=counts)


ANY = {
    "page": (PAGE, "a web page instead of JSON: 502 Bad Gateway"),
    "text": ("upstream connect error", "not JSON: 'upstream connect error'"),
    "list": ("[1, 2]", "JSON that is no "),
    "null": ("null", "JSON that is no "),
    "deep": ("[" * 100_000, "not JSON"),
    "latin1": ('{"choices": "é"}'.encode("latin-1"), "not UTF-8"),
    "half_a_pair": (r'{"candidates": "\ud800", "choices": "\ud800"}', "not JSON"),
    "error_text": ('{"error": "no credit left"}', "under status 200: no credit left"),
    "other": ('{"ok": true}', "Field required"),
    "half": (completion()[:90], "ends in the middle: '{"),
    "half_a_stream": ('data: {"choices": [{"delta": {"content": "Par"}}]}\n\ndata: {"cho', "a stream of events where"),
}
OPENAI = {
    "null_choices": (completion(choices=None), "(choices: "),
    "no_choice": (completion(choices=[]), "(choices: "),
    "choices_text": (completion(choices="none"), "(choices: "),
    "no_message": (completion(choices=[{"index": 0}]), "(choices.0.message: "),
    "null_message": (choices(message=None), "(choices.0.message: "),
    "no_role": (choices(message={"content": "Paris."}), "(choices.0.message.role: "),
    "content_number": (choices(message={**MESSAGE, "content": 5}), "(choices.0.message.content"),
    "usage_words": (usage("seven", "three"), "(usage.prompt_tokens: "),
    "usage_null": (usage(None, None), "(usage.prompt_tokens: "),
    "usage_list": (completion(usage=[7, 3]), "(usage: "),
    "usage_empty": (completion(usage={}), "(usage.prompt_tokens: "),
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
OLLAMA = {
    "not_done": ('{"message": {"role": "assistant", "content": "Par"}, "done": false}', "no reply of Ollama (done:"),
    "half": ('{"message": {"role": "assistant", "content": "Par"', "ends in the middle"),
    "died": ('{"error": "llama runner process has terminated"}', "llama runner process has terminated"),
    "long": (b" " * 5_000_000, "longer than 4 MiB"),
}
CASES = {"openai": ANY | OPENAI, "gemini": ANY | GEMINI, "gemini_embedder": ANY, "ollama": OLLAMA}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, cases in CASES.items() for kind in cases])
def test_a_body_that_is_none_under_status_200_is_named_and_asked_for_again(name, kind):
    raw, sentence = CASES[name][kind]
    found, _, server = asked(name, [Scripted(raw=raw)] * 9)
    assert sentence in said(found)
    assert len(server.bodies) == 2
    assert name == "gemini_embedder" or found.transient


@pytest.mark.parametrize(
    ("name", "answer", "sentence", "transient"),
    [
        ("openai", Scripted("", finish="content_filter"), "content_filter", False),
        ("openai", Scripted(raw=choices(finish_reason=None, message={**MESSAGE, "content": None})),
         "no text (finish reason: none given)", True),
        ("gemini", Scripted("", finish="safety"), "safety", False),
        ("gemini", Scripted(raw='{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}'),
         "The model returned no text (finish reason: prohibited_content).", False),
        ("ollama", Scripted("", finish="load"), "loaded the model and wrote no reply", True),
    ],
)  # fmt: skip
def test_no_text_is_an_error_that_may_be_an_accident(name, answer, sentence, transient):
    found, _, _ = asked(name, [answer] * 9)
    assert sentence in found.error
    assert (found.text, found.transient) == ("", transient)


ENDLESS = Scripted(raw=b" " * 65_536, endless=True)
PACKED = Scripted(raw=gzip.compress(b" " * 50_000_000), headers={"Content-Encoding": "gzip"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "sentence"),
    [(Scripted(raw=b" " * 5_000_000), "longer than 4 MiB"), (ENDLESS, "longer than 4 MiB"), (PACKED, "compressed")],
    ids=["told", "endless", "packed"],
)
def test_a_reply_is_read_up_to_a_bound(answer, sentence):
    found, _, server = asked("openai", [answer] * 9)
    assert sentence in said(found) and found.transient
    assert "identity" in server.headers[0].values()


@pytest.mark.slow
def test_a_body_that_trickles_on_for_ever_ends_with_the_time_out():
    found, _, _ = asked("openai", [Scripted(raw=b" ", endless=True)], attempts=1, timeout_s=0.3)
    assert found.transient
    assert "did not answer" in found.error or "longer than" in found.error


@pytest.mark.slow
@pytest.mark.parametrize(("status", "sentence"), [(401, "key was rejected"), (500, "status 500")])
def test_a_failure_is_known_by_its_status_whatever_its_body(status, sentence):
    packed = Scripted(status=status, raw=gzip.compress(b" " * 9_000_000), headers={"Content-Encoding": "gzip"})
    assert sentence in said(asked("openai", [packed] * 9)[0])


def test_content_in_parts_and_usage_that_is_left_out_are_allowed():
    parts = choices(message={**MESSAGE, "content": [{"type": "text", "text": "Paris."}]})
    found, _, _ = asked("openai", [Scripted(raw=parts)])
    assert (found.text, found.error) == ("Paris.", "")


def test_a_page_of_titles_that_never_close_is_refused_at_once():
    with pytest.raises(BadReply, match="a web page instead of JSON$"):
        check_completion(b"<html>" + b"<title>" * 500_000)


def called(arguments):
    tool = {"id": "1", "type": "function", "function": {"name": "search", "arguments": arguments}}
    return choices(finish_reason="tool_calls", message={"role": "assistant", "content": None, "tool_calls": [tool]})


PARTS = [{"functionCall": {"name": "search", "args": {}}}]
CALL = {"function": {"name": "search", "arguments": {}}}
TOOLS = [
    ("openai", called("{}")),
    ("openai", called("{not json")),
    ("gemini", json.dumps({"candidates": [{"content": {"role": "model", "parts": PARTS}, "finishReason": "STOP"}]})),
    ("ollama", json.dumps({"message": {"role": "assistant", "content": "", "tool_calls": [CALL]}, "done": True})),
]


@pytest.mark.parametrize(("name", "raw"), TOOLS)
def test_a_tool_that_is_called_in_place_of_a_reply_is_named_and_may_be_an_accident(name, raw):
    found, _, _ = asked(name, [Scripted(raw=raw)])
    assert said(found) == "The model called a tool (search) that nobody offered it, and wrote no reply."
    assert found.transient


@pytest.mark.slow
def test_a_server_that_dies_in_the_middle_is_asked_again():
    dying = Scripted(raw=completion(), dies_after=90)
    found, _, server = asked("openai", [dying] * 9)
    assert "did not answer" in said(found) and len(server.bodies) == 2
    assert asked("openai", [dying, "Paris."])[0].text == "Paris."


def test_a_reply_cut_at_its_length_is_kept_as_far_as_it_goes():
    found, _, _ = asked("openai", [Scripted(raw=choices(finish_reason="length"))])
    assert (found.text, found.truncated, found.error) == ("Paris.", True, "")


@pytest.fixture
def generated(tmp_path):
    """Generate an answer in a stage, and return why it failed and what is remembered then."""
    memory, trace = Memory(tmp_path / "memory.sqlite"), Trace(Question("q1", "Capital of France?"))

    def generate(server):
        model = OpenAIChat("tiny", base_url=server.url)
        model.retry = RetryPolicy(2, sleep=lambda _: None)
        (done,) = run_stage(Generate(model, max_tokens=9, temperature=0), [trace], memory)
        return done.failure and done.failure.reason, memory.counts()

    return generate


@pytest.mark.slow
def test_the_same_command_asks_again_once_the_gateway_is_mended(generated):
    with openai_server([Scripted(raw=PAGE), Scripted(raw=PAGE), completion()]) as server:
        reason, remembered = generated(server)
        assert "a web page instead of JSON" in reason and remembered == {}
        assert generated(server) == (None, {"generate": 1})


@pytest.mark.slow
def test_another_model_than_was_asked_for_gives_no_reply_and_is_not_remembered(generated):
    with openai_server([Scripted(raw=completion(model="llama3"))] * 2) as server:
        reason, remembered = generated(server)
        assert reason.startswith("The server answered as llama3, and tiny was asked for; name the model")
        assert remembered == {}
        believed = OpenAIChat("tiny", base_url=server.url, answers_as="llama3").generate([ASKED])
    assert believed[0].text == "Paris."


@pytest.mark.slow
def test_a_reply_of_ten_megabytes_is_one_sentence_and_not_remembered(generated):
    raw = choices(message={**MESSAGE, "content": "Paris. " * 1_500_000})
    assert len(raw) > 10_000_000
    with openai_server([Scripted(raw=raw)] * 2) as server:
        reason, remembered = generated(server)
    assert "longer than 4 MiB" in reason and remembered == {}
