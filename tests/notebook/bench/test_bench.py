import shlex
from collections.abc import Callable
from pathlib import Path
from threading import Event, current_thread

import pytest
from run_folder_fixture import build_run
from small_dataset import write_dataset

import rag_lab as rl
from rag_lab import pipeline as pipeline_module
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError, ModelError, RagLabError
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.experiment.plan import plan
from rag_lab.notebook.bench.bench import Bench

PATIENCE_S = 60


def remembered(bench: Bench, letter: str) -> dict[str, bool]:
    column = next(one for one in bench.result.columns if one.letter == letter)
    return {record.stage: record.remembered for record in column.records}


def letters(bench: Bench) -> list[str]:
    return [f"{one.letter} {one.label}" for one in bench.result.columns]


def test_a_toggle_changes_the_configuration_and_an_impossible_value_changes_nothing(bench: Bench) -> None:
    bench.set("rerank.final_k", 3)
    for key, value, said in [
        ("rerank.final_k", 1000, "less than or equal to 100"),
        ("corpus.chunk_overlap", 900, "smaller than chunk_size"),
        ("rerank.nam", "x", "did you mean 'rerank.name'"),
        ("rerank.name", "my_file:Mine", "is not there"),
        ("corpus.readers", "{.eml: [", "corpus.readers: line 1"),
    ]:
        with pytest.raises(ConfigError, match=said):
            bench.set(key, value)
    assert bench.toggles.changes == {"rerank.final_k": 3}
    bench.reset()
    assert bench.toggles.changes == {}


def test_one_switch_and_a_run_show_both_settings_side_by_side(bench: Bench) -> None:
    bench.set("retrieval.mode", "tfidf")
    bench.run()
    assert letters(bench) == ["A as it started", "B mode = tfidf"]
    first, second = bench.result.columns
    assert "bm25" in first.trace.hits and "tfidf" in second.trace.hits
    assert (first.evidence_at, second.evidence_at) == (1, 1)
    assert bench.trace == second.trace and bench.config.retrieval.mode == "tfidf"


def test_the_setting_that_was_run_last_stays_beside_the_new_one(bench: Bench) -> None:
    bench.run()
    assert letters(bench) == ["A as it started"]
    bench.set("rerank.final_k", 2)
    bench.run()
    bench.set("rerank.final_k", 1)
    bench.run()
    assert letters(bench) == ["A final_k = 2", "B final_k = 1"]
    bench.run()  # nothing was changed in between
    assert letters(bench) == ["A final_k = 2", "B final_k = 1"]


def test_a_new_question_is_answered_by_all_that_stand_side_by_side(bench: Bench) -> None:
    bench.set("rerank.final_k", 1)
    bench.run()
    bench.ask("q2")
    bench.run()
    assert [one.trace.question.question_id for one in bench.result.columns] == ["q2", "q2"]


def test_what_is_typed_like_a_question_of_the_dataset_keeps_its_labels(bench: Bench) -> None:
    bench.ask(f"  {bench.questions[1].text} ")
    bench.run()
    assert bench.result.question.answers == ("The burner is locked out.",)
    assert bench.result.question.evidence[0].start is not None
    bench.ask("Where is the canteen?")
    bench.run()
    assert bench.result.question.answers == () and bench.result.question.text == "Where is the canteen?"
    bench.ask(" ")
    with pytest.raises(ConfigError, match="question is empty"):
        bench.run()


