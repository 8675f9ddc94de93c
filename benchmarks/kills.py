"""What kills cost a sweep: `python benchmarks/kills.py local|workers|ray [--kills 50] [--seed 0]`.

A sweep with two jobs runs undisturbed, and then once more in a home of its own while processes of it are killed
(SIGKILL) at random moments; whenever it ends without being whole, the same command is given again. Killed are, at
random: the sweep, its fork server, processes of notebooks, kernels, holders of the embedding model (`local`); the
sweep, one of two workers on a PostgreSQL, or a process of theirs (`workers`); the sweep or a node of a Ray cluster
of two nodes and a head (`ray`). The corpus is embedded beforehand. The chat model is a server on loopback, which counts
what it is asked.
Prints one JSON object: kills by kind, starts, calls of both sweeps, how many of them were asked again, whether scores
are the same to the byte (`cost.*` aside), wall seconds, those lost a kill, and what was left behind.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rag_lab.runs.run_folder import RunFolder, known_name

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from loopback_chat import LoopbackChat, loopback_chat  # noqa: E402

RAG_LAB = [sys.executable, "-c", "from rag_lab.cli import main; main()"]
MARK = "RAG_LAB_KILLS"  # in the environment of whatever a sweep starts, by which it is found
LOOK_S = 0.1
SURE_AFTER = 20  # looks: between fork and exec a process has the environment of another
DIE_S = 20.0  # within which what belonged to something that was killed is gone
MOST_STARTS_IN_VAIN = 3
ASKED_FIRST = 0.8  # of kills
OTHERS = ("ray", "torch", ".ses")  # what libraries keep in the temporary folder, beginning so
HOMES = ("home", "home_1", "home_2")  # of the sweep, and of workers
FACTORS = {
    "query.rewrite": ["none", "llm"],
    "query.hyde": ["none", "always"],
    "rerank.final_k": [5, 4, 3, 2],
}


@dataclass
class Processes:
    """The processes of one sweep, by the mark in their environment. Roles are kept: forks look like the fork server."""

    mark: str
    roles: dict[int, str] = field(default_factory=dict)
    others: Counter[int] = field(default_factory=Counter)  # looks at processes that are not the sweep's

    def look(self) -> dict[str, list[int]]:
        """Return the numbers of those that run, by role."""
        found: dict[str, list[int]] = {}
        numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
        alive = {pid: parent for pid in numbers if (parent := self._parent(pid))}
        for pid in sorted(alive):
            if pid not in self.roles and self.others[pid] < SURE_AFTER:
                if f"{MARK}={self.mark}".encode() in _read(pid, "environ").split(b"\0"):
                    self.roles[pid] = self._role(pid, alive[pid])
                else:
                    self.others[pid] += 1
            if pid in self.roles:
                found.setdefault(self.roles[pid], []).append(pid)
        self.roles = {pid: role for pid, role in self.roles.items() if pid in alive}
        self.others = Counter({pid: n for pid, n in self.others.items() if pid in alive})
        return found

    def _parent(self, pid: int) -> int:
        fields = _read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()
        return int(fields[1]) if fields and fields[0] not in "ZX" else 0

    def _role(self, pid: int, parent: int) -> str:
        command = _read(pid, "cmdline").decode(errors="replace").replace("\0", " ")
        # A fork has the command line of what it was forked from.
        forked = {"sweep": "fork server", "fork server": "notebook", "notebook": "kernel"}
        if ("main() sweep" in command or "kernels.fork_server" in command) and self.roles.get(parent, "") in forked:
            return forked[self.roles[parent]]
        if "kernels.fork_server" in command:
            return "fork server"
        for words, role in (
            ("models.model_process", "holder"),
            ("kernels.notebook_process", "notebook"),
            ("ipykernel_launcher", "kernel"),
            ("main() worker", "worker"),
            ("main() sweep", "sweep"),
        ):
            if words in command:
                return role
        return "other"


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


@dataclass
class Place:
    """Where one sweep runs: `kinds` is what may be killed, `kill` kills what no process number tells."""

    folder: Path
    experiment: Path
    environment: dict[str, str]
    options: list[str]
    kinds: tuple[str, ...]
    tend: Callable[[], None] = lambda: None  # brings back what a scheduler would
    kill_node: Callable[[], None] | None = None

    @property
    def out(self) -> Path:
        """The run folder."""
        return self.folder / "run"

    def start(self) -> subprocess.Popen[bytes]:
        """Give the command of the sweep."""
        with (self.folder / "said.txt").open("ab") as said:
            return subprocess.Popen(
                [*RAG_LAB, "sweep", str(self.experiment), "--out", str(self.out), "--no-check", *self.options],
                env=self.environment,
                stdout=said,
                stderr=said,
                cwd=ROOT,
            )

    def said(self) -> str:
        """What all commands have said."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*said.txt")))


