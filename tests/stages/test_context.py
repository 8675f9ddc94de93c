from dataclasses import replace
from functools import cache

import pymupdf
import pytest
from doubles import TEXTS, Corpus, hits
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import open_index
from rag_lab.records import NO_LABEL, OF_LABELS, Evidence, Passage, Question, Trace
from rag_lab.stages.context import (
    NEAREST,
    Assemble,
    ContextBudget,
    DocumentContext,
    GoldContext,
    GoldFirst,
    NoContext,
    Wanted,
    render_passages,
)
from rag_lab.stages.run_stage import stage_key
from rag_lab.stores.config import StoreConfig
from rag_lab.testing import HashEmbedder, ScriptedChat, StageContract, sample_index, sample_question
from rag_lab.testing.doubles import WITHHELD, sample_trace

COUNTER = ScriptedChat([])
LONG = "# Press\n\n" + "".join(f"Rule {number}: the press stops at {number} bar.\n\n" for number in range(200))


def budget(max_tokens=400):
    return ContextBudget(COUNTER, max_tokens)


def given_to(stage, question):
    (outcome,) = stage.run([Trace(question)])
    return outcome


class TestNoContext(StageContract):
    def make(self):
        return NoContext()


class _LabelContract(StageContract):
    """It keeps to the contract of stages, but that it reads the labels: that is what it is for."""

    def test_it_names_trace_fields_and_none_that_only_the_dataset_knows(self):
        labels = {"question.text", "question.answers", "question.evidence", "question.may_see", "question.namespace"}
        assert set(self.built().reads) <= labels

    def test_what_it_does_not_read_does_not_matter_and_its_trace_stays(self):
        trace = sample_trace()
        other = replace(trace, question=replace(trace.question, tags=("t",), query_class="fuzzy"), ranked=())
        assert stage_key(self.built(), "i", trace) == stage_key(self.built(), "i", other)
        self.built().run([trace])
        assert trace == sample_trace()


class TestGold(_LabelContract):
    def make(self):
        return GoldContext(sample_index(), budget())


class TestDocument(_LabelContract):
    def make(self):
        return DocumentContext(sample_index(), budget())


class TestGoldFirst(_LabelContract):
    def make(self):
        return GoldFirst(sample_index(), budget(), 2)

    def test_it_names_trace_fields_and_none_that_only_the_dataset_knows(self):
        assert set(self.built().reads) == {*GoldContext.reads, "ranked"}

    def test_what_it_does_not_read_does_not_matter_and_its_trace_stays(self):
        trace = sample_trace()
        other = replace(trace, question=replace(trace.question, tags=("t",), query_class="fuzzy"))
        assert stage_key(self.built(), "i", trace) == stage_key(self.built(), "i", other)
        self.built().run([trace])
        assert trace == sample_trace()


def test_evidence_stands_on_top_of_what_was_found_and_once():
    trace = sample_trace()
    gold = GoldContext(sample_index(), budget()).outcome(trace).updates["passages"]
    found = Assemble(sample_index(), budget(), 2).outcome(trace).updates["passages"]
    both = GoldFirst(sample_index(), budget(), 2).outcome(trace).updates["passages"]
    first = [one.parent_id for one in gold]
    assert [one.parent_id for one in both] == first + [one.parent_id for one in found if one.parent_id not in first]
    assert [one.number for one in both] == [*range(1, len(both) + 1)] and len(both) > len(gold) > 0


def test_a_closed_book_has_no_passages():
    assert given_to(NoContext(), sample_question()).updates == {"passages": ()}


def test_gold_is_the_parent_of_the_quote_whatever_was_retrieved():
    index = sample_index()
    trace = sample_trace()
    (outcome,) = GoldContext(index, budget()).run([replace(trace, ranked=())])
    (passage,) = outcome.updates["passages"]
    assert "the burner of the oven is locked out" in passage.text
    assert (passage.number, passage.source) == (1, "oven.md")
    assert passage.parent_id in {parent.parent_id for parent in index.chunks.parents()}


