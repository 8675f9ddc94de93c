import json
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from tiny_models import ALWAYS_THINKING, write_thinking_gguf, write_tiny_gguf

from rag_lab.errors import ModelError
from rag_lab.models.local import llamacpp
from rag_lab.models.local.gguf import KV_TYPES, gguf_problem
from rag_lab.models.local.llamacpp import LlamaCppChat
from rag_lab.models.protocols import LISTENER, ChatRequest, Message
from rag_lab.models.weights import packaged

EXAMPLES = (
    Message("system", "You rewrite questions about a plant so that a search engine understands them."),
    Message("user", "what pressure press"),
    Message("assistant", "At what pressure does the hydraulic press run?"),
    Message("user", "filter oven when"),
    Message("assistant", "How often is the filter of the curing oven replaced?"),
)


def ask(*messages, **settings):
    return ChatRequest(tuple(messages), **{"max_tokens": 16, **settings})


@pytest.mark.parametrize("name", ["minilm", "some/model", "nonsense"])
def test_what_is_no_gguf_file_is_refused(name):
    with pytest.raises(ModelError):
        LlamaCppChat(name).identity()


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0, "is no GGUF file"),
        (1e-7, "is cut short or damaged within its head"),
        (0.01, "is cut short or damaged within its head"),
        (0.5, r"is cut short \([\d,]+ of [\d,]+ bytes are there\)"),
        (0.9999, r"is cut short \([\d,]+ of [\d,]+ bytes are there\)"),
    ],
)
def test_a_file_cut_short_is_one_sentence_before_anything_is_asked(share, said, tmp_path):
    whole = packaged("smollm2").read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(whole[: int(share * len(whole))])
    model = LlamaCppChat(str(path))
    for ask_it in (
        model.identity,
        lambda: model.count_tokens("a"),
        lambda: model.generate([ask(Message("user", "hi"))]),
    ):
        with pytest.raises(ModelError, match=rf"^llama.cpp cannot load cut\.gguf: it {said}.*; download") as caught:
            ask_it()
        assert str(tmp_path) not in str(caught.value)


def test_whole_files_have_no_problem(tmp_path):
    assert gguf_problem(packaged("smollm2")) == ""
    assert gguf_problem(write_tiny_gguf(tmp_path / "tiny.gguf")) == ""


def test_what_is_no_gguf_file_at_all_is_one_sentence(tmp_path):
    path = tmp_path / "spoilt.gguf"
    path.write_bytes(b"<html>no")
    with pytest.raises(ModelError, match=r"llama.cpp cannot load spoilt\.gguf: it is no GGUF file"):
        LlamaCppChat(str(path)).generate([ask(Message("user", "hi"))])


def test_storing_and_cache_are_of_the_identity_where_they_are_given():
    plain = LlamaCppChat("smollm2").identity()
    assert plain["stored_as"] == "q8_0"
    assert not {"kv", "batch"} & set(plain)
    other = LlamaCppChat("smollm2", weights="q4_0", kv="q8_0", batch=64).identity()
    assert {**plain, "stored_as": "q4_0", "kv": "q8_0", "batch": 64} == other
    assert LlamaCppChat("smollm2", weights="given").identity()["stored_as"] == "as given"
    assert LlamaCppChat(str(packaged("smollm2"))).identity()["stored_as"] == "as given"


@pytest.mark.slow
def test_every_type_of_cache_answers(tmp_path):
    path = str(write_tiny_gguf(tmp_path / "tiny.gguf"))  # its weights are converted once for all types
    for kv in KV_TYPES:
        tiny = LlamaCppChat(path, context=64, kv=kv, batch=16, weights="q8_0")
        (reply,) = tiny.generate([ask(Message("user", "hi"), max_tokens=2)])
        assert (kv, reply.error, reply.tokens_out) == (kv, "", 2)


def test_what_is_heard_grows_into_the_reply_and_what_the_hearer_raises_is_raised(tmp_path):
    tiny = LlamaCppChat(str(write_tiny_gguf(tmp_path / "tiny.gguf")), context=64)
    request, heard = ask(Message("system", "hm"), Message("user", "hi"), max_tokens=8), []
    (whole,) = tiny.generate([request])

    def refuse(text):
        raise ValueError("no more of it")

    for hear in (heard.append, refuse):
        token = LISTENER.set(hear)
        try:
            (streamed,) = tiny.generate([request])
        except ValueError as raised:
            assert (hear, str(raised)) == (refuse, "no more of it")
        finally:
            LISTENER.reset(token)
    assert len(heard) > 3
    assert all(after.startswith(before) for before, after in zip(heard, heard[1:], strict=False))
    assert heard[-1] == streamed.text == whole.text
    assert (streamed.tokens_in, streamed.tokens_out) == (whole.tokens_in, whole.tokens_out)
    assert (streamed.truncated, streamed.error) == (whole.truncated, "")


