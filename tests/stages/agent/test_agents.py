"""Agents: who is asked what, how often at most, what the trace keeps, and whose documents are searched."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatReply
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question
from rag_lab.stages.agent import agent
from rag_lab.testing import HashEmbedder, ScriptedChat

PAGES = {
    "press.txt": "The press runs at 140 bar. Its ram guides take grease NLGI 2 every 500 hours.",
    "oven.txt": "The oven cures at 180 degrees. Its filter is changed every month.",
    "crane.txt": "The crane lifts 12 tonnes. Its rope is inspected every week.",
    "laser.txt": "The laser cuts 20 mm of steel. Its lens is cleaned every shift.",
}
ANSWER = json.dumps({"answer": "140 bar.", "citations": [1]})


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "set" / "corpus"
    folder.mkdir(parents=True)
    for name, text in PAGES.items():
        (folder / name).write_text(text)
    return folder


def asked_for(request):
    """What a request asks for, by its schema: decision, tool, grades, query, answer, or text."""
    properties = (request.json_schema or {}).get("properties", {})
    for name, key in (("decide", "next"), ("tool", "namespace"), ("grade", "relevant"), ("answer", "answer")):
        if key in properties:
            return name
    return "refine" if properties else "text"


class Player(ScriptedChat):
    """Answers each kind of request from a list of its kind, whose last reply stands for all after it."""

    def __init__(self, **replies):
        self.kinds = []

        def script(request):
            kind = asked_for(request)
            self.kinds.append(kind)
            left = replies[kind]
            return left.pop(0) if len(left) > 1 else left[0]

        super().__init__(script, name=repr(sorted(replies.items())))


def call(query, namespace="all"):
    return json.dumps({"query": query, "namespace": namespace})


def go(*names):
    return [json.dumps({"next": name}) for name in names]


def pipeline(corpus, tmp_path, model, kind="supervisor", **settings):
    config = PipelineConfig().override(
        {"answer.name": "llm", "answer.agent": kind, "retrieval.mode": "bm25", "agent.results": 1}
        | {key.replace("__", "."): value for key, value in settings.items()}
    )
    made = Pipeline(corpus, config, home=tmp_path / "home", progress=False)
    return made.replace(generation_model=model, embedding_model=HashEmbedder())


def ask(made, text="How hard does the press push?", **rights):
    return made.run([Question("q", text, **rights)])[0]


def test_a_supervisor_searches_answers_and_finishes(corpus, tmp_path):
    model = Player(
        decide=go("context", "generate", "finish"),
        tool=[call("press bar"), call("crane rope"), call("")],
        answer=[ANSWER],
    )
    trace = ask(pipeline(corpus, tmp_path, model))
    assert [visit.node for visit in trace.visits] == [
        "supervisor", "tool_call", "search", "tool_call", "search", "tool_call", "supervisor", "generate", "supervisor",
    ]  # fmt: skip
    assert [passage.source for passage in trace.passages] == ["press.txt", "crane.txt"]
    assert [passage.number for passage in trace.passages] == [1, 2]
    assert [hit.source for hit in trace.ranked] == ["press.txt", "crane.txt"]
    assert (trace.answer.text, trace.answer.citations[0].source) == ("140 bar.", "press.txt")
    (record,) = [record for record in trace.stages if record.stage == "agent"]
    assert (record.status, record.reason) == ("ok", "")
    assert record.tokens_out == sum(visit.tokens_out for visit in trace.visits) > 0


def test_an_early_finish_is_sent_to_what_is_missing(corpus, tmp_path):
    model = Player(decide=go("finish"), tool=[call("press"), call("")], answer=[ANSWER])
    trace = ask(pipeline(corpus, tmp_path, model))
    assert [visit.node for visit in trace.visits if visit.node in ("tool_call", "generate")] == [
        "tool_call", "tool_call", "generate",
    ]  # fmt: skip
    assert trace.answer.text == "140 bar."


def test_at_both_limits_the_last_answer_counts(corpus, tmp_path):
    queries = iter(["press", "oven", "crane", "laser"])
    answers = [json.dumps({"answer": f"answer {n}", "citations": []}) for n in range(4)]
    decisions = go(*("context", "generate") * 4)
    model = Player(decide=decisions, tool=[call(query) for query in queries], answer=answers)
    trace = ask(pipeline(corpus, tmp_path, model, agent__tool_calls=1))
    assert trace.answer.text == "answer 2"
    assert trace.stages[-1].reason == "both workers were called 3 times"


def test_an_identical_search_ends_the_walk_with_an_answer(corpus, tmp_path):
    model = Player(decide=go("context"), tool=[call("press")], answer=[ANSWER])
    trace = ask(pipeline(corpus, tmp_path, model))
    assert trace.stages[-1].reason == "the same search was asked for again: press"
    assert trace.answer.text == "140 bar."
    again = Player(decide=go("context", "generate", "generate"), tool=[call("press"), call("")], answer=[ANSWER])
    trace = ask(pipeline(corpus, tmp_path, again))
    assert trace.stages[-1].reason == "the same passages were to be answered from again"


def test_a_model_that_cannot_keep_to_the_form_leaves_the_answer_to_the_single_pass(corpus, tmp_path):
    model = Player(decide=["I would search."], answer=[ANSWER])
    trace = ask(pipeline(corpus, tmp_path, model))
    record = trace.stages[-1]
    assert record.status == "fallback"
    assert record.reason.startswith("the supervisor decided nothing: the reply was not the object")
    assert record.reason.endswith("; the single pass answers")
    single = ask(pipeline(corpus, tmp_path, Player(answer=[ANSWER]), kind="none"))
    assert (trace.answer, trace.passages, trace.ranked) == (single.answer, single.passages, single.ranked)
    assert [visit.node for visit in trace.visits] == ["supervisor", "generate"]


def test_an_answer_that_fails_is_a_failure_of_the_agent(corpus, tmp_path):
    broken = Player(decide=go("context", "generate"), tool=[call("press"), call("")], answer=["no object"])
    trace = ask(pipeline(corpus, tmp_path, broken))
    assert trace.failure is not None and trace.answer is None
    assert "no JSON object" in trace.failure.reason


def test_what_was_never_seen_is_not_cited(corpus, tmp_path):
    cited = json.dumps({"answer": "140 bar.", "citations": [1, 7]})
    model = Player(decide=go("context", "generate", "finish"), tool=[call("press"), call("")], answer=[cited])
    answer = ask(pipeline(corpus, tmp_path, model)).answer
    assert [one.number for one in answer.citations] == [1]
    assert answer.rejected_citations == ("7",)


def test_a_corrective_agent_keeps_what_is_relevant(corpus, tmp_path):
    model = Player(grade=['{"relevant": [2, 9]}'], answer=[ANSWER])
    trace = ask(pipeline(corpus, tmp_path, model, "corrective", rerank__final_k=3), "press crane bar rope")
    single = ask(pipeline(corpus, tmp_path, Player(answer=[ANSWER]), "none", rerank__final_k=3), "press crane bar rope")
    assert [passage.source for passage in trace.passages] == [single.passages[1].source]
    assert trace.passages[0].number == 1
    assert trace.ranked[0].source == single.passages[1].source
    assert {hit.source for hit in trace.ranked} == {hit.source for hit in single.ranked}


def test_a_corrective_agent_refines_at_most_so_many_rounds(corpus, tmp_path):
    model = Player(
        grade=['{"relevant": []}'],
        refine=['{"query": "crane"}', '{"query": "oven"}', '{"query": "laser"}'],
        answer=[ANSWER],
    )
    trace = ask(pipeline(corpus, tmp_path, model, "corrective"))
    assert [visit.node for visit in trace.visits] == [
        "grade", "refine", "search", "grade", "refine", "search", "grade", "generate",
    ]  # fmt: skip
    assert trace.stages[-1].reason == "nothing was relevant in 2 rounds"
    assert [passage.source for passage in trace.passages] == ["oven.txt"]


def test_a_model_searches_by_itself_until_it_answers(corpus, tmp_path):
    model = Player(
        text=["I need more. <search>press bar</search> and then", "<answer>140 bar [1], not 7 [4]</answer>"],
    )
    trace = ask(pipeline(corpus, tmp_path, model, "search"))
    assert [visit.node for visit in trace.visits] == ["write", "search", "write"]
    assert trace.answer.text == "140 bar [1], not 7 [4]"
    assert ([one.source for one in trace.answer.citations], trace.answer.rejected_citations) == (["press.txt"], ("4",))
    told = [message.content for message in model.requests[1].messages]
    assert told[-1].startswith("<information>\n[1] (press.txt)")
    endless = Player(text=[f"<search>{name}</search>" for name in ("press", "oven", "crane", "laser")], answer=[ANSWER])
    trace = ask(pipeline(corpus, tmp_path, endless, "search", agent__searches=2))
    assert (trace.stages[-1].reason, trace.answer.text) == ("it had searched 2 times", "140 bar.")


def secret_corpus(tmp_path):
    folder = tmp_path / "set" / "corpus"
    folder.mkdir(parents=True)
    (folder / "open.txt").write_text("The press runs at 140 bar.")
    (folder / "secret.txt").write_text("The press costs 99 euros, a secret.")
    (folder.parent / "attributes.yaml").write_text(
        "- {files: secret.txt, permissions: [board], namespace: money}\n- {files: open.txt, namespace: plant}\n"
    )
    return folder


def test_an_agent_searches_what_its_asker_may_see(tmp_path):
    folder = secret_corpus(tmp_path)
    replies = {
        "decide": go("context", "generate", "finish"),
        "tool": [call("press costs euros", "money"), call("press costs euros"), call("")],
        "answer": [ANSWER],
    }
    model = Player(**{kind: list(texts) for kind, texts in replies.items()})
    made = pipeline(folder, tmp_path, model, agent__results=5)
    trace = ask(made, "What does the press cost?", may_see=())
    assert {passage.source for passage in trace.passages} == {"open.txt"}
    searches = [visit for visit in trace.visits if visit.node == "search"]
    assert searches[0].says == "refused: 'money' is none of all, plant"
    sent = " ".join(message.content for request in model.requests for message in request.messages)
    assert "99 euros" not in sent
    board = Player(**{kind: list(texts) for kind, texts in replies.items()})
    trace = ask(pipeline(folder, tmp_path, board, agent__results=5), "What does the press cost?", may_see=("board",))
    assert "secret.txt" in {passage.source for passage in trace.passages}
    bound = Player(**{kind: list(texts) for kind, texts in replies.items()})
    trace = ask(pipeline(folder, tmp_path, bound, agent__results=5), "What does the press cost?", namespace="plant")
    assert {passage.source for passage in trace.passages} == {"open.txt"}


def test_nodes_are_remembered_so_a_walk_that_was_killed_goes_on(corpus, tmp_path, monkeypatch):
    answers = {"tool": [call("press"), call("")], "answer": [ANSWER]}
    first = Player(decide=go("context", "generate", "finish"), **answers)
    run_stage = agent.run_stage

    def killed(stage, *args, **settings):
        if stage.name == "supervisor" and len(first.requests) == 3:
            raise KeyboardInterrupt
        return run_stage(stage, *args, **settings)

    monkeypatch.setattr(agent, "run_stage", killed)
    with pytest.raises(KeyboardInterrupt):
        ask(pipeline(corpus, tmp_path, first))
    monkeypatch.undo()
    rest = Player(decide=go("generate", "finish"), answer=[ANSWER])
    nobody = Player()
    rest.name = nobody.name = first.name
    trace = ask(pipeline(corpus, tmp_path, rest))
    assert (rest.kinds, trace.answer.text) == (["decide", "answer", "decide"], "140 bar.")
    assert ask(pipeline(corpus, tmp_path, nobody)).visits == trace.visits


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["supervisor", "corrective", "search"]), data=st.data())
def test_no_more_calls_are_made_than_a_forecast_counts(tmp_path_factory, seed, kind, data):
    tmp_path = tmp_path_factory.mktemp("walk")
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text)
    dice = random.Random(seed)
    words = ["press", "oven", "crane", "laser", "rope", "bar", "filter"]

    def script(request):
        if dice.random() < 0.05:
            return dice.choice(["", "what?", ChatReply(error="down", transient=True)])
        query = dice.choice([*words, ""])
        return {
            "decide": lambda: json.dumps({"next": dice.choice(["context", "generate", "finish"])}),
            "tool": lambda: call(query, dice.choice(["all", "all", "nowhere"])),
            "grade": lambda: json.dumps({"relevant": dice.choice([[], [], [1]])}),
            "refine": lambda: json.dumps({"query": query}),
            "answer": lambda: ANSWER,
            "text": lambda: dice.choice([f"<search>{query}</search>", "<answer>bar</answer>"]),
        }[asked_for(request)]()

    model = ScriptedChat(script, name=str(seed))
    limits = {
        f"agent__{key}": data.draw(st.integers(1, 3)) for key in ("max_calls", "tool_calls", "rounds", "searches")
    }
    made = pipeline(folder, tmp_path, model, kind, **limits)
    trace = ask(made, dice.choice(words))
    agent = made.stages[-1]
    assert len(model.requests) <= len(agent.requests([trace]))
    assert len(trace.visits) <= 200 and (trace.answer is not None or trace.failure is not None)


def test_an_agent_without_answers_is_refused(corpus, tmp_path):
    with pytest.raises(ConfigError, match="agent supervisor needs answers from what is retrieved; name is none"):
        pipeline(corpus, tmp_path, Player(), answer__name="none")


def test_memory_below_an_agent_is_that_of_its_pipeline(corpus, tmp_path):
    model = Player(decide=go("context", "generate", "finish"), tool=[call("press"), call("")], answer=[ANSWER])
    made = pipeline(corpus, tmp_path, model)
    ask(made)
    assert isinstance(made.stages[-1].memory, Memory)