def disturbed(
    place: Place, n_kills: int, chance: random.Random, every_s: float, n_calls: Callable[[], int]
) -> dict[str, Any]:
    """Run a sweep to its end, with so many kills, and tell what happened.

    Four kills of five wait until the chat model was asked after the one before, so that they hit work in flight.
    """
    processes, killed, in_vain = Processes(place.environment[MARK]), Counter[str](), 0
    began_s, running, starts = time.monotonic(), place.start(), 1
    faults: list[str] = []
    wait_s, waits_for = chance.uniform(0, 2 * every_s), 1
    due_s = float("inf")
    killed_at_start = 0
    while True:
        time.sleep(LOOK_S)
        place.tend()
        found = processes.look()
        if running.poll() is not None:
            if running.returncode == 0:
                break
            in_vain = in_vain + 1 if killed.total() == killed_at_start else 0
            if in_vain and len(faults) < 10:
                faults.append(place.said()[-600:])
            if in_vain >= MOST_STARTS_IN_VAIN:
                break
            running, starts, killed_at_start = place.start(), starts + 1, killed.total()
            continue
        if due_s == float("inf") and n_calls() >= waits_for:
            due_s = time.monotonic() + wait_s
        if killed.total() < n_kills and time.monotonic() >= due_s:
            kinds = [kind for kind in place.kinds if found.get(kind) or (kind == "node" and place.kill_node)]
            if kinds:
                kind = chance.choice(kinds)
                _kill(place, kind, chance, found)
                killed[kind] += 1
                print(f"{time.monotonic() - began_s:.0f} s: {kind}", file=sys.stderr, flush=True)
            wait_s, due_s = chance.uniform(0, 2 * every_s), float("inf")
            waits_for = n_calls() + (1 if chance.random() < ASKED_FIRST else 0)
    return {
        "kills": killed.total(),
        "by_kind": dict(killed),
        "starts": starts,
        "wall_s": round(time.monotonic() - began_s, 1),
        "ended_whole": running.returncode == 0,
        "starts_in_vain": faults,
        "tracebacks": place.said().count("Traceback (most recent call last)"),
    }


def _kill(place: Place, kind: str, chance: random.Random, found: dict[str, list[int]]) -> None:
    if kind == "node" and place.kill_node is not None:
        place.kill_node()
        return
    with suppress(ProcessLookupError):
        os.kill(chance.choice(found[kind]), signal.SIGKILL)


def left_behind(place: Place) -> dict[str, Any]:
    """Return the processes, temporary folders and partial files that a sweep has left."""
    processes, until_s = Processes(place.environment[MARK]), time.monotonic() + DIE_S
    while (found := processes.look()) and time.monotonic() < until_s:
        time.sleep(LOOK_S)
    homes = [path for path in place.folder.iterdir() if path.name.startswith("home")]
    partial = [path for top in (place.out, *homes) for path in top.rglob("*") if _is_partial(path)]
    return {
        "processes": found,
        "temporary": sorted(path.name for path in (place.folder / "t").iterdir() if not path.name.startswith(OTHERS)),
        "partial": sorted(str(path.relative_to(place.folder)) for path in partial),
    }


def _is_partial(path: Path) -> bool:
    return "partial" in path.name or path.name.endswith("-before")


def essence(run: Path) -> str:
    """Return the scores of a run as text, without what depends on the machine."""
    scores = RunFolder.open(run).scores()
    kept = scores[~scores["metric"].str.startswith("cost.")]
    return str(kept.sort_values(list(kept.columns[:4])).to_csv(index=False))


@contextmanager
def local(folder: Path, environment: dict[str, str], experiment: Path) -> Iterator[Place]:
    """The sweep on this machine."""
    kinds = ("sweep", "fork server", "notebook", "kernel", "holder")
    yield Place(folder, experiment, environment, ["--jobs", "2"], kinds)


@contextmanager
def workers(folder: Path, environment: dict[str, str], experiment: Path) -> Iterator[Place]:
    """The sweep with two workers, each with a home of its own, on a PostgreSQL; one that is gone is started again."""
    from postgres import postgres_server

    with postgres_server() as server:
        environment = {**environment, "RAG_LAB_STORE": server.address()}
        place = Place(folder, experiment, environment, ["--executor", "workers", "--jobs", "0"], ("sweep", "worker"))
        started: dict[int, subprocess.Popen[bytes]] = {}

        def tend() -> None:
            name = known_name(place.out) if place.out.exists() else ""
            for n in (1, 2) if name else ():
                if n not in started or started[n].poll() is not None:
                    started[n] = _worker(place, name, n)

        place.tend = tend
        place.kinds = ("sweep", "worker", "worker", "notebook", "kernel")
        try:
            yield place
        finally:
            for one in started.values():
                one.terminate()
            for one in started.values():
                one.wait(60)


def _worker(place: Place, name: str, n: int) -> subprocess.Popen[bytes]:
    with (place.folder / f"worker_{n}_said.txt").open("ab") as said:
        return subprocess.Popen(
            [*RAG_LAB, "worker", name, "--idle-minutes", "10"],
            env={**place.environment, "RAG_LAB_HOME": str(place.folder / f"home_{n}")},
            stdout=said,
            stderr=said,
            cwd=ROOT,
        )


