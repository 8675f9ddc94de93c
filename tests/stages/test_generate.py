import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.config import PipelineConfig
from rag_lab.models.protocols import ChatReply
from rag_lab.pipeline import Pipeline
from rag_lab.records import Citation, Passage, Question, Remembered, Trace, Turn
from rag_lab.stages.extract import NOT_FOUND
from rag_lab.stages.generate import SCHEMA, Generate, Parse, Spoken, answer_stages, parse_reply, without_loop
from rag_lab.stages.run_stage import run_stage
from rag_lab.testing import HashEmbedder, ScriptedChat, sample_index

PASSAGE = Passage(1, "a#p7", "manuals/a.pdf", 7, 0, 9, "The press runs at 140 bar.")
TRACE = Trace(
    Question("q", "how hard does she push?", history=(Turn("user", "about the press"),)),
    remembered=Remembered(1, (Turn("user", "about the press"),)),
    search_query="pressure of the press",
    passages=(PASSAGE,),
)


def generate(reply, thinking_tokens=0, trace=TRACE):
    model = ScriptedChat([reply])
    (done,) = run_stage(Generate(model, 64, 0.0, thinking_tokens), [trace])
    return done, model.requests[0]


def test_the_prompt_has_the_users_wording_the_passages_and_the_demand_for_citations():
    _, request = generate("{}")
    text = "\n".join(message.content for message in request.messages)
    assert "how hard does she push?" in text
    assert "pressure of the press" not in text
    assert "[1] (manuals/a.pdf, page 7)\nThe press runs at 140 bar." in text
    assert "citations" in text
    assert NOT_FOUND in text
    assert [m.content for m in request.messages if m.role == "user"][-2] == "about the press"


@pytest.mark.parametrize(("thinking_tokens", "most"), [(0, 64), (512, 576)])  # thinking has room beside the reply's
def test_the_reply_is_constrained_whether_the_model_thinks_first_or_not(thinking_tokens, most):
    _, request = generate("{}", thinking_tokens)
    assert request.json_schema == SCHEMA
    assert (request.thinking_tokens, request.max_tokens, request.most_tokens_out) == (thinking_tokens, 64, most)


def stages(changes, chat):
    answer = PipelineConfig().override({"answer.name": "text"} | changes).answer
    return answer_stages(SimpleNamespace(answer=answer, seed=0, prompts={}, overrides={}, chat=lambda *_: chat))


def test_sampling_goes_out_and_is_part_of_the_identity_where_it_is_set():
    model = ScriptedChat(["{}"])
    plain, sampled = Generate(model, 64, 0.7), Generate(model, 64, 0.7, top_p=0.9, min_p=0.1)
    (request,) = sampled.requests([TRACE])
    assert (request.top_p, request.top_k, request.min_p) == (0.9, None, 0.1)
    assert sampled.identity() == {**plain.identity(), "top_p": 0.9, "min_p": 0.1}


@pytest.mark.parametrize(
    ("changes", "top_k"), [({}, None), ({"answer.temperature": 0.5}, 9), ({"answer.thinking": True}, 9)]
)
def test_sampling_is_read_where_anything_is_sampled(changes, top_k):
    assert stages({"answer.name": "llm", "answer.top_k": 9, **changes}, ScriptedChat(["{}"]))[0].top_k == top_k


def test_a_model_that_was_asked_to_think_and_did_not_says_so():
    done, _ = generate("{}", thinking_tokens=512)
    assert (done.stages[-1].status, done.stages[-1].reason) == (
        "fallback",
        "the model was asked to think and did not",
    )
    hidden, _ = generate(ChatReply(text="{}", tokens_out=9, thinking_tokens=5), thinking_tokens=512)
    assert hidden.stages[-1].status == "ok"


def test_thinking_and_answer_come_apart_again():
    reply = ChatReply(text=json.dumps({"answer": "140 bar", "citations": [1]}), thinking="bar, not psi")
    done, _ = generate(reply, thinking_tokens=512)
    (parsed,) = run_stage(Parse(), [done])
    assert parsed.answer.thinking == "bar, not psi"
    assert parsed.answer.text == "140 bar"
    assert parsed.answer.citations[0].page == 7


@pytest.mark.parametrize(
    ("reply", "thinking_tokens", "said"),
    [
        (ChatReply(thinking="bar or", truncated=True), 512, "raise answer.thinking_tokens"),
        (ChatReply(truncated=True), 512, "raise answer.thinking_tokens"),
        (ChatReply(text="Let me see. Bar or", truncated=True), 512, "raise answer.thinking_tokens"),
        (ChatReply(thinking="bar or", truncated=True), 0, "set answer.thinking"),
    ],
    ids=["split_off", "hidden", "unmarked", "not_asked_for"],
)
def test_a_reply_cut_off_in_thought_is_named_as_such(reply, thinking_tokens, said):
    done, _ = generate(reply, thinking_tokens)
    assert done.failure.stage == "generate"
    assert "cut off while thinking" in done.failure.reason
    assert said in done.failure.reason
    assert reply.thinking in done.raw_text


