"""A cluster of two nodes on this machine: the same scores, also where one leaves; a model and an index once a node."""

import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path

import pytest
from import_traps import set_traps
from machines_sweep import values, write_machines_sweep
from small_dataset import write_dataset
from tiny_gguf import write_tiny_gguf

from rag_lab.experiment.run.sweep import sweep
from rag_lab.models.host.place import holders
from rag_lab.runs.live_file import read_live_variant

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow

CUTS = """
import os
import time
from pathlib import Path

def by_line(text):
    with open(Path(__file__).with_name("cut.txt"), "a") as file:
        file.write(f"{text[:20]!r}\\n")
    return [line for line in text.splitlines() if line]

def rerank(question, passages):
    until_s = time.monotonic() + 90
    while Path(__file__).with_name("wait").exists() and time.monotonic() < until_s:
        time.sleep(0.05)
    return [-len(passage) for passage in passages]

def noted(question, passages):
    here, until_s = Path(__file__).parent, time.monotonic() + 60
    with open(here / "noted.txt", "a") as file:
        file.write(f"{os.getpid()} {question}\\n")
    (here / f"by_{os.getpid()}").mkdir(exist_ok=True)
    while (here / "both").exists() and len(list(here.glob("by_*"))) < 3 and time.monotonic() < until_s:
        time.sleep(0.05)
    time.sleep(0.1)
    return [-len(passage) for passage in passages]
"""


def answering(folder):
    """A local model of next to no weights, and the base of variants that it answers in."""
    model = f"llamacpp:{write_tiny_gguf(folder / 'tiny.gguf')}?context=256"
    base = {
        "retrieval": {"mode": "bm25"},
        "answer": {"name": "llm"},
        "models": {"generation": model},
    }
    return model, base


def patiently(start):
    """A busy machine is no failure, and Ray waits for half a minute alone."""
    for _ in range(4):
        with suppress(Exception):
            return start()
    return start()


SEEN = """
from importlib.util import find_spec
from rag_lab.experiment.executors.ray_tasks import _cluster
with _cluster(1) as ray:
    print(ray.get(ray.remote(lambda: find_spec("only_here")).remote()))
"""


def test_a_ray_of_this_machine_imports_nothing_from_the_working_folder(tmp_path, monkeypatch):
    sprung = set_traps(tmp_path / "foreign", monkeypatch)
    told = patiently(lambda: subprocess.run([sys.executable, "-P", "-c", SEEN], capture_output=True, check=True))
    assert (told.stdout, sprung.exists()) == (b"None\n", False)


OWN = {"corpus": {"splitter": "cuts:by_line"}, "rerank": {"name": "cuts:rerank"}}


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    nodes = patiently(lambda: Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}))
    patiently(lambda: nodes.add_node(num_cpus=1))
    ray.init(address=nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def test_the_variants_of_a_node_share_a_local_model_and_an_index(tmp_path, monkeypatch, cluster):
    (tmp_path / "cuts.py").write_text(CUTS)
    model, base = answering(tmp_path)
    path = write_machines_sweep(tmp_path, base=base | OWN)
    seen, said = set(), []

    def look(run, *_):
        if not said:
            said.append("begins")
            (tmp_path / "wait").touch()  # the plan has tried the functions by now
        if any(
            (live := read_live_variant(run.variant_dir(v.variant_id))) and live.stage == "rerank" for v in run.variants
        ):
            said.append("rerank")
            (tmp_path / "wait").unlink(missing_ok=True)
        for folder in Path(tempfile.gettempdir()).glob("rag_lab_models_*"):
            seen.update((folder, one.process) for one in holders(folder) if one.model == model)

    monkeypatch.setattr("rag_lab.experiment.run.run_variants.SweepProgress.look", lambda _, *told: look(*told))
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    run = sweep(path, tmp_path / "run", executor="ray", progress=False)
    states = run.manifest()["variants"].values()
    assert [(state["status"], state["reason"]) for state in states] == [("ok", "")] * 4
    assert "rerank" in said
    assert 1 <= len(seen) == len({folder for folder, _ in seen}) <= 2
    assert not any(process.runs() for _, process in seen)
    cut = Counter((tmp_path / "cut.txt").read_text().splitlines())
    assert sorted(cut.values()) == [1, 1, 1, 2]  # the plan tries the splitter on a text


def test_an_idle_node_takes_batches_of_a_variant_that_runs_on_another(tmp_path, monkeypatch, cluster):
    (tmp_path / "cuts.py").write_text(CUTS)
    base = answering(tmp_path)[1] | {"answer": {"name": "none"}, "rerank": {"name": "cuts:noted"}}
    path = write_machines_sweep(tmp_path, base=base, factors={})
    fish = {"answers": ["fish"], "evidence": [{"source": "canteen.txt", "quote": "On Fridays there is fish"}]}
    asked = [{"id": f"more{n}", "question": f"Is there fish on day {n}?"} | fish for n in range(28)]
    write_dataset(tmp_path, extra_questions=asked)
    local = sweep(path, tmp_path / "local", progress=False)
    (tmp_path / "noted.txt").unlink()
    (tmp_path / "both").touch()
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    run = sweep(path, tmp_path / "run", executor="ray", progress=False)
    assert values(run) == values(local) != []
    asked_by = defaultdict(list)
    for process, _, question in (line.partition(" ") for line in (tmp_path / "noted.txt").read_text().splitlines()):
        asked_by[process].append(question)
    by_both = [set(questions[1:]) for questions in asked_by.values()]  # each tries the function first
    assert len(by_both) == 2
    assert all(by_both)
    assert not by_both[0] & by_both[1]


def test_two_nodes_give_the_scores_of_the_local_run_also_where_one_leaves(tmp_path, monkeypatch, cluster):
    path = write_machines_sweep(tmp_path, base=answering(tmp_path)[1])
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