def test_what_is_the_same_before_requests_is_read_by_one_of_the_servers(tmp_path, monkeypatch):
    monkeypatch.setattr(llamacpp, "usable_cores", lambda: 3)
    tiny, read = LlamaCppChat(str(write_tiny_gguf(tmp_path / "tiny.gguf")), context=64, threads=1), []
    for server in tiny.loaded:
        plain = server._call

        def seen(request, listener=None, plain=plain):
            if not request.get("add_generation_prompt", True):
                read.append(request["messages"][0]["content"])
            return plain(request, listener)

        monkeypatch.setattr(server, "_call", seen)
    systems = [f"{n}" for n in range(6)]  # more than are kept
    for system in systems * 2:
        replies = tiny.generate([ask(Message("system", system), Message("user", f"{n}"), max_tokens=2) for n in "abc"])
        assert [(one.error, one.tokens_out) for one in replies] == [("", 2)] * 3
        assert len(list(tiny.loaded[0]._beginnings.path.iterdir())) <= 5
    assert len(tiny.loaded) == 3 and read == systems * 2


@pytest.fixture(scope="module")
def model():
    return LlamaCppChat("smollm2", threads=1)


@pytest.mark.slow
def test_earlier_requests_do_not_change_a_reply(model, real_home):
    topics = ["torque of the ram bolts", "grease for the guides", "alarm A7 burner", "who signs the permit"]
    requests = [ask(*EXAMPLES[: 1 + 4 * (number % 2)], Message("user", text)) for number, text in enumerate(topics)]
    requests.append(ask(Message("user", "Say hello.")))
    together = [reply.text for reply in model.generate(requests)]
    order = list(range(len(requests)))
    random.Random(3).shuffle(order)
    alone = {index: model.generate([requests[index]])[0].text for index in order}
    assert [alone[index] for index in range(len(requests))] == together
    assert LlamaCppChat("smollm2", threads=1).generate([requests[1]])[0].text == together[1]


@pytest.mark.slow
@pytest.mark.parametrize(("cores", "shape"), [(1, (1, 1, 4)), (2, (2, 1, 4)), (3, (1, 2, 1))])
def test_replies_do_not_depend_on_what_is_answered_beside_them(model, real_home, monkeypatch, cores, shape):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(llamacpp, "usable_cores", lambda: cores)
    fresh = LlamaCppChat("smollm2", threads=1 if cores < 3 else None)
    requests = [ask(*EXAMPLES, Message("user", f"What is the torque of bolt {n}?")) for n in range(3)]
    requests += [ask(EXAMPLES[0], Message("user", f"Where is valve {n}?")) for n in range(3)]
    assert fresh.shape == shape
    if shape[1] == 1:
        alone = [model.generate([one])[0].text for one in requests]
        assert [one.text for one in fresh.generate(requests)] == alone
        with ThreadPoolExecutor(len(requests)) as threads:
            assert [one.text for (one,) in threads.map(lambda one: fresh.generate([one]), requests)] == alone


@pytest.mark.slow
def test_a_large_model_is_held_once(real_home, monkeypatch):
    monkeypatch.setattr(llamacpp, "_SMALL_MB", 1)
    monkeypatch.setattr(llamacpp, "usable_cores", lambda: 16)
    assert LlamaCppChat("smollm2", threads=4).shape == (1, 4, 1)


@pytest.mark.slow
def test_json_is_enforced(model, real_home):
    schema = {"type": "object", "properties": {"class": {"enum": ["fuzzy", "specific"]}}, "required": ["class"]}
    (reply,) = model.generate([ask(Message("user", "Which?"), json_schema=schema, temperature=1.0, max_tokens=40)])
    assert json.loads(reply.text)["class"] in ("fuzzy", "specific")


@pytest.mark.slow
def test_a_bad_request_fails_alone(model, real_home):
    good = ask(Message("user", "Say hello."))
    replies = model.generate(
        [good, ask(Message("user", "x " * 5000)), ask(*good.messages, json_schema={"type": "frob"}), good]
    )
    assert replies[0].text == replies[3].text != ""
    assert "context holds 4096" in replies[1].error
    assert "unrecognized type frob" in replies[2].error
    assert not replies[1].transient


@pytest.mark.slow
def test_token_counts_are_those_of_the_prompt(model, real_home):
    assert model.count_tokens("") == 0
    assert model.count_tokens("Hello world") == 2
    text = "Grease NLGI 2 – every 500 hours.\n" * 3
    short, long = model.generate(
        [ask(Message("user", "a"), max_tokens=1), ask(Message("user", f"a\n{text}"), max_tokens=1)]
    )
    assert long.tokens_in - short.tokens_in == pytest.approx(model.count_tokens(f"\n{text.strip()}"), abs=2)


