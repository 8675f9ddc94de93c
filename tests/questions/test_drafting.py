"""From documents to questions: what is asked for, what the reader must and must not find, what becomes of each kind."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from scripted_writer import GOOD, NOT_FOUND, pipeline_of, read_good, reply, scripted, write_folder, write_good

from rag_lab.errors import ConfigError
from rag_lab.questions.drafting import Drafting, _too_easy
from rag_lab.questions.writer import Draft, WriteDraft
from rag_lab.records import Question

N = 40  # more than there are places


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "set")


@pytest.fixture
def pipeline(folder):
    return pipeline_of(folder)


def draft(pipeline, chat, known=()):
    return Drafting(pipeline, N).draft(WriteDraft(chat), chat, known)


def fell(result):
    """The questions that fell, by filter."""
    found = {name: [] for _, name, _ in result.fallen}
    for one, name, _ in result.fallen:
        found[name].append(one.question.text)
    return found


def of_kind(pipeline, kind, source, chat):
    """Draft one question of a kind about a file; return its place, and what becomes of it."""
    drafting = Drafting(pipeline, N)
    first, place = drafting.todo[0], next(one for one in drafting.found if one.chunk.source == source)
    question = replace(first.question, tags=(kind, *first.question.tags[1:]))
    drafting.todo = [replace(first, kind=kind, places=(place,), question=question)]
    return drafting.draft(WriteDraft(chat), chat)


def test_good_questions_stand_with_evidence_that_is_found_and_measures(pipeline):
    result = draft(pipeline, scripted())
    asked = [one.question for one in result.stood if one.question.answerable]
    assert {one.text for one in asked} <= {text for text, *_ in GOOD} and len(asked) >= 3
    assert pipeline.locate(asked)[1] == []
    first = next(one for one in result.stood if one.kind == "single")
    assert first.bm25_rank == 1 and 0 < first.overlap <= 1
    assert first.checks == {"answerable": first.question.answers[0], "closed_book": "no answer"}
    assert first.question.tags == ("drafted", "single")


def test_no_more_calls_are_made_than_were_announced_and_none_twice(pipeline):
    chat = scripted()
    drafting = Drafting(pipeline, N)
    announced, first = drafting.n_calls(), str(drafting.draft(WriteDraft(chat), chat))
    n_written = sum(one.messages[0].content.startswith("You write") for one in chat.requests)
    n_made = len(chat.requests)
    assert n_written == announced["draft"] == len(drafting.todo)
    assert n_made - n_written <= sum(announced.values()) - announced["draft"]
    assert str(draft(pipeline, chat)) == first
    assert len(chat.requests) == n_made


def test_what_was_written_before_an_interruption_is_not_written_again(pipeline):
    chat, n_before = scripted(), 3

    class Interrupted(type(chat)):
        def generate(self, requests):
            if len(self.requests) >= n_before:
                raise KeyboardInterrupt
            return super().generate(requests)

    writer = WriteDraft(Interrupted(chat.script, name="good"))
    object.__setattr__(writer, "batch_size", 1)
    with pytest.raises(KeyboardInterrupt):
        Drafting(pipeline, N).draft(writer, chat)
    draft(pipeline, chat)
    n_written = sum(one.messages[0].content.startswith("You write") for one in chat.requests)
    assert n_written == len(Drafting(pipeline, N).todo) - n_before


def test_the_tasks_for_more_drafts_begin_with_those_for_fewer(pipeline):
    few, more = ([one.name for one in Drafting(pipeline, n).todo] for n in (2, 4))
    assert more[:2] == few
    tasks = Drafting(pipeline, N).todo
    assert {one.kind for one in tasks} >= {"single", "two_passages", "follow_up"}
    assert len({one.question.tags[1:3] for one in tasks}) >= 4  # lengths and wordings are mixed


def test_what_the_reader_does_not_find_in_the_place_falls_and_what_it_knows_without_a_passage(pipeline):
    blind = draft(pipeline, scripted("blind", read=lambda passages, question: NOT_FOUND))
    assert blind.stood == [] and set(fell(blind)) == {"written", "answerable"}
    knowing = scripted("knowing", read=lambda passages, question: read_good(" ".join(one[2] for one in GOOD), question))
    result = draft(pipeline, knowing)
    assert result.stood == [] and set(fell(result)) == {"written", "closed_book"}


def test_a_reader_that_fails_is_no_answer(pipeline):
    result = draft(pipeline, scripted("broken", read=lambda passages, question: "no object"))
    reasons = {reason.partition(":")[0] for _, name, reason in result.fallen if name == "answerable"}
    assert reasons == {"the reader failed"}


def test_a_fact_of_a_closed_file_is_a_pair_of_askers(pipeline):
    may, may_not = (one for one in draft(pipeline, scripted()).stood if "foreman" in one.question.text)
    assert (may.question.may_see, may.question.answers, may.question.answerable) == (("hr",), ("412 euros",), True)
    assert (may_not.question.may_see, may_not.question.answers, may_not.question.answerable) == ((), (), False)
    assert (may_not.question.forbidden, may_not.question.evidence, may_not.kind) == (("412 euros",), (), "forbidden")
    assert may_not.checks == {"nowhere": "no answer"}


def test_a_fact_that_an_open_file_tells_too_is_no_pair(folder):
    told = f"From now on the {GOOD[4][2]} for every month, as everybody in the house may know by now."
    (folder / "corpus/news.md").write_text(f"# News\n\n{told}\n")
    stood = draft(pipeline_of(folder), scripted()).stood
    assert [one.kind for one in stood if one.question.may_see == ("hr",)] in ([], ["single"])
    assert not any(one.kind == "forbidden" for one in stood)


def test_an_unanswerable_question_stands_only_where_nothing_in_the_index_answers_it(pipeline):
    text, _, quote = GOOD[2]

    def chat(name, asked):
        return scripted(name, lambda kind, _: reply(asked, "hall 9", [quote]))

    (stood,) = of_kind(pipeline, "unanswerable", "oven.md", chat("unknown", "How loud is the oven of hall 9?")).stood
    assert (stood.question.answerable, stood.question.answers, stood.question.evidence) == (False, (), ())
    assert stood.checks == {"nowhere": "no answer"}
    assert fell(of_kind(pipeline, "unanswerable", "oven.md", chat("known", text))) == {"nowhere": [text]}


def test_a_question_over_two_passages_falls_where_one_alone_answers_it(pipeline):
    pair = next(one for one in Drafting(pipeline, N).todo if one.kind == "two_passages")
    places = [one.chunk.text for one in pair.places]
    quotes = [" ".join(text.split()[-9:]) for text in places]
    asked, answer = "Which machine belongs to the other?", " ".join(quotes)

    def chat(needed):
        def read(passages, question):
            seen = " ".join(passages.split())
            is_known = question == asked and seen and all(quote in seen for quote in quotes[:needed])
            return json.dumps({"answer": answer, "citations": []}) if is_known else NOT_FOUND

        write = lambda kind, _: reply(asked, answer, quotes) if kind == "two_passages" else reply()  # noqa: E731
        return scripted(f"needs {needed}", write, read)

    (both,) = draft(pipeline, chat(2)).stood
    assert [item.source for item in both.question.evidence] == [one.chunk.source for one in both.places]
    assert both.question.query_class == "comparative"
    result = draft(pipeline, chat(1))
    assert result.stood == [] and fell(result)["needs_both"] == [asked]


def test_a_follow_up_is_read_and_kept_with_its_history(pipeline):
    _, answer, quote = GOOD[2]
    before = ["Is there an oven?", "Yes, there is one."]

    def read(passages, question):
        return json.dumps({"answer": answer, "citations": []}) if quote in passages else NOT_FOUND

    chat = scripted("follows", lambda kind, _: reply("And how hot is it?", answer, [quote], before), read)
    (stood,) = of_kind(pipeline, "follow_up", "oven.md", chat).stood
    assert [turn.content for turn in stood.question.history] == before
    read_with = [[one.content for one in request.messages] for request in chat.requests[1:]]
    assert len(read_with) == 2 and all(before[0] in messages for messages in read_with)
    alone = scripted("alone", lambda kind, _: reply("And how hot is it?", answer, [quote]), read)
    assert list(fell(of_kind(pipeline, "follow_up", "oven.md", alone))) == ["pointing"]


def test_a_topic_has_facts_that_stand_there_and_is_no_question_of_the_set(pipeline):
    facts = ["cures brake pads at 180 degrees", "the burner is locked out"]
    chat = scripted("topics", lambda kind, _: reply("The curing oven", "", facts))
    result = of_kind(pipeline, "topic", "oven.md", chat)
    (topic,) = result.topics
    assert (topic.question.text, topic.question.answers, topic.quotes) == ("The curing oven", tuple(facts), facts)
    assert (result.stood, result.n_stood, len(chat.requests)) == ([], 1, 1)
    one_fact = scripted("one fact", lambda kind, _: reply("The curing oven", "", facts[:1]))
    assert list(fell(of_kind(pipeline, "topic", "oven.md", one_fact))) == ["located"]


def test_half_of_a_set_may_be_found_by_its_words_alone():
    ranked = [(0.9, 1), (0.8, 1), (0.7, 1), (0.6, 1), (0.5, 1), (0.9, 2)]
    drafts = [
        Draft(Question(f"q{n}", "?"), "single", (), overlap=overlap, bm25_rank=rank)
        for n, (overlap, rank) in enumerate(ranked)
    ]
    unanswerable = Draft(Question("u", "?"), "unanswerable", (), overlap=1.0, bm25_rank=1)
    assert [one.name for one, why in _too_easy([*drafts, unanswerable]) if why] == ["q0", "q1"]


def test_no_draft_asks_what_somebody_has_asked_already(pipeline):
    wanted = draft(pipeline, scripted()).stood[0].question.text
    assert wanted in fell(draft(pipeline, scripted(), [Question("mine", wanted)]))["near_duplicates"]


def test_the_table_counts_each_filter_and_shows_the_spread(pipeline):
    def write(kind, asked):
        good = json.loads(write_good(kind, asked))
        return json.dumps(
            good | {"quotes": ["grease of which nobody wrote"]} if GOOD[1][0] == good["question"] else good
        )

    text = str(draft(pipeline, scripted("some bad", write)))
    counts = {line.split()[0]: line.split()[1:3] for line in text.splitlines() if line[:1].isalpha()}
    assert counts["located"][1] == "1" and int(counts["written"][0]) == len(Drafting(pipeline, N).todo)
    assert "does not stand there: Which grease is right" in " ".join(text.split())
    assert all(f"  {name} " in text for name in ("file", "kind", "span", "language", "length", "overlap", "BM25 rank"))


def test_files_without_text_are_named_and_a_corpus_without_any_is_refused(folder):
    (folder / "corpus/empty.md").write_text("# 1\n\n- - -\n")
    sentence = Drafting(pipeline_of(folder), 3).found_sentence()
    assert sentence.startswith("5 places in 4 files (") and sentence.endswith("about empty.md: no text of its own.")
    for path in (folder / "corpus").glob("*.md"):
        path.write_text("# 1\n\n- - -\n")
    with pytest.raises(ConfigError, match="No file of set has a text that can be asked about"):
        Drafting(pipeline_of(folder), 3)


def test_the_places_are_of_all_files(pipeline):
    assert Counter(one.chunk.source for one in Drafting(pipeline, 4).found).keys() == {
        "press.md", "oven.md", "parts.md", "pay.md"}  # fmt: skip
