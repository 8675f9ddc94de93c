import re
import shlex
from dataclasses import replace

import numpy as np
import pytest
from golden_runs import HYDE, MAIN
from small_plans import write_machines_sweep
from typer.testing import CliRunner

from rag_lab.cli import app
from rag_lab.comparison.comparison import read_comparison
from rag_lab.comparison.findings.recommendation import next_command
from rag_lab.experiment.plan import plan
from rag_lab.report.compare_text import compare_screen
from rag_lab.statistics.verdict import resolution


def written(synthetic, path, n=40, **changes):
    random = np.random.default_rng(3)
    base = random.uniform(0.2, 0.6, n)
    values = {"none": base, "always": base + random.normal(0.02, 0.1, n)}
    run = synthetic.write_run(path, {name: {HYDE: name} for name in values}, {MAIN: values})
    replace(run, **changes).write_plan()
    return read_comparison(path)


def test_the_command_asks_what_is_missing_of_the_two_and_has_a_price(synthetic, tmp_path):
    beyond = {"beyond limits.questions, which takes 40 by class and by whether there is an answer": 9000}
    found = written(synthetic, tmp_path / "run", left_out=beyond, file="experiments/hyde.yaml")
    sentence = next_command(found)
    (command,) = re.findall("`(.*)`", sentence)
    parts = shlex.split(command)
    assert parts[:5] == ["rag-lab", "sweep", "experiments/hyde.yaml", "--only", "always"]
    row = found.difference("always", MAIN)
    resolved = resolution(row["difference"], row["smallest_difference"])
    assert 40 + int(parts[-1]) == pytest.approx(40 / resolved, abs=1)
    assert "minutes" in sentence
    assert compare_screen(tmp_path / "run").rstrip().endswith(").")


def test_where_the_data_set_has_no_more_it_says_how_many_are_missing(synthetic, tmp_path):
    assert re.search(r"and .* has 40: write [\d,]+ more", next_command(written(synthetic, tmp_path / "run")))


def test_nothing_is_proposed_where_nothing_is_open(synthetic, tmp_path):
    base = np.linspace(0, 0.8, 40)
    values = {"none": base, "always": base + 0.1}
    run = synthetic.write_run(tmp_path / "run", {name: {HYDE: name} for name in values}, {MAIN: values})
    assert next_command(read_comparison(run.path)) == ""


def test_the_option_of_the_command_is_one_of_sweep(tmp_path):
    path = write_machines_sweep(
        tmp_path,
        base={"query": {"rewrite": "none", "hyde": "none"}},
        factors={"retrieval.mode": ["bm25", "tfidf"]},
        metrics=["retrieval.ndcg@10"],
        limits={"questions": 2},
    )
    checked = plan(path, questions="+1", only=["mode-tfidf"])
    assert (len(checked.questions), checked.experiment.name) == (3, "small__only_mode-tfidf__questions-3")
    assert set(plan(path).questions) < set(checked.questions)
    arguments = ["sweep", str(path), "--dry-run", "--questions"]
    assert "3 of 4 questions are asked" in CliRunner().invoke(app, [*arguments, "+1"]).output
    for wrong in ("+", "0", "many"):
        with pytest.raises(Exception, match="--questions is how many"):
            CliRunner().invoke(app, [*arguments, wrong], catch_exceptions=False)


@pytest.mark.parametrize(("difference", "smallest", "found"), [(0.1, 0.1, 1), (0.05, 0.1, 0.25), (0.1, None, None)])
def test_the_resolution_is_a_share_of_questions(difference, smallest, found):
    assert resolution(difference, smallest) == found
