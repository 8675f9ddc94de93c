"""Data from which nothing can be concluded: a sentence, not an exception or NaN, through the whole report."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from synthetic_run import certain, uncertain

from rag_lab.comparison.across import compare_runs
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.conclusions import (
    NOT_MEASURED,
    conclusions,
    front_sentences,
    noise_sentences,
    share_of_resamples,
    topics,
)
from rag_lab.comparison.tables.pareto import CostFronts, Front
from rag_lab.records import StageRecord
from rag_lab.report.compare_text import compare_text
from rag_lab.report.page.report_page import to_html, write_report
from rag_lab.report.score_tables import noise_table
from rag_lab.report.shown_comparison import compare
from rag_lab.runs.omissions import SamePipeline
from rag_lab.runs.variant_files import read_traces, write_traces
from rag_lab.statistics.noise_components import noise, noise_floor

NAN = float("nan")
CASES: dict[str, tuple[Any, str]] = {
    "all tied": (np.full(12, 0.5), "No difference from the baseline on any question compared"),
    "all tied at zero": (np.zeros(12), "No difference from the baseline on any question compared"),
    "single question": (np.array([0.5]), "one question has a score"),
    "single question, repeated": (np.array([[0.5], [0.6]]), "one question has a score"),
    "all failed": (np.full(6, NAN), "no question has a score under both"),
    "all failed, repeated": (np.full((2, 6), NAN), "no question has a score under both"),
    "one scored": (np.array([0.5, *[NAN] * 5]), "Some questions could not be scored"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("case", "labelled"), [*((case, True) for case in CASES), ("all failed", False)])
def test_degenerate_data_give_a_sentence(synthetic: ModuleType, tmp_path: Path, case: str, labelled: bool) -> None:
    values, said = CASES[case]
    n = np.atleast_2d(values).shape[1]
    classes = (["fuzzy", "specific"] * n)[:n] if labelled else ()
    step = 0.1 if case.startswith("single") else 0.0
    columns = {name: values + step * index for index, name in enumerate(synthetic.GRID)}
    metrics = {synthetic.MAIN: columns, "citations.precision": columns, "cost.seconds": columns}
    run = synthetic.write_run(tmp_path / "run", synthetic.GRID, metrics, classes, classes)
    found = compare(run.path)
    assert any(said in sentence for sentence in conclusions(found)), conclusions(found)
    shown = [to_html(found), found.to_markdown(), found._repr_html_()]
    shown += [compare_text(run.path, form=form) for form in ("text", "markdown", "latex")]
    for text in shown:
        assert not re.search(r"\b(nan|NaN|inf|None(?! was))\b", re.sub(r"<[^>]+>", "", text))


@pytest.mark.parametrize("present", [["none-none"], ["always-none"], []])
def test_a_run_of_which_little_is_left_gives_sentences(
    synthetic: ModuleType, tmp_path: Path, present: list[str]
) -> None:
    columns = {name: np.linspace(0, 1, 5) if name in present else np.full(5, NAN) for name in synthetic.GRID}
    run = synthetic.write_run(tmp_path / "run", synthetic.GRID, {synthetic.MAIN: columns})
    scores = run.scores()
    scores[scores["status"] == "scored"].to_parquet(run.path / "scores.parquet", index=False)
    assert write_report(run.path).is_file()
    found = compare(run.path)
    assert conclusions(found) and found.effects.note and found.effects.table.empty
    assert compare(run.path, pairs="all", correction="bh").to_latex()


def test_a_report_on_answers_of_a_packaged_model_says_that_a_toy_wrote_them(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    def told(model: str) -> str:
        run = synthetic.write_run(tmp_path / model[:4], synthetic.GRID, {synthetic.MAIN: columns})
        for plan in run.variants:
            file = run.variant_dir(plan.variant_id) / "traces.jsonl"
            wrote = StageRecord("generate", model=model)
            write_traces(file, [replace(trace, stages=(*trace.stages, wrote)) for trace in read_traces(file)])
        found = compare(run.path)
        return "\n".join(conclusions(found)) + to_html(found)

    columns = {name: np.linspace(0, 1, 5) for name in synthetic.GRID}
    assert told("llamacpp:smollm2").count("A toy model wrote answers of this run") == 2
    assert "toy" not in told("gemini:gemini-2.5-flash")


def test_what_was_not_run_and_what_came_late_are_told(synthetic: ModuleType, tmp_path: Path) -> None:
    values = {"a": np.linspace(0, 1, 12), "b": np.linspace(0, 0.9, 12)}
    run = synthetic.write_run(tmp_path / "run", {"a": {}, "b": {"rerank.final_k": 2}}, {"retrieval.ndcg@3": values})
    same = [
        SamePipeline(f"seed = {n}", {"seed": n}, "a", "nothing reads seed where nothing is sampled") for n in range(9)
    ]
    margins = {"retrieval.ndcg@3": 0.05}
    replace(run, same=tuple(same), margins=margins, post_hoc_margins=tuple(margins)).write_plan()
    told = conclusions(compare(run.path))
    assert "The margin of retrieval.ndcg@3 is post hoc" in " ".join(told)
    assert any(one.startswith("9 combinations are the same pipelines as others by construction") for one in told)


@pytest.mark.slow
def test_who_played_a_role_that_names_several_models_is_told(synthetic: ModuleType, tmp_path: Path) -> None:
    values = np.linspace(0.2, 0.9, 12)
    run = synthetic.write_run(
        tmp_path / "run",
        {"base": {}, "other": {"corpus.chunk_size": 2000}},
        {synthetic.MAIN: {"base": values, "other": values}},
    )
    text, path = "ollama:a | gemini:b", run.path / "manifest.json"
    manifest = json.loads(path.read_text())
    assert "Models" not in topics(compare(run.path))
    for name, model in (("base", "ollama:a"), ("other", "gemini:b")):
        manifest["variants"][name]["played_by"] = {text: [model]}
    path.write_text(json.dumps(manifest))
    found = compare(run.path)
    (told,) = topics(found)["Models"]
    assert told.startswith(f"Of {text}, the role was played by ollama:a in A (base) and gemini:b in B (other): ")
    assert "the role was played by ollama:a in A (base) and gemini:b in B (other)" in to_html(found)


def test_repeats_are_split_and_their_floor_stands_in_the_report(synthetic: ModuleType, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    questions = random.uniform(0.2, 0.8, 30)
    values = {name: questions + random.normal(0, 0.1, (3, 30)) for name in ("none", "always")}
    plans = {name: {synthetic.HYDE: name} for name in values}
    found = compare(synthetic.write_run(tmp_path / "run", plans, {synthetic.MAIN: values}).path)
    expected = noise(found.scores, synthetic.MAIN)
    floor = noise_floor(expected).value
    assert found.noise[synthetic.MAIN] == expected and floor is not None
    (row,) = noise_table(found).rows
    assert row[-1] == f"{floor:.3f}" and row[1].endswith("%") and row[3] == "–"
    page = to_html(found)
    assert noise_sentences(found)[0] in page and f"up to {floor:.3f}" in page
    assert "above the noise floor" in page


def test_the_table_of_differences_and_the_effect_of_a_pair_have_one_floor(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    random = np.random.default_rng(0)
    none = 0.4 + random.normal(0, 0.25, (2, 60))
    always = np.where(np.arange(60) < 10, none + 0.12 + random.normal(0, 0.02, (2, 60)), np.nan)
    values = {"none": none, "always": always}
    plans = {name: {synthetic.HYDE: name} for name in values}
    run = synthetic.write_run(tmp_path / "run", plans, {synthetic.MAIN: values})
    found = compare(run.path)
    (effect,), (difference,) = found.effects.table["verdict"], found.differences["verdict"]
    floor = noise_floor(found.noise[synthetic.MAIN], 10).value
    assert effect == difference and f"is below the noise floor of {floor:.3f}" in difference
    later = shutil.copytree(run.path, tmp_path / "later")
    assert difference in set(compare_runs(run.path, later).differences["verdict"])


def test_one_repeat_is_one_sentence(comparison: Comparison) -> None:
    assert comparison.noise == {} and noise_sentences(comparison) == [NOT_MEASURED]
    page = to_html(comparison)
    assert "The noise was not measured, since every question was asked once" in page
    assert "<code>repeats: 2</code>" in page


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return certain(tmp_path_factory.mktemp("certain") / "run")


def with_front(comparison, found):
    changed = replace(comparison)
    changed.__dict__["front"] = found
    return changed


def test_a_certain_front_and_an_uncertain_one_say_which_they_are(planted, tmp_path):
    told = front_sentences(planted)
    assert told[0] == "No variant beats A and B in retrieval.ndcg@5 and seconds."
    assert told[3] == "No variant beats A and B in retrieval.ndcg@5, seconds, tokens and dollars." and len(told) == 4
    assert topics(planted)["Cost"] == told[:3]
    (sentence,) = front_sentences(uncertain(tmp_path / "run"))
    assert sentence.startswith("No variant beats B in retrieval.ndcg@5 and seconds. Not certain: A is not beaten in 3")
    assert sentence.endswith("% of resamples.")


def test_who_leaves_and_who_joins_stand_in_one_sentence(planted):
    front = Front(("seconds",), ("a", "c"), {"a": 0.99, "b": 0.07, "c": 0.62})
    assert front_sentences(with_front(planted, CostFronts(fronts=(front,), n_units=60))) == [
        "No variant beats A and C in retrieval.ndcg@5 and seconds. Not certain: C is beaten in 38% of "
        "resamples; B is not beaten in 7% of resamples."
    ]


def test_few_questions_and_who_is_left_out_are_named(planted, tmp_path):
    assert front_sentences(certain(tmp_path / "run", 9))[0].endswith(
        "A and B in retrieval.ndcg@5 and seconds. 9 questions cannot tell how certain that is."
    )
    found = CostFronts(left_out={"a": "no scores", "c": "no scores"}, note="There is nothing.")
    assert front_sentences(with_front(planted, found)) == ["Without a place: A and C (no scores).", "There is nothing."]


@pytest.mark.parametrize(
    ("share", "told"), [(0, "0%"), (0.0005, "< 1%"), (0.38, "38%"), (0.9995, "> 99%"), (1.0, "100%")]
)
def test_what_is_not_always_is_not_written_as_always(share, told):
    assert share_of_resamples(share) == told
