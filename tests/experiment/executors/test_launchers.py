"""Workers that submitit submits, or that run on the nodes of a Ray cluster, here as processes of this machine."""

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from import_traps import set_traps
from small_plans import values, values_here, write_machines_sweep
from tiny_models import write_tiny_gguf

from rag_lab.cli.shared_options import parse_slurm
from rag_lab.errors import ConfigError
from rag_lab.experiment.executors.launchers import executor_of
from rag_lab.experiment.run.outputs import failures
from rag_lab.experiment.run.sweep import sweep
from rag_lab.models.hosted import model_processes


@pytest.fixture(autouse=True)
def _without_reports(monkeypatch):
    monkeypatch.setattr("rag_lab.report.page.report_page.write_report", lambda path, **_: path)


@pytest.mark.slow
def test_submitted_workers_give_the_scores_of_the_local_run_and_import_nothing_from_the_working_folder(
    tmp_path, monkeypatch
):
    pytest.importorskip("submitit")
    path = write_machines_sweep(tmp_path, factors={"rerank.final_k": [5, 3]})
    local = values_here(path, tmp_path / "local")
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    sprung = set_traps(tmp_path / "foreign", monkeypatch)
    run = sweep(path, tmp_path / "run", jobs=1, executor="slurm", slurm={"cluster": "local"}, progress=False)
    assert failures(run) == []
    assert values(run) == local
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


def patiently(start):
    """A busy machine is no failure, and Ray waits for half a minute alone."""
    for _ in range(4):
        with suppress(Exception):
            return start()
    return start()


SEEN = """
from importlib.util import find_spec
from rag_lab.experiment.executors.launchers import ray_cluster
with ray_cluster(1) as ray:
    print(ray.get(ray.remote(lambda: find_spec("only_here")).remote()))
"""


@pytest.mark.slow
def test_a_ray_of_this_machine_imports_nothing_from_the_working_folder(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    sprung = set_traps(tmp_path / "foreign", monkeypatch)
    seen = patiently(lambda: subprocess.run([sys.executable, "-P", "-c", SEEN], capture_output=True, check=True))
    assert (seen.stdout, sprung.exists()) == (b"None\n", False)


@pytest.fixture
def cluster():
    """A cluster whose first node runs no variants and whose second has two cores."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    nodes = patiently(lambda: Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}))
    patiently(lambda: nodes.add_node(num_cpus=2))
    ray.init(address=nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def crash(nodes, node):
    """End a node with all that it started, as where a machine's power fails."""
    [raylet] = node.all_processes["raylet"]
    started = psutil.Process(raylet.process.pid).children(recursive=True)
    nodes.remove_node(node, allow_graceful=False)
    for one in started:
        with suppress(psutil.NoSuchProcess):
            one.kill()


@pytest.mark.slow
def test_two_nodes_give_the_scores_of_the_local_run_also_where_one_leaves_and_share_models(
    tmp_path, monkeypatch, cluster
):
    model = f"llamacpp:{write_tiny_gguf(tmp_path / 'tiny.gguf')}?context=256"
    base = {"retrieval": {"mode": "bm25"}, "answer": {"name": "llm"}, "models": {"generation": model}}
    path = write_machines_sweep(tmp_path, base=base)
    local = values_here(path, tmp_path / "local")
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    seen, interrupted, [first] = set(), [], cluster.worker_nodes

    def look(_, run, running):
        if running and not interrupted:  # on the only node: it leaves with its variants, and another joins
            interrupted.extend(running)
            crash(cluster, first)
            cluster.add_node(num_cpus=2)
        for folder in Path(tempfile.gettempdir()).glob("rag_lab_models_*"):
            seen.update((folder, one.process) for one in model_processes(folder) if one.model == model)

    monkeypatch.setattr("rag_lab.experiment.executors.job_queue._LOOK_FOR_WORKERS_S", 0.0)  # miss no variant
    monkeypatch.setattr("rag_lab.experiment.run.run_variants.SweepProgress.look", look)
    run = sweep(path, tmp_path / "run", executor="ray", progress=False)
    assert interrupted
    assert values(run) == local
    assert {state["status"] for state in run.manifest()["variants"].values()} == {"ok"}
    assert 1 <= len(seen) == len({folder for folder, _ in seen}) <= 2  # a model a node
