"""The gate between two runs: what fails it, what it cannot tell, and that reruns of the same do not fail it."""

import numpy as np
import pytest
from typer.testing import CliRunner

from rag_lab.cli import app
from rag_lab.comparison.across import compare_runs
from rag_lab.report.gate import Gate

MAIN = "retrieval.ndcg@5"
PLANS = {"base": {}, "always": {"query.hyde": "always"}, "rerank": {"rerank.name": "query_likelihood"}}
N = 60


@pytest.fixture
def write(synthetic, tmp_path):
    def write(name, **changes):
        random = np.random.default_rng(5)
        scores = {one: random.uniform(0.3, 0.9, N) for one in PLANS}
        for one, change in changes.items():
            scores[one] = np.clip(scores[one] + change(np.random.default_rng(7)), 0, 1)
        return synthetic.write_run(tmp_path / name, PLANS, {MAIN: scores}).path

    return write


def noise(size):
    return lambda random: random.normal(0, size, N)


def loss(size):
    return lambda random: -size + random.normal(0, 0.05, N)


def test_what_is_reliably_worse_fails_and_is_named_with_the_questions_that_lost(write):
    before, now = write("before"), write("now", rerank=loss(0.2))
    found = Gate(compare_runs(before, now))
    assert not found.passes
    assert found.sentences[0].startswith(f"Reliably worse: rerank in {MAIN} by −0.2")
    lost = next(table for table in found.tables() if table.title == "The questions that lost the most")
    assert {row[0] for row in lost.rows} == {"rerank"}
    gaps = [float(before) - float(now) for _, _, before, now in lost.rows]
    assert gaps == sorted(gaps, reverse=True) and len(gaps) == 10
    done = CliRunner().invoke(app, ["gate", str(now), "--against", str(before)])
    assert done.exit_code == 1 and "Reliably worse: rerank" in done.output


def test_what_cannot_be_told_from_chance_passes_and_says_what_is_left_open(write):
    before, now = write("before"), write("now", rerank=noise(0.2))
    found = Gate(compare_runs(before, now))
    assert found.passes and found.sentences[0] == "Nothing is reliably worse."
    assert "the data cannot tell" in found.sentences[1]
    done = CliRunner().invoke(app, ["gate", str(now), "--against", str(before)])
    assert done.exit_code == 0 and "95% interval" in done.output


def test_a_gain_passes_and_a_variant_that_lost_its_scores_fails(write):
    better = Gate(compare_runs(write("before"), write("gain", rerank=lambda random: np.full(N, 0.1))))
    assert better.passes
    gone = Gate(compare_runs(write("before2"), write("gone", always=lambda random: np.full(N, np.nan))))
    assert (gone.passes, gone.missing) == (False, ["always"])
    assert "Without scores now: always." in gone.sentences


def test_another_run_of_other_questions_is_refused_in_one_sentence(write, tmp_path):
    done = CliRunner().invoke(app, ["gate", str(write("now")), "--against", str(tmp_path / "nothing")])
    assert done.exit_code == 1 and "Traceback" not in done.output
