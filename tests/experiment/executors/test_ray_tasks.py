"""A cluster of two nodes on this machine: the same scores, also where one of them leaves in the middle."""

import pytest
from machines_sweep import values, write_machines_sweep

from rag_lab.experiment.run.sweep import sweep

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(monkeypatch):
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "180")  # a busy machine is no failure
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def test_two_nodes_give_the_scores_of_the_local_run_also_where_one_leaves(tmp_path, monkeypatch, cluster):
    path = write_machines_sweep(tmp_path)
    local = sweep(path, tmp_path / "local", progress=False)
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    (left,) = cluster.worker_nodes
    started = []

    def leave(*_):
        if not started:  # the first look at what runs: both nodes have a variant
            started.append(1)
            cluster.remove_node(left, allow_graceful=False)

    monkeypatch.setattr("rag_lab.experiment.run.run_variants.SweepProgress.look", leave)
    run = sweep(path, tmp_path / "run", executor="ray", progress=False)
    assert started
    assert values(run) == values(local)
    assert {state["status"] for state in run.manifest()["variants"].values()} == {"ok"}