@contextmanager
def ray_cluster(folder: Path, environment: dict[str, str], experiment: Path) -> Iterator[Place]:
    """The sweep on a Ray cluster: a head without cores, and two nodes of one core, and one that left comes back."""
    from ray.cluster_utils import Cluster

    os.environ |= {**environment, "RAY_raylet_start_wait_time_s": "180"}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    environment = {**environment, "RAY_ADDRESS": cluster.address}
    place = Place(folder, experiment, environment, ["--executor", "ray", "--jobs", "2"], ("sweep", "node"))

    def kill_node() -> None:
        cluster.remove_node(nodes.pop(random.Random(len(nodes)).randrange(len(nodes))), allow_graceful=False)
        nodes.append(cluster.add_node(num_cpus=1))

    place.kill_node = kill_node
    try:
        yield place
    finally:
        cluster.shutdown()


PLACES = {"local": local, "workers": workers, "ray": ray_cluster}


def write_experiment(folder: Path, chat: LoopbackChat, dataset: str, questions: int | None) -> Path:
    """Write the sweep: 16 variants that share rewrites, imagined passages and searches."""
    model = f"openai:echo?base_url={chat.url}&concurrency=1"
    data = {
        "name": "kills",
        "question": "What does a kill cost?",
        "dataset": dataset,
        "base": {
            "models": {"generation": model, "understanding": model, "hyde": model},
            "retrieval": {"mode": "dense"},
            "answer": {"name": "llm"},
        },
        "design": "grid",
        "factors": FACTORS,
        "metrics": ["retrieval.mrr@10", "citations.precision", "answer.abstention", "cost.tokens"],
        **({"limits": {"questions": questions}} if questions else {}),
    }
    path = folder / "kills.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return path


def embed(folder: Path, dataset: str) -> None:
    """Make a home in which the corpus is embedded: kills that hit nothing else would tell of nothing else."""
    data = {
        "name": "embedded",
        "question": "Is the corpus embedded?",
        "dataset": dataset,
        "base": {"query": {"rewrite": "none", "hyde": "none"}, "answer": {"name": "none"}},
        "factors": {},
        "metrics": ["retrieval.mrr@10"],
        "limits": {"questions": 1},
    }
    path = folder / "embedded.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    command = [*RAG_LAB, "sweep", str(path), "--out", str(folder / "embedded"), "--no-check"]
    environment = {**os.environ, "RAG_LAB_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, env=environment, check=True, capture_output=True, cwd=ROOT)


def measure(where: str, folder: Path, asked: argparse.Namespace, chat: LoopbackChat, n_kills: int) -> dict[str, Any]:
    """Run the sweep in a folder of its own and return what is told of it."""
    (folder / "t").mkdir(parents=True)
    for name in HOMES:
        shutil.copytree(folder.parent / "home", folder / name)
    environment = {
        **os.environ,
        MARK: folder.name + str(os.getpid()),
        "RAG_LAB_HOME": str(folder / "home"),
        "TMPDIR": str(folder / "t"),
        "OMP_NUM_THREADS": "1",
    }
    experiment = write_experiment(folder, chat, asked.dataset, asked.questions)
    chat.prompts.clear()
    with PLACES[where](folder, environment, experiment) as place:
        told = disturbed(place, n_kills, random.Random(asked.seed), asked.every_s, lambda: len(chat.prompts))
    prompts = Counter(json.dumps(prompt) for prompt in chat.prompts)
    return told | {
        "calls": prompts.total(),
        "calls_again": prompts.total() - len(prompts),
        "left": left_behind(place),
        "scores": essence(place.out) if told["ended_whole"] else "",
    }


def main() -> None:
    """Run both sweeps and print what kills cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("where", choices=PLACES)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--every-s", type=float, default=2.0, help="mean seconds from the first call after a kill to the next"
    )
    parser.add_argument("--delay-s", type=float, default=0.1, help="of each reply of the chat server")
    parser.add_argument("--dataset", default="plant_docs")
    parser.add_argument("--questions", type=int, default=None)
    parser.add_argument("--keep", type=Path, default=None, help="a folder for both sweeps, else a temporary one")
    asked = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="k")) if asked.keep is None else asked.keep
        folder.mkdir(parents=True, exist_ok=True)
        if asked.keep is None:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        chat = stack.enter_context(loopback_chat(delay_s=asked.delay_s))
        embed(folder, asked.dataset)
        calm = measure(asked.where, folder / "calm", asked, chat, 0)
        killed = measure(asked.where, folder / "kill", asked, chat, asked.kills)
    same = bool(calm["scores"]) and calm.pop("scores") == killed.pop("scores")
    told = {"where": asked.where, "seed": asked.seed, "undisturbed": calm, "killed": killed, "same_scores": same}
    told["calls_ratio"] = round(killed["calls"] / calm["calls"], 4)
    told["lost_s_a_kill"] = round((killed["wall_s"] - calm["wall_s"]) / max(1, killed["kills"]), 2)
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