def test_a_page_that_is_labelled_twice_is_read_once():
    evidence = [Evidence("oven.md", quote=quote) for quote in ("cures at 180 degrees", "changed every month")]
    question = sample_question(evidence=tuple(sample_index().locate(item)[0] for item in evidence))
    assert len(given_to(GoldContext(sample_index(), budget()), question).updates["passages"]) == 1


@pytest.mark.parametrize("kind", [GoldContext, DocumentContext])
def test_without_evidence_there_is_nothing_to_read_and_the_record_says_why(kind):
    outcome = given_to(kind(sample_index(), budget()), sample_question(answerable=False, evidence=()))
    assert (outcome.updates["passages"], outcome.reason) == ((), NO_LABEL)


@pytest.mark.parametrize("kind", [GoldContext, DocumentContext])
@pytest.mark.parametrize("may_see", [(), ("office",)])
def test_labels_of_what_an_asker_may_not_see_are_not_read(kind, may_see):
    question = sample_question(evidence=(Evidence(WITHHELD),), may_see=may_see)
    passages = given_to(kind(sample_index(), budget()), question).updates["passages"]
    assert [passage.source for passage in passages] == ([WITHHELD] if may_see else [])


@cache
def long_index(home):
    corpus = home / "corpus"
    corpus.mkdir()
    (corpus / "rules.md").write_text(LONG, encoding="utf-8")
    (corpus / "other.md").write_text("Nothing of the kind.\n", encoding="utf-8")
    config = CorpusConfig(parents="fixed", parent_size=600, chunk_size=200, chunk_overlap=0)
    return open_index(corpus, config, HashEmbedder(), home=home, store=StoreConfig(name="exact"))


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return long_index(tmp_path_factory.mktemp("long"))


def rule(index, number):
    return index.locate(Evidence("rules.md", quote=f"Rule {number}: the press stops at {number} bar."))[0]


@given(number=st.integers(0, 199), max_tokens=st.integers(30, 300))
def test_a_quote_is_read_wherever_it_stands_and_however_small_the_budget(index, number, max_tokens):
    question = Question("q", "At what pressure?", evidence=(rule(index, number),))
    for kind in (GoldContext, DocumentContext):
        passages = given_to(kind(index, budget(max_tokens)), question).updates["passages"]
        assert COUNTER.count_tokens(render_passages(passages)) <= max_tokens
        assert [passage.number for passage in passages] == list(range(1, len(passages) + 1))
        assert f"Rule {number}: the press" in " ".join(passage.text for passage in passages)


@pytest.mark.parametrize("kind", [GoldContext, DocumentContext])
def test_a_window_of_a_file_that_is_one_text_has_the_page_on_which_it_begins(monkeypatch, index, kind):
    starts = ((1, 0), (2, 100), (3, LONG.index("Rule 120:")), (4, LONG.index("Rule 180:")))
    by_file = {rule(index, 150).source: starts}
    monkeypatch.setitem(vars(index), "manifest", replace(index.manifest, page_starts=by_file))
    question = Question("q", "At what pressure?", evidence=(rule(index, 150),))
    (passage,) = given_to(kind(index, budget(60)), question).updates["passages"]
    assert passage.parent_text and passage.page == 3


@pytest.mark.parametrize("kind", [GoldContext, DocumentContext])
def test_the_evidence_of_a_file_that_was_cut_as_one_text_is_read(tmp_path, kind):
    pdf = pymupdf.open()
    for text in ("The valve opens at", "275 bar and closes at 240 bar."):
        pdf.new_page().insert_text((72, 72), text)
    (tmp_path / "corpus").mkdir()
    pdf.save(tmp_path / "corpus" / "manual.pdf")
    config = CorpusConfig(pdf_unit="file", parents="none")
    manual = open_index(tmp_path / "corpus", config, HashEmbedder(), home=tmp_path, store=StoreConfig(name="exact"))
    question = Question("q", "?", evidence=(manual.locate(Evidence("manual.pdf", 2, "closes at 240"))[0],))
    (passage,) = given_to(kind(manual, budget()), question).updates["passages"]
    assert passage.text == "The valve opens at\n275 bar and closes at 240 bar."


