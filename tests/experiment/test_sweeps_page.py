"""The page on sweeps against the code: its files are read, its commands exist, its outputs look as they do today."""

import re
from pathlib import Path

import pytest
import typer
import yaml

from rag_lab.cli import app
from rag_lab.experiment.config import ExperimentConfig, Limits, checkout_file, read_experiment
from rag_lab.experiment.forecast.cost_estimate import CostEstimate, spending_rows, spent_text
from rag_lab.experiment.forecast.describe import cost_table
from rag_lab.experiment.manifest import now
from rag_lab.runs.run_folder import RunFolder, VariantPlan

PAGE = Path(checkout_file("docs/sweeps.md")).read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def words(line):
    return re.split(r"\s{2,}", line.strip())


def test_its_experiment_can_be_read(tmp_path):
    path = tmp_path / "experiment.yaml"
    path.write_text(blocks("yaml")[0])
    draft = read_experiment(path)
    assert draft.problems == ()
    assert isinstance(draft.config, ExperimentConfig)
    assert f"{draft.config.name}.yaml" in PAGE


@pytest.mark.parametrize(
    "text", [*re.findall(r"`limits: (\{.*?\})`", PAGE), *re.findall(r"^limits: (\{.*?\})$", PAGE, re.M)]
)
def test_its_limits_are_limits(text):
    assert Limits.model_validate(yaml.safe_load(text)) != Limits()


def test_its_commands_and_options_exist():
    commands = typer.main.get_command(app).commands
    for name, options in re.findall(r"`?rag-lab (\w+)([^`\n]*)", PAGE):
        assert name in commands
        known = {
            option for parameter in commands[name].params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        assert set(re.findall(r"--[a-z-]+", options)) <= known


def test_its_tables_have_todays_columns(tmp_path):
    outputs = "\n".join(blocks("text")).splitlines()
    headers = [words(line) for line in outputs if line.startswith("stage or metric")]
    run = RunFolder(tmp_path, "n", "q", "d", "a", (), 1, ())
    bill = cost_table(CostEstimate((), now())).with_notes()
    assert headers
    todays = [words(bill.splitlines()[1]), words(spent_text(run).splitlines()[0])]
    assert all(header in todays for header in headers)


def test_its_python_runs(tmp_path, monkeypatch):
    variants = (VariantPlan("a", "a"),)
    RunFolder(tmp_path / "results" / "does_hyde_help", "n", "q", "d", "a", (), 1, variants).write_plan()
    monkeypatch.chdir(tmp_path)
    (code,) = [block for block in blocks("python") if "spending_rows" in block]
    exec(code, {})  # noqa: S102 - our own page
    assert spending_rows(RunFolder.open("results/does_hyde_help")) == []  # nothing was spent