@pytest.mark.parametrize(("text", "thinking"), [('{"answer": "140', "bar"), ('{"answer": "140', "")])
def test_an_answer_cut_off_after_its_thinking_is_still_read(text, thinking):
    done, _ = generate(ChatReply(text=text, thinking=thinking, truncated=True), 512)
    (parsed,) = run_stage(Parse(), [done])
    assert parsed.answer.text == "140"


def test_a_thought_without_a_reply_is_named():
    done, _ = generate(ChatReply(thinking="bar or psi"), 512)
    assert done.failure.reason == "the model thought and ended without a reply"


def test_an_error_ends_the_trace_with_its_reason():
    done, _ = generate(ChatReply(error="the server answered 500", transient=True))
    assert done.failure.reason == "the server answered 500"
    assert done.raw_text is None
    assert run_stage(Parse(), [done]) == [done]


def test_tokens_and_seconds_are_the_models():
    done, _ = generate(ChatReply(text="{}", tokens_in=70, tokens_out=9, seconds=1.5, cost_usd=0.25))
    record = done.stages[-1]
    assert (record.tokens_in, record.tokens_out, record.seconds, record.cost_usd) == (70, 9, 1.5, 0.25)


def test_each_repeat_has_its_own_seed():
    seeds = []
    for repeat in range(3):
        model = ScriptedChat(["{}"])
        Generate(model, 64, 1.0, seed=5).run([Trace(Question("q", "?"), repeat, passages=(PASSAGE,))])
        seeds.append(model.requests[0].seed)
    assert seeds == [5, 6, 7]


def test_a_reader_in_text_takes_the_whole_reply_as_its_answer_and_cites_nothing():
    model = ScriptedChat(["<think>the press</think> At 140 bar [1]."])
    reader, parse = stages({}, model)
    (done,) = run_stage(parse, run_stage(reader, [TRACE]))
    (request,) = model.requests
    assert request.json_schema is None and "JSON" not in request.messages[0].content
    assert [message.content for message in request.messages if message.role == "assistant"][0].startswith("Pump B")
    assert (done.answer.text, done.answer.citations, done.answer.thinking) == ("At 140 bar [1].", (), "the press")
    (empty,) = run_stage(parse, run_stage(Generate(ScriptedChat(["  "]), 64, 0.0, as_text=True), [TRACE]))
    assert empty.failure is not None and empty.answer is None


def test_a_closed_book_answers_in_json_whatever_the_reader():
    reader, parse = stages({"answer.context": "none"}, ScriptedChat(["{}"]))
    assert not reader.as_text and not parse.as_text


ASKED = Question("q", "Who builds the press?", history=(Turn("user", "about the plant"),))


def reader(context):
    config = PipelineConfig().override({"answer.name": "llm", "answer.context": context})
    return next(one for one in Pipeline.on(sample_index(), HashEmbedder(), config).stages if isinstance(one, Generate))


def test_a_closed_book_asks_for_what_the_model_knows_in_the_users_words():
    chat = ScriptedChat(['{"answer": "Brandvik", "citations": []}'])
    Generate(chat, 32, 0.0, closed_book=True).run([Trace(ASKED, remembered=Remembered(1, ASKED.history))])
    system, *_, history, last = [message.content for message in chat.requests[0].messages]
    assert "passages" not in system.lower()
    assert NOT_FOUND in system
    assert history == "about the plant"
    assert last == "Question: Who builds the press?"


def test_only_a_context_of_none_closes_the_book():
    assert reader("none").closed_book
    assert not reader("gold").closed_book
    assert reader("none").identity() != reader("retrieved").identity()


PASSAGES = (
    Passage(1, "a#p1", "a.pdf", 1, 0, 9, "The press runs at 140 bar."),
    Passage(2, "b#0-9", "b.md", None, 0, 9, "Filters last 500 hours."),
)


def reply(answer="140 bar", citations=()):
    return json.dumps({"answer": answer, "citations": list(citations)})


@given(st.text(min_size=1).filter(str.strip), st.lists(st.sampled_from([1, 2]), unique=True))
def test_what_is_rendered_is_read_back(text, numbers):
    answer, rule = parse_reply(reply(text, numbers), PASSAGES)
    assert answer.text == text.strip()
    assert [citation.number for citation in answer.citations] == numbers
    assert rule == ""


def test_a_citation_counts_once_and_only_if_it_names_a_passage_of_the_context():
    answer, _ = parse_reply(reply(citations=[1, 3, "1", 0, 1, "two"]), PASSAGES)
    assert answer.citations == (Citation(1, "a.pdf", 1),)
    assert answer.rejected_citations == ("3", "0", "two")