def test_only_what_is_downstream_of_a_change_is_computed_and_the_index_is_opened_once(
    answering: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, real = [], pipeline_module.open_index
    monkeypatch.setattr(pipeline_module, "open_index", lambda *a, **k: opened.append(a) or real(*a, **k))
    asked = []
    bench = answering(lambda request: asked.append(request) or '{"answer": "290 bar", "citations": [1]}')
    bench.run()
    assert not any(remembered(bench, "A").values()) and len(asked) == 1
    bench.set("answer.max_tokens", 50)
    bench.run()
    assert remembered(bench, "B")["search_bm25"] and remembered(bench, "B")["context"]
    assert not remembered(bench, "B")["generate"] and len(asked) == 2
    bench.reset()
    bench.run()  # both are known: nothing is asked
    assert len(asked) == 2 and len(opened) == 1


def test_pinned_settings_stay_beside_all_that_is_run_later(bench: Bench) -> None:
    bench.run()
    bench.pin("A")
    for k in (3, 2):
        bench.set("rerank.final_k", k)
        bench.run()
    assert letters(bench) == ["A as it started", "B final_k = 3", "C final_k = 2"]
    assert [one.is_pinned for one in bench.result.columns] == [True, False, False]
    bench.pin("A")
    bench.run()
    assert letters(bench) == ["A final_k = 3", "B final_k = 2"]
    with pytest.raises(ConfigError, match="Unknown column 'Z'"):
        bench.pin("Z")


def test_stop_ends_at_the_next_step_and_what_was_computed_is_not_computed_again(
    answering: Callable[..., Bench],
) -> None:
    begun, go_on, asked = Event(), Event(), []

    def slow(request: object) -> str:
        asked.append(current_thread().name)
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return '{"answer": "290 bar", "citations": [1]}'

    bench = answering(slow)
    bench.run(wait=False)
    assert begun.wait(PATIENCE_S) and bench.is_running  # the kernel's own thread goes on
    assert bench.job.step_now == "A: generate"
    with pytest.raises(ConfigError, match="runs already"):
        bench.run()
    bench.stop()
    go_on.set()
    bench.job.join()
    assert bench.job.is_stopped and not bench.is_running
    assert bench.said == "Stopped before A: parse; what was computed until then is remembered."
    (column,) = bench.result.columns
    assert column.unfinished == "parse" and column.trace.raw_text and column.trace.answer is None
    bench.run()
    assert bench.trace.answer.text == "290 bar" and asked == ["bench"]


def test_a_bench_that_is_made_again_while_the_last_one_runs_stops_it_and_shows_its_own_question(
    answering: Callable[..., Bench],
) -> None:
    begun, go_on = Event(), Event()

    def slow(request: object) -> str:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return '{"answer": "290 bar", "citations": [1]}'

    first = answering(slow)
    first.run(wait=False)
    assert begun.wait(PATIENCE_S)
    again = Bench(first.pipeline, question="q2")
    again.run(wait=False)
    go_on.set()
    again.job.join()
    assert first.job.is_stopped and again.result.asked.question_id == "q2"
    (column,) = again.result.columns
    assert column.trace.question.question_id == "q2" and column.trace.answer and not column.unfinished


def test_each_stage_is_told_as_it_comes(answering: Callable[..., Bench]) -> None:
    bench = answering(['{"answer": "290 bar", "citations": [1]}'])
    seen = []
    bench.listeners.append(lambda: seen.append((bench.job.step_now, len(bench.trace.stages) if bench.trace else 0)))
    bench.run()
    steps = list(dict.fromkeys(step for step, _ in seen))
    assert steps[:2] == ["", "A: documents"] and steps[-3:] == ["A: context", "A: generate", "A: parse"]
    assert dict(seen)["A: generate"] == len(bench.trace.stages) - 2


def test_a_model_that_cannot_be_used_is_one_sentence_and_the_bench_goes_on(bench: Bench) -> None:
    bench.set({"answer.name": "llm", "models.generation": "nobody:knows"})
    assert bench.is_bad and "nobody" in bench.said  # said at once, and kept: it may be meant for another machine
    with pytest.raises(ModelError):
        bench.run()
    assert bench.is_bad and "nobody" in bench.said and "\n" not in bench.said
    first, second = bench.result.columns
    assert first.trace.ranked and not first.unfinished  # the other setting has come to its end
    assert second.problem == bench.said and second.unfinished
    bench.reset()
    bench.set("rerank.final_k", 1)
    bench.run()
    assert letters(bench)[0] == "A as it started" and not bench.said  # what failed is nothing to compare with


def test_a_failure_that_another_attempt_may_cure_is_tried_again(answering: Callable[..., Bench]) -> None:
    replies = [ModelError("busy"), '{"answer": "290 bar", "citations": [1]}']

    def reply(request: object) -> str:
        one = replies.pop(0)
        if isinstance(one, Exception):
            raise one
        return one

    bench = answering(reply)
    with pytest.raises(RagLabError, match="busy"):
        bench.run()
    bench.run()
    assert bench.trace.answer.text == "290 bar"


def test_a_bench_made_again_goes_on_where_the_last_one_stood(bench: Bench, dataset: Path, tmp_path: Path) -> None:
    bench.set({"rerank.final_k": 1, "retrieval.base_k": 7})
    bench.ask("Where is the canteen?")
    bench.run()
    bench.pin("A")
    start = bench.toggles.start
    again = Bench(dataset, start, home=tmp_path / "home")
    assert again.config == bench.config and again.question == "Where is the canteen?"
    assert letters(again) == ["A as it started", "B base_k = 7, final_k = 1"]
    assert again.trace == bench.trace is not None
    assert again.toggles.pinned == (start,)
    other_start = Bench(dataset, start.override({"rerank.final_k": 3}), home=tmp_path / "home")
    assert other_start.toggles.changes == {"retrieval.base_k": 7}
    assert other_start.said == "rerank.final_k starts as 3 now, which replaces 1."
    assert Bench(dataset, start, name="second", home=tmp_path / "home").toggles.changes == {}


def test_results_are_not_taken_over_from_other_documents(bench: Bench, tmp_path: Path) -> None:
    bench.set("rerank.final_k", 1)
    bench.run()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one.txt").write_text("The pump is blue.")
    other = Bench(tmp_path / "notes", bench.toggles.start, home=tmp_path / "home", question="Which pump is blue?")
    assert other.result is None and other.config.rerank.final_k == 1
    other.run()
    assert [row.text for row in other.result.rows] == ["The pump is blue."]


def test_settings_are_compared_on_more_questions_at_once(bench: Bench) -> None:
    bench.set("retrieval.mode", "tfidf")
    steps, shares = [], []
    bench.listeners.append(lambda: steps.append(bench.job.step_now if bench.job else ""))
    bench.listeners.append(lambda: shares.append(bench.job.share if bench.job else 0))
    bench.try_on(3, ["retrieval.mrr@5"])
    assert bench.compared.title == "On 3 questions: A as it started, B mode = tfidf"
    assert shares == sorted(shares) and len({share for share in shares if share < 0.5}) > 3  # the bar moves
    found = bench.compared.comparison
    assert [found.name(v) for v in found.codes] == ["A baseline", "B mode = tfidf"]
    assert found.called("B") == "B (mode = tfidf)"
    assert bench.compared.comparison.main_metric == "retrieval.mrr@5"
    assert "A: search_bm25 3/3" in steps and "B: search_tfidf 3/3" in steps


def test_how_long_more_questions_take_is_told_by_what_one_took(answering: Callable[..., Bench]) -> None:
    bench = answering(lambda _: '{"answer": "290 bar", "citations": [1]}')
    assert bench.seconds_to_try == 0  # one setting is compared with nothing
    bench.set({"query.hyde": "always", "rerank.name": "query_likelihood"})
    assert bench.seconds_to_try == 5 + 20  # a call and twenty pairs of a packaged model; nothing has been run
    bench.set({"query.hyde": "none", "rerank.name": "none", "rerank.final_k": 1})
    bench.run()
    both = [column.records for column in bench.result.columns]
    shared = {(one.stage, one.seconds) for records in both for one in records if one.stage not in ("generate", "parse")}
    assert bench.seconds_to_try == pytest.approx(sum(seconds for _, seconds in shared))


def test_a_comparison_can_be_stopped(bench: Bench) -> None:
    bench.set("retrieval.mode", "tfidf")

    def stop_at_second() -> None:
        if bench.job and bench.job.step_now.startswith("B: ") and not bench.job.is_stopping:
            bench.stop()

    bench.listeners.append(stop_at_second)
    bench.try_on(3)
    assert bench.job.is_stopped and bench.compared is None and bench.said.startswith("Stopped before B: ")
    assert list((bench.pipeline.home / "compared").iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "metrics", "said"),
    [
        ({}, [], "one setting only"),
        ({"rerank.final_k": 1}, ["retrieval.nonsense"], "retrieval.nonsense"),
        ({"rerank.final_k": 1}, ["ragas.faithfulness"], "judge"),
    ],
)
def test_what_cannot_be_compared_is_said_before_anything_is_computed(
    bench: Bench, changes: dict[str, int], metrics: list[str], said: str
) -> None:
    bench.set(changes)
    with pytest.raises(ConfigError, match=said):
        bench.try_on(3, metrics)
    assert bench.job is None


