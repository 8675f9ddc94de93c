"""What a plan can show is told by the spread that an earlier run saw, or how to find it out."""

import numpy as np
import pandas as pd
import pytest
from small_dataset import write_dataset

from rag_lab.experiment.config import read_experiment
from rag_lab.experiment.forecast.power_forecast import pilot_of_experiment, power_forecast, power_text, runs_of
from rag_lab.experiment.plan import plan
from rag_lab.runs.run_folder import CONFIG_FILE, SCORES_FILE
from rag_lab.runs.variant_files import COLUMNS, write_scores

MORE = [
    {"id": f"m{n}", "question": f"At how many bar does valve {n} open?", "evidence": [{"source": "press.md"}]}
    for n in range(60)
]
METRICS = ["retrieval.ndcg@5", "retrieval.mrr@5"]
MARGIN = {"retrieval.ndcg@5": 0.1}


@pytest.fixture
def planned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def make(**changes):
        data = {
            "name": "e",
            "question": "q",
            "dataset": str(write_dataset(tmp_path, extra_questions=MORE)),
            "base": {"query": {"rewrite": "none", "hyde": "none"}, "answer": {"name": "none"}},
            "factors": {"rerank.final_k": [5, 3], "retrieval.mode": ["bm25", "tfidf", "dense"]},
            "metrics": METRICS,
        }
        return plan(data | changes, folder=tmp_path)

    return make


def run_of(checked, path, n=60, spread=0.2, same=(), rename=None):
    """Write a run of a plan whose scores are random, and equal to the baseline's in the variants of `same`."""
    run = checked.run_folder(path)
    run.write_plan()
    random, rows = np.random.default_rng(0), []
    base = random.uniform(0.3, 0.7, n)
    for variant in checked.variants:
        noise = 0 if variant.changes == {} or variant.variant_id in same else random.normal(0, spread, n)
        for metric in METRICS:
            rows += [
                (variant.variant_id, f"m{i}", metric, 0, float(v), "scored", "", None, 0.0, 0, 0)
                for i, v in enumerate(np.clip(base + noise, 0, 1))
            ]
        folder = run.variant_dir(variant.variant_id)
        folder.mkdir(parents=True)
        (folder / CONFIG_FILE).write_text(variant.config.to_yaml())
    write_scores(path / SCORES_FILE, pd.DataFrame(rows, columns=list(COLUMNS)))
    return run


def test_without_a_run_it_says_what_to_do(planned):
    checked = planned()
    found = power_forecast(checked, runs_of(checked))
    assert not found.rows
    assert "`rag-lab plan e.yaml --pilot 40` asks them" in power_text(found, "rag-lab plan e.yaml").replace("\n", " ")


def test_one_variant_compares_nothing(planned):
    assert power_text(power_forecast(planned(factors={}), [])) == ""


def test_results_of_the_experiment_and_of_its_pilot_are_read(planned, tmp_path):
    checked = planned()
    run_of(checked, tmp_path / "results" / "e-pilot", n=45)
    found = power_forecast(checked, runs_of(checked))
    assert found.source == "results/e-pilot (45 questions)"
    run_of(checked, tmp_path / "results" / "e", n=60)
    assert power_forecast(checked, runs_of(checked)).source == "results/e (60 questions)"


def test_each_comparison_is_told_with_the_margin(planned, tmp_path):
    checked = planned(margin=MARGIN)
    run = run_of(checked, tmp_path / "run", same=["final_k-3"])
    found = power_forecast(checked, [run])
    first = [row for row in found.rows if row.is_primary]
    assert [row.comparison for row in first] == ["final_k-3", "mode-tfidf", "mode-dense"]
    assert first[0].reason.startswith("none of 60 questions differs") and first[0].power is None
    # 63 are planned: sd about 0.19, so (2.4 + 0.84) * 0.19 / sqrt(63).
    assert first[1].n == 63 and first[1].smallest == pytest.approx(0.078, abs=0.012)
    assert 0.5 < first[1].power < 1 and first[1].alone <= first[1].questions < 120
    others = [row for row in found.rows if not row.is_primary]
    assert {row.metric for row in others} == {"retrieval.mrr@5"} and all(row.power is None for row in others)
    told = power_text(found)
    assert "Not plannable in retrieval.ndcg@5: final_k-3" in told
    assert "not worse by more than the margin" in told.replace("\n  ", " ")
    assert "retrieval.mrr@5   all 3" in told


def test_what_will_not_be_compared_is_not_planned(planned, tmp_path):
    checked = planned(factors={"rerank.final_k": [5, 3, 2]}, margin=MARGIN)
    first, second = [row for row in power_forecast(checked, [run_of(checked, tmp_path / "run")]).rows if row.is_primary]
    assert first.reason == "" and first.power is not None
    assert second.reason == "it is not compared: retrieval.ndcg@5 sees 4 ranks of one and 5 of the other"


def test_without_a_margin_one_is_proposed_by_what_the_baseline_lacks(planned, tmp_path):
    found = power_forecast(planned(), [run_of(planned(), tmp_path / "run")])
    assert found.lacks == pytest.approx(0.5, abs=0.1)
    told = " ".join(power_text(found).split())
    assert f"{{retrieval.ndcg@5: {found.lacks / 10:.3f}}}" in told and "Choose it before the run" in told


def test_variants_are_known_by_what_they_are(planned, tmp_path):
    listed = {
        "factors": {},
        "design": "list",
        "pairs": "baseline",
        "variants": {"one": {"rerank.final_k": 5}, "two": {"rerank.final_k": 3}},
    }
    renamed = listed | {"variants": {"first": {"rerank.final_k": 5}, "second": {"rerank.final_k": 3}}}
    run = run_of(planned(**listed), tmp_path / "run")
    found = power_forecast(planned(**renamed), [run])
    assert found.rows[0].comparison == "second" and found.rows[0].reason == ""


def test_other_variants_tell_nothing(planned, tmp_path):
    run = run_of(planned(), tmp_path / "run")
    listed = {"factors": {}, "design": "list", "variants": {"x": {"rerank.final_k": 9}, "y": {"rerank.final_k": 8}}}
    found = power_forecast(planned(**listed), [run])
    assert not found.rows and "holds no scores of these variants" in " ".join(power_text(found).split())


def test_a_grid_plans_effects_and_no_margin_for_interactions(planned, tmp_path):
    checked = planned(design="grid", margin=MARGIN)
    found = power_forecast(checked, [run_of(checked, tmp_path / "run")])
    powers = {row.comparison: row.power for row in found.rows if row.is_primary}
    assert powers["rerank.final_k=3"] is not None and powers["retrieval.mode=tfidf"] is not None
    interactions = [name for name in powers if " with " in name]
    assert len(interactions) == 2 and all(powers[name] is None for name in interactions)


def test_clusters_are_units(planned, tmp_path):
    checked = planned(clusters="document", margin=MARGIN)
    found = power_forecast(checked, [run_of(checked, tmp_path / "run")])
    assert "of 1 cluster" in found.rows[1].reason or "clusters differ" in found.rows[1].reason


def test_a_pilot_has_a_name_and_no_margin(planned):
    given = planned(margin=MARGIN).experiment
    pilot = pilot_of_experiment(given, 40)
    assert (pilot.name, pilot.limits.questions, pilot.margin) == ("e-pilot", 40, {})
    assert read_experiment(pilot_of_experiment(given.model_copy(update={"name": "n" * 64}), 40)).problems == ()
