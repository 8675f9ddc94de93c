import pytest
from loopback_models import openai_server
from small_dataset import write_dataset

from rag_lab._kit.home import home
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError, RagLabError
from rag_lab.experiment.run.variant_work import VariantProgress, to_parameters
from rag_lab.notebook.variant import VariantRun
from rag_lab.notebook.views.pipeline_view import summary_table
from rag_lab.records import Answer, Hit, Passage, Score, Trace
from rag_lab.runs.run_folder import RunFolder, VariantPlan
from rag_lab.runs.variant_files import LiveVariant, read_live
from rag_lab.stages.stage import Outcome

pytestmark = pytest.mark.slow


@pytest.fixture
def parameters(tmp_path):
    empty = dict.fromkeys(("CONFIG", "OUT", "QUESTIONS", "METRIC_EMBEDDING", "JUDGE", "JUDGE_LANGUAGE"), "")
    given = {"DATASET": str(write_dataset(tmp_path)), "METRICS": "retrieval.mrr@10, cost.usd,", "REPEATS": 2}
    return to_parameters(PipelineConfig()) | empty | given | {"_private": object()}


def write_plan(folder, questions, answered):
    baseline = VariantPlan("baseline", "baseline")
    RunFolder(folder, "n", "q", "d", "baseline", (), 1, (baseline,), tuple(questions), tuple(answered)).write_plan()
    return str(folder / "plan.json")


def test_parameters_become_a_variant(parameters):
    variant = VariantRun.from_parameters(parameters | {"FINAL_K": 2})
    assert variant.pipeline.config == PipelineConfig().override({"rerank.final_k": 2})
    assert variant.questions == variant.answered == ("q1", "q2", "q3", "q4")
    assert variant.metrics == ("retrieval.mrr@10", "cost.usd")
    assert (variant.judge, variant.out, variant.repeats) == (None, None, 2)
    assert VariantRun.from_parameters(parameters | {"JUDGE_LANGUAGE": "german"}).judge_language == "german"
    assert variant.metric_embedding == variant.pipeline.config.models.embedding
    assert "final_k: 2" in variant._repr_html_()
    assert "where nothing is remembered yet" in " ".join(str(variant).split())
    (home() / "stages.sqlite").write_bytes(b"0" * 300_000)
    assert f"{home()}, whose 0.3 MB of remembered results" in variant._repr_html_()
    assert variant.save() is None


@pytest.mark.parametrize("repeats", [0, 101, 10**9])
def test_repeats_have_the_bounds_that_an_experiment_has(parameters, repeats):
    with pytest.raises(ConfigError, match="REPEATS must be a whole number from 1 to 100"):
        VariantRun.from_parameters(parameters | {"REPEATS": repeats})


def test_what_has_no_name_comes_from_the_file(parameters, tmp_path):
    (tmp_path / "c.yaml").write_text("answer: {temperature: 0.5}\nrerank: {final_k: 9}")
    variant = VariantRun.from_parameters(parameters | {"CONFIG": str(tmp_path / "c.yaml")})
    assert variant.pipeline.config.answer.temperature == 0.5
    assert variant.pipeline.config.rerank.final_k == 5  # the notebook's own value is what is seen, so it is what counts


def test_questions_are_those_of_a_plan_or_a_sample(parameters, tmp_path):
    plan = write_plan(tmp_path / "run", ["q1", "q3"], ["q3"])
    variant = VariantRun.from_parameters(parameters | {"QUESTIONS": plan})
    assert (variant.questions, variant.answered) == (("q1", "q3"), ("q3",))
    assert len(VariantRun.from_parameters(parameters | {"QUESTIONS": "3"}).questions) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"USE_HYDE": "never"}, "query.hyde"),
        ({"DATASET": "nowhere"}, "nowhere"),
        ({"CONFIG": "nowhere.yaml"}, "nowhere.yaml"),
        ({"QUESTIONS": "nowhere/plan.json"}, "no run folder"),
        ({"QUESTIONS": "0"}, "at least one"),
        ({"REPEATS": "many"}, "REPEATS must be a whole number, got 'many'"),
        ({"FINAL_K": 0}, r"FINAL_K \(rerank.final_k\): must be greater"),
        ({"FINALK": 3}, "did you mean 'FINAL_K'"),
        ({"METRICS": "retrieval.ndgc@10"}, "did you mean 'retrieval.ndcg@k'"),
        ({"METRICS": "ragas.faithfulness"}, "needs a judge"),
    ],
)
def test_an_impossible_parameter_is_a_sentence(parameters, change, said):
    with pytest.raises(RagLabError, match=said):
        VariantRun.from_parameters(parameters | change)