def test_a_document_is_read_whole_where_it_fits_and_what_does_not_is_counted(index):
    question = Question("q", "At what pressure?", evidence=(rule(index, 150),))
    whole = given_to(DocumentContext(index, budget(100_000)), question)
    assert [(passage.text, passage.parent_text) for passage in whole.updates["passages"]] == [(LONG.strip(), "")]
    assert whole.reason == OF_LABELS


def test_a_document_keeps_the_order_of_its_pages_and_loses_the_furthest(monkeypatch):
    pages = [
        replace(sample_index().chunks.documents()[0], source="m.pdf", page=page, text=f"Page {page}. " * 20)
        for page in range(1, 8)
    ]
    index = sample_index()
    monkeypatch.setattr(type(index.chunks), "documents", lambda self, source: pages)
    monkeypatch.setattr(type(index), "is_visible", lambda self, source, question: True)
    question = Question("q", "?", evidence=(Evidence("m.pdf", 5, start=0, end=4),))
    each = COUNTER.count_tokens(pages[0].text)
    outcome = given_to(DocumentContext(index, budget(int(each * 3.6))), question)
    assert [passage.page for passage in outcome.updates["passages"]] == [4, 5, 6]
    assert "; 4 of 7 passages did not fit" in outcome.reason


@given(
    number=st.integers(0, 199), max_tokens=st.integers(150, 300), kind=st.sampled_from([GoldContext, DocumentContext])
)
def test_of_a_file_that_is_named_alone_the_passages_nearest_to_question_and_answer_are_read(
    index, number, max_tokens, kind
):
    asked = Question("q", "When does the press stop?", (f"By rule {number}.",), evidence=(Evidence("rules.md"),))
    outcome = given_to(kind(index, budget(max_tokens)), asked)
    passages = outcome.updates["passages"]
    assert f"Rule {number}: the press" in passages[0].text
    assert kind is DocumentContext or len(passages[0].text) > 500  # the whole parent, not a shred of each
    assert kind is DocumentContext or f"{OF_LABELS}; {NEAREST}; " in outcome.reason
    assert COUNTER.count_tokens(render_passages(passages)) <= max_tokens


def test_beside_a_quote_the_nearest_of_a_whole_file_come_in_turn(index):
    evidence = (Evidence("rules.md"), index.locate(Evidence("other.md", quote="Nothing of the kind"))[0])
    asked = Question("q", "When?", ("By rule 150.",), evidence=evidence)
    passages = given_to(GoldContext(index, budget(400)), asked).updates["passages"]
    assert [passage.source for passage in passages[:2]] == ["other.md", "rules.md"]
    assert "Rule 150:" in passages[1].text


def assemble(parent_ids, max_tokens, final_k=9, max_bytes=0):
    trace = Trace(Question("q", "?"), ranked=tuple(hits(*parent_ids)))
    (outcome,) = Assemble(Corpus(), ContextBudget(COUNTER, max_tokens, max_bytes), final_k).run([trace])
    return outcome


@given(st.permutations(list(TEXTS)), st.integers(1, 4), st.integers(1, 600))
def test_the_budget_is_never_exceeded_and_the_order_is_kept(parent_ids, final_k, max_tokens):
    passages = assemble(parent_ids, max_tokens, final_k).updates["passages"]
    assert not passages or COUNTER.count_tokens(render_passages(passages)) <= max_tokens
    assert [passage.number for passage in passages] == list(range(1, len(passages) + 1))
    found = [passage.parent_id for passage in passages]
    assert found == [parent_id for parent_id in parent_ids[:final_k] if parent_id in found]


