import base64
import json

import pytest
from loopback_models import Scripted, ollama_server

from rag_lab.errors import ModelError
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.remote import ollama as module
from rag_lab.models.remote.ollama import OllamaChat, OllamaServer
from rag_lab.models.shared import chat_model

ASKED = ChatRequest((Message("system", "Be brief."), Message("user", "Capital of France?")), max_tokens=9, seed=4)
THOUGHT = "one two three four five six"


def model_of(server, **options):
    return OllamaChat("tiny", base_url=server.url, max_attempts=1, **options)


def thinking(tokens, max_tokens=9, **settings):
    return ChatRequest(ASKED.messages, max_tokens=max_tokens, thinking_tokens=tokens, **settings)


def test_a_round_trip_says_how_large_the_window_is_and_that_no_thought_is_wanted():
    with ollama_server(["Paris."]) as server:
        (reply,) = model_of(server, context=512, keep_alive="10m").generate([ASKED])
    assert (reply.text, reply.error, reply.tokens_in, reply.tokens_out, reply.cost_usd) == ("Paris.", "", 5, 1, 0)
    (body,) = server.bodies
    assert [(each["role"], each["content"]) for each in body["messages"]] == [
        ("system", "Be brief."),
        ("user", "Capital of France?"),
    ]
    assert body["options"] == {"num_ctx": 512, "num_predict": 9, "temperature": 0, "seed": 4}
    assert (body["model"], body["think"], body["stream"], body["keep_alive"]) == ("tiny", False, False, "10m")
    assert "format" not in body


@pytest.mark.parametrize(("given", "sent"), [("-1", -1), ("30", 30), ("10m", "10m"), ("", None)])
def test_keep_alive_goes_out_as_the_server_takes_it(given, sent):
    with ollama_server() as server:
        model_of(server, keep_alive=given).generate([ASKED])
    assert server.bodies[0].get("keep_alive") == sent


def test_sampling_that_is_not_set_is_left_to_the_model_s_card():
    with ollama_server() as server:
        model_of(server).generate([ChatRequest(ASKED.messages, temperature=0.6, top_k=20, min_p=0.1)])
    options = server.bodies[0]["options"]
    assert (options["temperature"], options["top_k"], options["min_p"]) == (0.6, 20, 0.1)
    assert "top_p" not in options


def test_a_schema_goes_out_as_the_format_and_a_reply_that_was_cut_off_is_kept():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    with ollama_server(['{"a": "b c d"}']) as server:
        (reply,) = model_of(server).generate([ChatRequest(ASKED.messages, max_tokens=2, json_schema=schema)])
    assert (reply.text, reply.truncated, reply.error) == ('{"a": "b', True, "")
    assert server.bodies[0]["format"] == schema


def test_images_go_out_with_their_message():
    with ollama_server() as server:
        model_of(server).generate([ChatRequest((Message("user", "What is it?", (b"PNG",)),))])
    (message,) = server.bodies[0]["messages"]
    assert message["images"] == [base64.b64encode(b"PNG").decode()]
    assert message["content"].strip() == "What is it?"


def test_a_model_that_sees_no_images_is_named_before_a_call():
    shown = ChatRequest((Message("user", "What is it?", (b"PNG",)),))
    with ollama_server(capabilities=["completion"]) as server:
        with pytest.raises(ModelError, match="tiny sees no images"):
            model_of(server).generate([shown])
        assert model_of(server).generate([ASKED])[0].text == "ok"
    assert len(server.bodies) == 1


def test_a_thought_within_its_budget_takes_one_call_and_is_counted_apart():
    with ollama_server([Scripted("It is Paris.", thinking=THOUGHT)]) as server:
        (reply,) = model_of(server).generate([thinking(100)])
    assert (reply.text, reply.thinking, reply.truncated) == ("It is Paris.", THOUGHT, False)
    assert (reply.tokens_out, reply.thinking_tokens) == (9, 6)
    assert server.bodies[0]["think"] is True


@pytest.mark.parametrize("budget", [1, 3, 6, 7, 8])
def test_a_thought_is_ended_at_its_budget_and_the_reply_goes_on_behind_it(budget):
    with ollama_server(lambda body: Scripted("It is Paris.", thinking=THOUGHT)) as server:
        (reply,) = model_of(server).generate([thinking(budget, json_schema={"type": "object"})])
    first, second = server.bodies
    assert (reply.text, reply.thinking, reply.truncated) == ("It is Paris.", " ".join(THOUGHT.split()[:budget]), False)
    assert (reply.tokens_in, reply.tokens_out, reply.error) == (5, budget + 3, "")
    assert abs(reply.thinking_tokens - min(6, budget)) <= 1
    assert (first["options"]["num_predict"], second["options"]["num_predict"]) == (budget, 9)
    last = second["messages"][-1]
    assert (last["role"], last.get("content", ""), last["thinking"]) == ("assistant", "", reply.thinking)
    assert (second["think"], second["format"]) == (False, {"type": "object"})