def test_without_labels_settings_are_compared_by_what_they_change(bench: Bench, dataset: Path, tmp_path: Path) -> None:
    asked = ["How hot is the oven?", "What is there on Fridays?"]
    bench = Bench(rl.Pipeline(dataset, bench.config, questions=asked, home=tmp_path / "home"))
    bench.set("retrieval.mode", "tfidf")
    bench.try_on()
    assert bench.compared.comparison.is_unlabelled and "different is not better" in bench.compared.html
    bench.run()
    assert bench.result.columns[0].evidence_at is None


def test_without_questions_it_is_said_what_can_be_done(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one.txt").write_text("The pump is blue.")
    notes = Bench(tmp_path / "notes", bench.config, name="notes", home=tmp_path / "home")
    notes.set("rerank.final_k", 1)
    with pytest.raises(ConfigError, match="has no questions; give some"):
        notes.try_on()
    assert "has no questions" in notes.said and notes.question == ""


def test_copied_texts_make_the_same_configuration(bench: Bench, tmp_path: Path) -> None:
    classes = {"specific": True, "fuzzy": True, "comparative": False, "procedural": True, "creative": True}
    bench.set({"rerank.final_k": 3, "query.class_to_hyde": classes, "seed": 7})
    (tmp_path / "copied.yaml").write_text(bench.as_yaml())
    assert PipelineConfig.load(tmp_path / "copied.yaml") == bench.config
    assert eval(bench.as_python(), {"rl": rl}).config == bench.config  # noqa: S307 - what a user pastes
    bench.set(PipelineConfig().flat())
    (tmp_path / "copied.yaml").write_text(bench.as_yaml())
    assert PipelineConfig.load(tmp_path / "copied.yaml") == PipelineConfig()


def test_what_stands_side_by_side_becomes_an_experiment(bench: Bench, tmp_path: Path) -> None:
    bench.set("rerank.final_k", 3)
    names = bench.add_to_experiment(tmp_path / "new.yaml")
    experiment = ExperimentConfig.load(tmp_path / "new.yaml")
    assert experiment.variants == dict(zip(names, (bench.toggles.start, bench.config), strict=True))
    assert f"rag-lab sweep {tmp_path / 'new.yaml'} --dry-run" in bench.said
    bench.add_to_experiment(tmp_path / "new.yaml")
    assert "holds these settings already" in bench.said


def test_an_experiment_of_the_bench_can_be_planned_from_any_folder(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook beside its documents writes a file; the terminal is somewhere else."""
    monkeypatch.chdir(write_dataset(tmp_path / "books").parent)
    beside = Bench("small", bench.config, name="beside", home=tmp_path / "home")
    beside.set("rerank.final_k", 1)
    beside.add_to_experiment()
    command = shlex.split(beside.said.partition("Look before you leap: ")[2])
    monkeypatch.chdir("/")
    checked = plan(command[2])
    assert command[:2] == ["rag-lab", "sweep"] and len(checked.variants) == 2
    assert checked.dataset.path.resolve() == tmp_path / "books" / "small"
    demo = Bench("plant_docs", bench.config, name="demo", home=tmp_path / "home")
    demo.add_to_experiment(tmp_path / "demo.yaml")
    assert plan(tmp_path / "demo.yaml").experiment.dataset == "plant_docs"


def test_what_no_file_can_name_is_no_experiment(answering: Callable[..., Bench], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="generation_model is an object"):
        answering([]).add_to_experiment(tmp_path / "new.yaml")
    assert not (tmp_path / "new.yaml").exists()


def test_a_variant_of_a_run_is_loaded(bench: Bench, tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", 4, 2)
    plan = run.variants[1]
    (run.variant_dir(plan.variant_id)).mkdir(parents=True, exist_ok=True)
    config = PipelineConfig().override({"rerank.final_k": 4})
    (run.variant_dir(plan.variant_id) / "config.yaml").write_text(config.to_yaml())
    bench.load(run.path, plan.variant_id)
    assert bench.config == config and plan.variant_id in bench.said
    with pytest.raises(ConfigError, match="Unknown variant 'nothing'"):
        bench.load(run.path, "nothing")
    with pytest.raises(RagLabError, match="no run folder"):
        bench.load(tmp_path, plan.variant_id)
    assert bench.config == config