@given(st.permutations(list(TEXTS)), st.integers(1, 600), st.integers(1, 3000))
def test_neither_of_two_budgets_is_exceeded(parent_ids, max_tokens, max_bytes):
    passages = assemble(parent_ids, max_tokens, max_bytes=max_bytes).updates["passages"]
    text = render_passages(passages)
    assert not passages or (COUNTER.count_tokens(text) <= max_tokens and len(text.encode()) <= max_bytes)


def test_bytes_are_those_of_utf_8_and_the_reason_names_both_budgets():
    (passage,) = assemble(["press#p1"], 10_000, max_bytes=200).updates["passages"]
    assert passage.text == TEXTS["press#p1"]
    outcome = assemble(["press#p1", "oven#p2"], 10_000, max_bytes=60)
    assert outcome.reason == "2 of 2 passages did not fit 10000 tokens and 60 bytes"


@given(st.integers(1, 600))
def test_every_passage_is_the_span_it_says(max_tokens):
    for passage in assemble(list(TEXTS), max_tokens).updates["passages"]:
        assert TEXTS[passage.parent_id][passage.start : passage.end] == passage.text


def test_what_fits_stands_whole_with_source_and_page():
    (passage,) = assemble(["press#p1"], 500).updates["passages"]
    assert passage.text == TEXTS["press#p1"]
    assert render_passages([passage]).startswith("[1] (press.pdf, page 1)\n")


def test_a_long_parent_is_cut_around_the_child_that_matched():
    (passage,) = assemble(["oven#p2"], 80).updates["passages"]
    middle = len(TEXTS["oven#p2"]) // 2
    assert passage.start < middle < passage.end
    assert passage.start > 0
    assert passage.end < len(TEXTS["oven#p2"])


def test_what_a_short_passage_leaves_goes_to_those_after_it():
    alone = assemble(["press#p1", "oven#p2"], 300).updates["passages"][1]
    half = assemble(["oven#p2"], 150).updates["passages"][0]
    assert len(alone.text) > len(half.text)


def test_passages_that_do_not_fit_are_counted():
    outcome = assemble(list(TEXTS), 5)
    assert outcome.updates["passages"] == ()
    assert outcome.reason == "4 of 4 passages did not fit 5 tokens"


class Greedy(ScriptedChat):
    """A counter for which a text that joins passages is longer than its parts."""

    def count_tokens(self, text):
        return super().count_tokens(text) * (1 + text.count("\n\n["))


@given(st.permutations(list(TEXTS)), st.integers(1, 600))
def test_the_whole_is_counted_not_only_its_parts(parent_ids, max_tokens):
    counter = Greedy([])
    trace = Trace(Question("q", "?"), ranked=tuple(hits(*parent_ids)))
    (outcome,) = Assemble(Corpus(), ContextBudget(counter, max_tokens), 9).run([trace])
    passages = outcome.updates["passages"]
    assert not passages or counter.count_tokens(render_passages(passages)) <= max_tokens


def test_a_passage_that_many_questions_find_is_counted_once():
    counted = []

    class Recording(ScriptedChat):
        def count_tokens(self, text):
            counted.append(text)
            return super().count_tokens(text)

    trace = Trace(Question("q", "?"), ranked=tuple(hits(*TEXTS)))
    Assemble(Corpus(), ContextBudget(Recording([]), 10_000), 9).run([trace, trace])
    assert len(counted) == 2 * (len(TEXTS) + 1)  # each passage by itself, and once the whole
    assert len(set(counted)) == len(TEXTS) + 1


def test_a_window_of_a_file_that_is_one_text_names_the_page_on_which_it_begins():
    long = "Alarm A7 of the oven means that the burner is locked out. " * 30
    whole = Passage(1, "m.pdf#0-1740", "m.pdf", 3, 0, len(long), long)
    (passage,) = ContextBudget(COUNTER, 60).fill([Wanted(whole, 1500, ((3, 0), (4, 900)))], is_shared=True)
    assert passage.start > 900 and passage.page == 4
    assert "(m.pdf, page 4)" in render_passages([passage])
    (plain,) = ContextBudget(COUNTER, 60).fill([Wanted(whole, 1500)], is_shared=True)
    assert plain.page == 3