def test_a_reply_behind_a_short_thought_is_no_longer_than_max_tokens():
    with ollama_server(lambda body: Scripted("It is Paris, as everybody knows.", thinking="Hm.")) as server:
        (reply,) = model_of(server).generate([thinking(100, max_tokens=3)])
    assert (reply.text, reply.truncated) == ("It is Paris,", True)


def test_a_thought_that_nobody_asked_for_is_kept_apart():
    message = {"role": "assistant", "content": "Paris.", "thinking": "France, hm."}
    whole = {"model": "tiny", "message": message, "done": True, "done_reason": "stop", "eval_count": 3}
    with ollama_server([Scripted(raw=json.dumps(whole | {"prompt_eval_count": 5}))]) as server:
        (reply,) = model_of(server).generate([ASKED])
    assert (reply.text, reply.thinking, reply.thinking_tokens) == ("Paris.", "France, hm.", 2)


def test_a_window_that_the_model_does_not_have_is_refused_before_a_call():
    with ollama_server(context_tokens=2048) as server, pytest.raises(ModelError, match="at most 2,048") as caught:
        model_of(server, context=4096).generate([ASKED])
    assert "ollama:tiny?context=2048" in str(caught.value)
    assert server.bodies == []


def test_the_same_weights_on_another_server_are_the_same_model():
    with ollama_server() as one, ollama_server() as other, ollama_server(models=["tiny:latest", "small"]) as third:
        assert model_of(one).identity() == model_of(other).identity()
        assert model_of(one).identity() != OllamaChat("small", base_url=third.url).identity()
        assert model_of(one, context=4096).identity() != model_of(one).identity()


def test_it_is_named_like_every_model():
    with ollama_server(["Paris."]) as server:
        model = chat_model(f"ollama:tiny:latest?base_url={server.url}&context=1024&keep_alive=5m")
        assert model.generate([ASKED])[0].text == "Paris."
    assert (model.context_tokens, server.bodies[0]["options"]["num_ctx"]) == (1024, 1024)


def test_a_price_is_the_user_s_own(tmp_path, monkeypatch):
    table = tmp_path / "prices.toml"
    table.write_text('checked = 2026-11-30\n[usd_per_million_tokens]\n"tiny" = [1, 2]\n')
    with ollama_server(["Paris."] * 2) as server:
        assert model_of(server).generate([ASKED])[0].cost_usd == 0
        monkeypatch.setenv("RAG_LAB_PRICES", str(table))
        assert model_of(server).generate([ASKED])[0].cost_usd == pytest.approx(7e-6)


@pytest.mark.parametrize(("n_words", "read", "cut"), [(60, 60, 0), (62, 62, 1), (65, 34, 31), (200, 34, 166)])
def test_a_prompt_beyond_the_window_is_counted(n_words, read, cut):
    asked = ChatRequest((Message("user", "grease " * n_words),), max_tokens=9)
    with ollama_server(["It is Paris."]) as server:
        (reply,) = model_of(server, context=64).generate([asked])
    assert reply.tokens_in == read
    assert (reply.truncated_tokens > 0) == (cut > 0)
    assert min(cut, 31) <= reply.truncated_tokens <= cut


@pytest.mark.parametrize(("window", "n_words", "read"), [(64, 200, 64), (4000, 9000, 2002), (4000, 2002, 2002)])
def test_what_a_server_says_that_it_read_is_compared_with_what_was_sent(window, n_words, read):
    message = {"role": "assistant", "content": "Paris."}
    whole = {"message": message, "done": True, "done_reason": "stop", "eval_count": 1, "prompt_eval_count": read}
    asked = ChatRequest((Message("user", "oil " * n_words),))
    with ollama_server([Scripted(raw=json.dumps(whole))]) as server:
        (reply,) = model_of(server, context=window).generate([asked])
    assert (reply.truncated_tokens > 0) == (n_words > read)


def test_gpt_oss_thinks_by_levels_and_cannot_stop():
    with ollama_server(lambda body: Scripted("Paris.", thinking=THOUGHT), models=["gpt-oss:20b"]) as server:
        model = OllamaChat("gpt-oss:20b", base_url=server.url)
        replies = model.generate([ASKED, thinking(9000), thinking(30_000)])
    assert [body["think"] for body in server.bodies] == ["low", "medium", "high"]
    assert server.bodies[0]["options"]["num_predict"] == model.least_thinking_tokens == 1024
    assert {(reply.text, reply.thinking) for reply in replies} == {("Paris.", THOUGHT)}
    assert model.identity()["least_thinking_tokens"] == 1024


