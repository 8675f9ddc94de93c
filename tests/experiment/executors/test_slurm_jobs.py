"""Workers that submitit submits, here as processes of this machine; what is asked for is checked first."""

import os

import pytest
from import_traps import set_traps
from machines_sweep import values, write_machines_sweep

from rag_lab.cli.sweeps.run_options import parse_slurm
from rag_lab.errors import ConfigError
from rag_lab.experiment.executors.registry import executor_of
from rag_lab.experiment.run.finish import failures
from rag_lab.experiment.run.sweep import sweep


@pytest.mark.slow
def test_submitted_workers_give_the_scores_of_the_local_run_and_import_nothing_from_the_working_folder(
    tmp_path, monkeypatch
):
    pytest.importorskip("submitit")
    path = write_machines_sweep(tmp_path, factors={"rerank.final_k": [5, 3]})
    local = sweep(path, tmp_path / "local", progress=False)
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    sprung = set_traps(tmp_path / "foreign", monkeypatch)
    run = sweep(path, tmp_path / "run", jobs=1, executor="slurm", slurm={"cluster": "local"}, progress=False)
    assert failures(run) == []
    assert values(run) == values(local)
    assert not sprung.exists() and "PYTHONSAFEPATH" not in os.environ


def test_what_a_scheduler_is_asked_for_is_read_from_pairs_and_files(tmp_path):
    (tmp_path / "cluster.yaml").write_text("slurm_partition: gpu\ntimeout_min: 10\n")
    assert parse_slurm([str(tmp_path / "cluster.yaml"), "timeout_min=60"]) == {
        "slurm_partition": "gpu",
        "timeout_min": 60,
    }
    with pytest.raises(ConfigError, match="neither key=value nor a YAML file"):
        parse_slurm(["nothing"])


def test_what_is_asked_of_a_scheduler_needs_the_executor_that_has_one():
    with pytest.raises(ConfigError, match="is for --executor slurm"):
        executor_of("local", {"timeout_min": 60})
    with pytest.raises(ConfigError, match="did you mean 'slurm'"):
        executor_of("slrum")
