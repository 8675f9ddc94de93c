"""At every place a module of one's own may stand: as a function, a frozen dataclass, or a whole stage."""

import pytest
from own_modules import FUNCTIONS, AsClass, AsStage, Faulty, NanStage
from small_dataset import write_dataset

from rag_lab.config import PipelineConfig
from rag_lab.models import shared
from rag_lab.pipeline import STAGE_SLOTS, Pipeline
from rag_lab.records import Question, Turn
from rag_lab.testing import HashEmbedder, ScriptedChat

REPLY = '{"class": "fuzzy", "rewritten": "oven", "hyde": true, "answer": "A7", "citations": [1]}'
PLAIN = {
    "query.rewrite": "none",
    "query.hyde": "always",
    "query.min_similarity": -1.0,
    "store.name": "exact",
    "retrieval.mode": "hybrid",
}


@pytest.fixture
def pipeline(tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "embedder", lambda spec: HashEmbedder())
    monkeypatch.setattr(shared, "chat_model", lambda spec, purpose="": ScriptedChat(lambda request: REPLY))
    config = PipelineConfig().override(PLAIN)
    return Pipeline(write_dataset(tmp_path), config, home=tmp_path / "home", progress=False)


def test_every_place_has_an_example():
    assert sorted(FUNCTIONS) == sorted(STAGE_SLOTS)


@pytest.mark.parametrize("form", ["function", "class", "stage"])
@pytest.mark.parametrize("slot", STAGE_SLOTS)
def test_it_stands_at_its_place(pipeline, slot, form):
    module = {"function": FUNCTIONS[slot], "class": AsClass(slot), "stage": AsStage(slot)}[form]
    mine = pipeline.replace(**{slot: module})
    traces = mine.run()
    assert [trace.failure for trace in traces] == [None] * 4
    if form != "stage":
        check(slot, traces[1])
    again = mine.run()
    records = [record for trace in again for record in trace.stages if record.stage in places(slot, form)]
    assert len(records) == 4 and all(record.remembered for record in records)


def places(slot, form):
    if form == "stage":
        return ("whole",)
    return {"rewrite": ("propose",), "fusion": ("retrieve",), "reader": ("generate",), "search": (
        "search_search", "search_AsClass(slot='search')",
    )}.get(slot, (slot,))  # fmt: skip


def check(slot, trace):
    """The question is `What does alarm A7 of the oven mean?`."""
    text = trace.question.text
    seen = {
        "understand": lambda: (trace.query_class, trace.proposed_query) == ("fuzzy", text.lower()),
        "rewrite": lambda: trace.search_query == text.rstrip("?"),
        "hyde": lambda: trace.hypothetical == f"None: {text}",
        "search": lambda: [hit.source for hit in trace.base_hits] == ["canteen.txt", "oven.txt"],
        "fusion": lambda: trace.base_hits[0].score == trace.base_hits[0].scores["own_fusion"],
        "rerank": lambda: trace.ranked[0].source == "canteen.txt",
        "select": lambda: len(trace.ranked) == 2 and trace.ranked[0].scores["own_selection"] == 1.0,
        "context": lambda: all(len(p.text) <= 20 < len(p.parent_text) for p in trace.passages),
        "reader": lambda: [c.number for c in trace.answer.citations] == [1] and trace.answer.rejected_citations,
    }
    assert seen[slot]()


@pytest.mark.parametrize("fault", ["raises", "hangs", "wrong type", "nearly right"])
@pytest.mark.parametrize("slot", [slot for slot in STAGE_SLOTS if slot != "fusion"])
def test_a_fault_costs_the_question_that_it_concerns(pipeline, slot, fault):
    traces = pipeline.replace(**{slot: Faulty(slot, fault)}).run()
    failed = [trace.question.question_id for trace in traces if trace.failure]
    assert failed == ["q2"]
    said = {"raises": "raised RuntimeError: out of paper", "hangs": "did not return within 0.3 s"}
    assert said.get(fault, "") in traces[1].failure.reason
    assert traces[1].failure.reason


@pytest.mark.parametrize("fault", ["raises", "hangs", "wrong type", "nearly right"])
def test_a_fault_of_a_fusion_is_said(pipeline, fault):
    (trace,) = pipeline.replace(fusion=Faulty("fusion", fault)).run(pipeline.dataset.questions[:1])
    assert trace.failure and trace.failure.stage == "retrieve" and trace.failure.reason


def test_a_fusion_that_returns_an_id_twice_says_so(pipeline):
    mine = pipeline.replace(fusion=lambda lists, k: [*lists["bm25"], *lists["bm25"]])
    (trace,) = mine.run(pipeline.dataset.questions[:1])
    assert trace.failure.reason == "the fusion returned an id twice"


def test_a_score_that_is_no_number_costs_its_question(pipeline):
    traces = pipeline.replace(rerank=NanStage("rerank")).run()
    assert [bool(trace.failure) for trace in traces] == [False, True, False, False]
    assert "no number" in traces[1].failure.reason


def test_a_rewriting_reads_what_is_remembered_of_the_conversation(pipeline):
    heard = []

    def rewrite(question, history):
        heard.append(history)
        return f"{history[0]} {question}" if history else question

    turns = (Turn("user", "old"), Turn("assistant", "40."), Turn("user", "P-1 oven?"), Turn("assistant", "At 40 bar."))
    asked = [Question("a", "And P-2?", history=turns), Question("b", "P-3?")]
    made = pipeline.set({"conversation.memory": "last_exchange", "query.guard": False}).replace(rewrite=rewrite)
    follow_up, first = made.run(asked)
    assert ["P-1 oven?", "At 40 bar."] in heard and [] in heard and not any("old" in texts for texts in heard)
    assert (follow_up.search_query, first.search_query) == ("P-1 oven? And P-2?", "P-3?")


def test_a_name_in_the_configuration_does_what_the_object_does(pipeline, monkeypatch, tmp_path):
    (tmp_path / "mine.py").write_text(
        "def understand(question):\n    return {'class': 'fuzzy'}\n"
        "def rewrite(question, history):\n    return question\n"
        "def hyde(question, query_class):\n    return question\n"
        "def fusion(lists, k):\n    return lists['bm25'][:k]\n"
        "def select(question, passages, scores):\n    return [0]\n"
        "def context(question, passages):\n    return passages\n"
        "def reader(question, passages):\n    return 'yes'\n"
    )
    monkeypatch.setenv("RAG_LAB_MODULES", str(tmp_path))
    named = pipeline.set(
        {
            "query.understanding": "mine:understand",
            "query.rewrite": "mine:rewrite",
            "query.hyde": "classified",
            "query.hyde_writer": "mine:hyde",
            "retrieval.fusion": "mine:fusion",
            "select.name": "mine:select",
            "answer.context": "mine:context",
            "answer.name": "mine:reader",
        }
    )
    monkeypatch.setattr(shared, "chat_model", lambda spec, purpose="": ScriptedChat(None))  # counts, never answers
    for trace in named.run():
        assert trace.failure is None
        assert (trace.query_class, trace.answer.text, len(trace.ranked)) == ("fuzzy", "yes", 1)


def test_a_module_is_tried_twice_once_in_the_life_of_a_pipeline(pipeline):
    calls = []

    def shortest(question, passages):
        calls.append(question)
        return [-len(text) for text in passages]

    mine = pipeline.replace(rerank=shortest)
    assert mine.stages is mine.stages
    first, second = "Which valve opens?", "Which pump runs?"
    mine.ask(first)
    mine.ask(second)
    assert calls == [first, first, second]