def test_a_thought_beyond_the_window_is_counted_too():
    asked = ChatRequest((Message("user", "grease " * 60),), max_tokens=9, thinking_tokens=50)
    with ollama_server(lambda body: Scripted("Paris.", thinking=THOUGHT)) as server:
        (reply,) = model_of(server, context=64).generate([asked])
    assert (reply.truncated_tokens, reply.text) == (60 + 7 - 64, "Paris.")


@pytest.fixture(autouse=True)
def _as_in_another_process():
    module._digest.cache_clear()


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("gpu-box", "http://gpu-box:11434"),
        ("gpu-box:80", "http://gpu-box:80"),
        ("http://gpu-box:11434/", "http://gpu-box:11434"),
        ("https://models.example/ollama/", "https://models.example/ollama"),
        ("http://[::1]:11434", "http://[::1]:11434"),
    ],
)
def test_the_address_is_written_as_ollama_takes_it(given, address, monkeypatch):
    assert OllamaServer(given).address == address
    monkeypatch.setenv("OLLAMA_HOST", given)
    assert OllamaServer().address == address


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("http://127.0.0.1:11434/v1", "OpenAI interface"),
        ("http://me:hunter2secret@host", "user"),
        ("http://", "address"),
    ],
)
def test_an_address_that_cannot_be_is_refused_without_repeating_it(given, said):
    with pytest.raises(ModelError, match=said) as caught:
        OllamaServer(given)
    assert "hunter2secret" not in str(caught.value)


def test_models_and_what_they_can():
    with ollama_server(models=["b", "a:7b"], context_tokens=512, capabilities=["vision"]) as server:
        models = OllamaServer(server.url).models()
        described = OllamaServer(server.url).described("b")
    assert [(model.name, model.size_bytes, model.parameters, model.quantization) for model in models] == [
        ("a:7b", 1_234_567, "1.2M", "Q4_K_M"),
        ("b", 1_234_567, "1.2M", "Q4_K_M"),
    ]
    assert (described.context_tokens, described.capabilities) == (512, ("vision",))


def test_the_digest_is_that_of_the_name_and_of_latest_where_no_tag_is_given():
    with ollama_server(models=["a:latest", "a:7b"]) as server:
        found = OllamaServer(server.url)
        assert found.digest("a") == found.digest("a:latest") != found.digest("a:7b")
        with pytest.raises(ModelError, match="rag-lab models pull ollama:b"):
            found.digest("b")


def test_the_last_digest_is_known_while_the_server_is_off(tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    with ollama_server() as server:
        digest = OllamaServer(server.url).digest("tiny")
    module._digest.cache_clear()
    assert OllamaServer(server.url).digest("tiny") == digest
    with pytest.raises(ModelError, match="No Ollama answers"):
        OllamaServer(server.url).digest("other")


def test_a_digest_that_another_process_writes_while_the_server_is_asked_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path))
    asked = OllamaServer.pulled

    def slow(server, name):
        (tmp_path / "ollama_digests.json").write_text('{"elsewhere tiny": "abc"}')
        return asked(server, name)

    monkeypatch.setattr(OllamaServer, "pulled", slow)
    with ollama_server() as server:
        digest = OllamaServer(server.url).digest("tiny")
    kept = json.loads((tmp_path / "ollama_digests.json").read_text())
    assert kept == {"elsewhere tiny": "abc", f"{server.url} tiny": digest}


def test_a_pull_tells_its_bytes_and_the_model_is_there():
    with ollama_server(models=[]) as server:
        found = OllamaServer(server.url)
        assert "rag-lab models pull ollama:tiny" in found.problem("tiny")
        steps = list(found.pull("tiny"))
        assert found.problem("tiny") == ""
    assert steps[0] == ("pulling manifest", 0, 0)
    assert steps[-2][1:] == (1_234_567, 1_234_567)
    assert steps[-1] == ("success", 0, 0)


def test_a_pull_that_fails_says_why():
    raw = '{"status": "pulling manifest"}\n{"error": "pull model manifest: file does not exist"}\n'
    with ollama_server() as server:
        server.seen = Scripted(raw=raw)
        with pytest.raises(ModelError, match="file does not exist"):
            list(OllamaServer(server.url).pull("none"))


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (Scripted(status=500), "status 500"),
        (Scripted(raw="<html><title>Login"), "a web page"),
        (Scripted(raw="[]"), "no description"),
        (Scripted(delay_s=1), "within 0.2 s"),
    ],
)
def test_a_check_ends_in_time_with_one_sentence(seen, said):
    with ollama_server() as server:
        server.seen = seen
        problem = OllamaServer(server.url).problem("tiny", within_s=0.2 if seen.delay_s else 10)
    assert said in problem
    assert "\n" not in problem


def test_a_check_of_a_server_that_is_not_there():
    with ollama_server() as server:
        pass
    assert OllamaServer(server.url).problem() == (
        f"No Ollama answers at {server.url}; start it with `ollama serve`, or name its address in OLLAMA_HOST."
    )