@pytest.mark.parametrize("written", [2, "2", "[2]", "Passage 2", {"passage": 2, "quote": "500 hours"}])
def test_the_ways_in_which_models_write_a_citation(written):
    answer, _ = parse_reply(reply(citations=[written]), PASSAGES)
    assert [(c.source, c.page) for c in answer.citations] == [("b.md", None)]


@pytest.mark.parametrize(("mark", "thinking"), [("<think>", "Pressure? {no}"), ("", 'Is {"answer": "90"} right? No.')])
def test_thinking_is_split_off_also_without_an_opening_mark(mark, thinking):
    answer, rule = parse_reply(f"{mark}{thinking}</think>{reply()}", PASSAGES)
    assert (answer.thinking, answer.text, rule) == (thinking, "140 bar", "")


def test_abstention_is_the_shared_phrase():
    assert parse_reply(reply(NOT_FOUND), PASSAGES)[0].abstained
    assert not parse_reply(reply("It says 140 bar."), PASSAGES)[0].abstained


@pytest.mark.parametrize("raw", ["", "140 bar", '{"citations": [1]}', '{"answer": ""}', '{"answer": 7}', "<think>so"])
def test_malformed_output_fails_and_keeps_the_raw_text(raw):
    trace = Trace(Question("q", "?"), passages=PASSAGES, raw_text=raw)
    (outcome,) = Parse().run([trace])
    assert outcome.status == "failed"
    assert outcome.reason
    assert "raw_text" not in outcome.updates
    assert trace.raw_text == raw


def test_a_repair_is_a_fallback_with_its_rule():
    (outcome,) = Parse().run([Trace(Question("q", "?"), passages=PASSAGES, raw_text='{"answer": "140 ba')])
    assert outcome.status == "fallback"
    assert "cut off" in outcome.reason


@given(st.text())
def test_arbitrary_text_gives_an_outcome(raw):
    (outcome,) = Parse().run([Trace(Question("q", "?"), passages=PASSAGES, raw_text=raw)])
    assert outcome.status in ("ok", "fallback", "failed")


ROUND = "I'm a product tester."


@pytest.mark.parametrize("tail", ["", " ", " I'm a pro", " I'm a product tester"])
def test_a_circle_is_kept_once_however_its_last_round_ends(tail):
    text, rounds = without_loop(f"Hello. {' '.join([ROUND] * 9)}{tail}")
    assert (text, rounds) == (f"Hello. {ROUND}", 9)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The valve opens at 290 bar.",
        f"{ROUND} {ROUND}",
        "| --- | --- | --- | --- | --- | --- |",
        "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0",
        f"{ROUND} {ROUND} {ROUND} But then the press was stopped.",
        "Check valve V1. Check valve V2. Check valve V3. Check valve V4.",
    ],
)
def test_what_is_no_circle_is_left_as_it_is(text):
    assert without_loop(text) == (text, 0)


def test_a_long_reply_is_not_searched_for_long():
    assert without_loop("ab " * 30_000)[1] == 0
    assert without_loop("".join(chr(97 + n * n % 26) for n in range(19_000)))[1] in (0, 729, 730, 731)


def test_the_answer_says_what_was_cut_and_the_citation_stays():
    passage = Passage(1, "p", "a.txt", None, 0, 1, "x")
    answer, rule = parse_reply(f'{{"answer": "{" ".join([ROUND] * 5)}", "citations": [1]}}', [passage])
    assert (answer.text, len(answer.citations)) == (ROUND, 1)
    assert rule == "said the same 5 times, which is kept once"


def spoken(replies, whole, as_text=False):
    pieces = []
    one = Spoken(pieces.append, as_text)
    for reply in replies:
        one.hear(reply)
    one.end(whole)
    return pieces


def grown(text):
    return [text[:n] for n in range(1, len(text) + 1)]


@pytest.mark.parametrize("answer", ["It runs at 140 bar.", 'A "quote", a \\ and \u00e9 \U0001f600 end.', "one"])
def test_of_json_the_text_of_the_answer_alone_is_spoken(answer):
    raw = json.dumps({"answer": answer, "citations": [1]})
    assert "".join(spoken(grown(raw), answer)) == answer
    assert "".join(spoken(grown(f"<think>It {{'a'}} runs</think>{raw}"), answer)) == answer


def test_no_thought_and_no_circle_is_spoken():
    said = "It runs at 140 bar. "
    pieces = spoken(grown(f"<think>hidden thought</think>{said * 5}"), said.strip(), as_text=True)
    assert "hidden" not in "".join(pieces)
    assert "".join(spoken(["{not json at all", '{"other": "x y z'], "whole")) == "whole"