@pytest.mark.slow
def test_a_ceiling_on_replies_is_part_of_the_identity_and_cuts_them_off(real_home):
    model = LlamaCppChat("smollm2", max_tokens=16)
    reply = model.generate([ask(Message("user", "Count from 1 to 100."), max_tokens=500)])[0]
    assert reply.tokens_out <= 16
    assert reply.truncated
    assert model.identity() == {**LlamaCppChat("smollm2").identity(), "max_tokens": 16}


@pytest.mark.slow
def test_what_it_took_of_the_machine_is_told(tmp_path):
    tiny = LlamaCppChat(str(write_tiny_gguf(tmp_path / "tiny.gguf")), context=64)
    first, second = tiny.generate([ask(Message("user", text), max_tokens=2) for text in ("hi", "ho")])
    assert first.machine.load_s == second.machine.load_s > 0
    assert min(first.machine.memory_mb, second.machine.memory_mb) > 1


ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 40}},
    "required": ["answer"],
    "additionalProperties": False,
}
TOPICS = ("grease of the guides", "torque of the bolts", "alarm A7", "who signs the permit", "what is 2 + 2?")


def ask_for(text, **settings):
    return ChatRequest((Message("user", text),), **{"max_tokens": 96, "json_schema": ANSWER, **settings})


@pytest.fixture(scope="module")
def switched(tmp_path_factory):
    return LlamaCppChat(str(write_thinking_gguf(tmp_path_factory.mktemp("gguf") / "switched.gguf")), context=1024)


@pytest.fixture(scope="module")
def always(tmp_path_factory):
    path = write_thinking_gguf(tmp_path_factory.mktemp("gguf") / "always.gguf", ALWAYS_THINKING)
    return LlamaCppChat(str(path), context=1024)


@pytest.mark.slow
def test_every_reply_is_an_object_however_long_it_was_to_think(switched):
    budgets = [1, 2, 5, 34]
    requests = [ask_for(topic, thinking_tokens=budget, seed=3) for budget in budgets for topic in TOPICS[:2]]
    replies = switched.generate(requests)
    for request, reply in zip(requests, replies, strict=True):
        assert list(json.loads(reply.text)) == ["answer"], (request.thinking_tokens, reply)
        assert not reply.truncated
        assert reply.thinking_tokens <= request.thinking_tokens
        assert reply.thinking_tokens <= reply.tokens_out
    assert min(reply.thinking_tokens for reply in replies[-2:]) > 20  # it does think


@pytest.mark.slow
def test_a_reply_without_thinking_has_none(switched):
    (reply,) = switched.generate([ask_for(TOPICS[0])])
    assert (reply.thinking, reply.thinking_tokens) == ("", 0)
    assert list(json.loads(reply.text)) == ["answer"]


@pytest.mark.slow
def test_a_model_that_cannot_stop_thinking_is_stopped_at_once(always):
    for reply in always.generate([ask_for(topic) for topic in TOPICS[:2]]):
        assert list(json.loads(reply.text)) == ["answer"]
        assert reply.thinking_tokens <= 1


@pytest.mark.slow
def test_in_a_small_context_the_reply_keeps_its_length(switched):
    (reply,) = switched.generate([ask_for("grease " * 600, thinking_tokens=2000)])
    assert list(json.loads(reply.text)) == ["answer"]
    assert 0 < reply.thinking_tokens < 1024 - 600


@pytest.mark.slow
def test_thoughts_are_sampled_and_the_same_seed_thinks_the_same(switched):
    one, again, other = switched.generate([ask_for(TOPICS[4], thinking_tokens=40, seed=seed) for seed in (1, 1, 2)])
    assert one.thinking == again.thinking != other.thinking


@pytest.mark.slow
def test_a_switched_thought_before_changes_no_reply(switched):
    earlier = (
        Message("system", "You answer questions about a plant."),
        Message("user", "oil?"),
        Message("assistant", "{}"),
    )
    plain = ChatRequest((*earlier, Message("user", TOPICS[2])), 32, json_schema=ANSWER)
    thinking = ChatRequest(plain.messages, 32, json_schema=ANSWER, thinking_tokens=20)
    before = switched.generate([plain])[0].text
    assert [reply.text for reply in switched.generate([thinking, plain])][1] == before


@pytest.mark.slow
def test_what_can_think_is_told_by_the_identity(switched, real_home):
    assert switched.identity()["thinking"] == 1
    assert "thinking" not in LlamaCppChat("smollm2").identity()


@pytest.mark.slow
def test_a_model_that_cannot_think_does_not_get_the_room_for_it(real_home):
    model = LlamaCppChat("smollm2")
    (reply,) = model.generate([ask_for("Count from 1 to 1000.", json_schema=None, max_tokens=20, thinking_tokens=500)])
    assert (reply.thinking_tokens, reply.truncated, reply.tokens_out) == (0, True, 20)