def test_a_plan_for_other_questions_is_refused(parameters, tmp_path):
    plan = write_plan(tmp_path / "run", ["q1", "q77"], [])
    with pytest.raises(RagLabError, match="q77"):
        VariantRun.from_parameters(parameters | {"QUESTIONS": plan})


def test_results_go_to_a_folder_that_need_not_be_there(parameters, tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    retrieval_alone = {"query.rewrite": "none", "query.hyde": "none", "rerank.name": "none", "answer.name": "none"}
    config = PipelineConfig().override(retrieval_alone)
    (tmp_path / "config.yaml").write_text(config.to_yaml())
    changes = {"CONFIG": str(tmp_path / "config.yaml"), "OUT": str(tmp_path / "new" / "folder"), "REPEATS": 1}
    variant = VariantRun.from_parameters(parameters | to_parameters(config) | changes)
    assert len(variant.run()) == 4
    variant.score()
    assert variant.save() == tmp_path / "new" / "folder"
    assert (tmp_path / "new" / "folder" / "traces.jsonl").read_text().count("\n") == 4


def test_a_judge_that_talks_nonsense_costs_its_own_scores_alone(parameters):
    passage, hit = Passage(1, "p", "press.md", None, 0, 9, "290 bar."), Hit("p", "c", "press.md", None, 0, 9, 1.0)
    with openai_server(lambda _: "What a lovely day.") as server:
        judged = {"JUDGE": f"openai:tiny?base_url={server.url}", "METRICS": "retrieval.RR@10,ragas.faithfulness"}
        variant = VariantRun.from_parameters(parameters | judged)
        variant.traces = [
            Trace(question, ranked=(hit,), passages=(passage,), answer=Answer("290 bar."))
            for question in variant.pipeline.dataset.questions
        ]
        frame = variant.score()
    counts = variant.summary()[["scored", "failed", "not_applicable"]]
    assert counts.loc["retrieval.RR@10"].to_list() == [3, 0, 1]
    assert counts.loc["ragas.faithfulness"].to_list() == [0, 4, 0]
    assert set(frame.loc[frame.status == "failed", "reason"]) == {
        "the judge's reply holds no JSON object: 'What a lovely day.'"
    }


def test_a_mean_is_over_what_was_scored_and_says_what_was_not():
    scores = [
        Score("a", "m", 1.0),
        Score("b", "m", 0.0),
        Score("c", "m", None, "failed", "broken"),
        Score("d", "m", None, "not_applicable", "no reference"),
        Score("a", "n", None, "failed", "broken"),
    ]
    table = summary_table(["m", "n"], scores)
    counts = {"asked": 4, "scored": 2, "failed": 1, "not_applicable": 1}
    assert table.loc["m", "mean"] == 0.5 and table.loc["m", list(counts)].to_dict() == counts
    assert 0.0 <= table.loc["m", "low"] < 0.5 < table.loc["m", "high"] <= 1.0
    assert table.loc["n", ["asked", "scored", "failed"]].to_list() == [1, 0, 1]


def test_a_sweep_reads_the_stage_from_a_file_that_is_gone_at_the_end(tmp_path):
    with VariantProgress(tmp_path) as progress:
        progress("index")
        assert read_live(tmp_path, LiveVariant).stage == "index"
        progress.saw("generate", [Outcome(), Outcome(status="failed", reason="no key")], "computed")
        progress.saw("generate", [Outcome(status="fallback", reason="unreadable")], "remembered")
        progress("generate", 3, 8)
        live = read_live(tmp_path, LiveVariant)
        assert (live.stage, live.done, live.total, live.known) == ("generate", 3, 8, 3)
        assert (live.remembered, live.computed, live.failed, live.fell_back) == (1, 2, 1, 1)
        assert live.reason == "generate: unreadable"
        for n in range(4, 9):
            progress("generate", n, 8)
        assert read_live(tmp_path, LiveVariant).done == 3  # a few times a second at most
    assert not list(tmp_path.iterdir())
    assert (progress.live.remembered, progress.live.computed) == (1, 2)


def test_by_hand_each_stage_has_a_bar(capsys):
    with VariantProgress(None) as progress:
        progress("index")
        progress("hyde", 1, 2)
        progress("hyde", 2, 2)
        progress("generate", 2, 2)
    err = capsys.readouterr().err
    assert "hyde: 100%" in err
    assert "generate: 100%" in err
