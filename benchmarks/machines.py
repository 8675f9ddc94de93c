"""How much faster a Ray cluster of two nodes, a core each, runs a sweep than one node, as JSON on stdout.

    python benchmarks/machines.py [--variants 8] [--questions 500] [--documents 500]

Both clusters are of this machine. A node and whatever it starts may use one core, its own; the sweep and Ray's head
share that of the first node. Every variant cuts a corpus of made-up words into chunks of a size of its own and searches
it for every question, so none shares work with another, and the home folder is new. They run by turns (1, 2, 2, 1
nodes), so that what else the machine does meets both alike.

`variants_s` is from when the variants are handed to the cluster until the last is unpacked, and `ratio` that of its
means. `ends_s` are when its variants ended. `start_s`, of Ray and its nodes, `first_s`, of a sweep of two small
variants that lets every node prepare its kernels, and `rest_s`, of planning and the report, are told apart.
`processor_s` are those of each core by the processes of this benchmark while the variants ran: what is missing to the
wall seconds is a core that stood idle, or that others used. `machine_ratio` is what two cores do more than one where
nothing is shared but the machine: 2 on one with nothing else to do.
"""

import argparse
import json
import multiprocessing
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.cluster_utils import Cluster

from rag_lab.experiment.executors.launchers import EXECUTORS, executor_of
from rag_lab.experiment.executors.local import Done
from rag_lab.experiment.run.sweep import sweep

TURNS = (1, 2, 2, 1)
WORDS, WORDS_A_DOCUMENT, WORDS_A_QUESTION = 4_000, 300, 7
SMALLEST, STEP = 300, 70  # characters of a chunk
TARGET = 1.7


def write_dataset(folder: Path, name: str, n_documents: int, n_questions: int) -> Path:
    """Write documents of made-up words, and questions that are pieces of them."""
    draw, path = random.Random(7), folder / name
    words = ["".join(draw.choices("abdegiklmnoprstu", k=draw.randint(4, 9))) for _ in range(WORDS)]
    texts = [draw.choices(words, k=WORDS_A_DOCUMENT) for _ in range(n_documents)]
    (path / "corpus").mkdir(parents=True)
    for number, text in enumerate(texts):
        lines = [" ".join(text[at : at + 12]).capitalize() + "." for at in range(0, len(text), 12)]
        (path / "corpus" / f"{number:04}.txt").write_text("\n\n".join(lines), encoding="utf-8")
    asked = []
    for number in range(n_questions):
        source, at = number % n_documents, 12 * draw.randrange(WORDS_A_DOCUMENT // 12)
        quote = " ".join(texts[source][at : at + 12]).capitalize()
        question = " ".join(draw.sample(texts[source][at : at + 12], WORDS_A_QUESTION))
        evidence = [{"source": f"{source:04}.txt", "quote": quote}]
        asked.append({"id": f"q{number}", "question": question, "answers": [quote], "evidence": evidence})
    head = f"name: {name}\ndescription: made-up words\nlicence: CC0-1.0\nlanguage: en\npage_base: 1\n"
    (path / "dataset.yaml").write_text(head, encoding="utf-8")
    (path / "questions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked), encoding="utf-8")
    return path


def experiment(dataset: Path, n_variants: int) -> dict[str, Any]:
    return {
        "name": f"{dataset.name}_{n_variants}",
        "question": "Do two nodes run a sweep in half the time?",
        "dataset": str(dataset),
        "base": {
            "query": {"rewrite": "none", "hyde": "none"},
            "retrieval": {"mode": "bm25"},
            "answer": {"name": "none"},
        },
        "factors": {"corpus.chunk_size": [SMALLEST + STEP * number for number in range(n_variants)]},
        "metrics": ["retrieval.ndcg@10"],
    }


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """Let what is started in this block use one core alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def cluster_of(cores: list[int]) -> Iterator[None]:
    """Keep a node a core in this block; the sweep is on the first."""
    with pinned(cores[0]):
        nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        for core in cores[1:]:
            with pinned(core):
                nodes.add_node(num_cpus=1)
        ray.init(address=nodes.address, log_to_driver=False)
        try:
            yield
        finally:
            ray.shutdown()
            nodes.shutdown()


class Processors:
    """Adds up, several times a second, what the processes have used that are pinned to each core."""

    def __init__(self, cores: list[int]) -> None:
        self._cores, self._used, self._is_over = cores, dict[tuple[int, float], tuple[int, float]](), threading.Event()
        self._before = self._look()
        self._watch = threading.Thread(target=self._look_on, daemon=True)
        self._watch.start()

    def ended(self) -> list[float]:
        """Return the seconds by core since this was made."""
        self._is_over.set()
        self._watch.join()
        seconds = dict.fromkeys(self._cores, 0.0)
        for who, (core, used) in self._look().items():
            seconds[core] += used - self._before.get(who, (core, 0.0))[1]
        return [round(one, 2) for one in seconds.values()]

    def _look_on(self) -> None:
        while not self._is_over.wait(0.2):
            self._look()

    def _look(self) -> dict[tuple[int, float], tuple[int, float]]:
        """Return the core and the seconds of each process, also of those that have ended since."""
        for process in psutil.process_iter():
            try:
                allowed, times = process.cpu_affinity(), process.cpu_times()
            except psutil.Error:
                continue
            if len(allowed) == 1 and allowed[0] in self._cores:
                self._used[process.pid, process.create_time()] = allowed[0], times.user + times.system
        return dict(self._used)


class Clock:
    """The executor of Ray, with a look at what its variants took."""

    def __init__(self, cores: list[int]) -> None:
        self.execute = executor_of("ray")
        self.cores, self.wall_s, self.processor_s, self.ends_s = cores, 0.0, [0.0], [0.0]

    def __call__(self, *given: Any, **more: Any) -> Iterator[Done]:
        began_s, used, self.ends_s = time.monotonic(), Processors(self.cores), []
        for done in self.execute(*given, **more):
            self.ends_s.append(round(time.monotonic() - began_s, 2))
            yield done
        self.wall_s, self.processor_s = time.monotonic() - began_s, used.ended()


def loop() -> float:
    """Return the wall seconds of some work that needs a core and no memory."""
    began_s, n = time.monotonic(), 0
    for number in range(15_000_000):
        n += number & 3
    return time.monotonic() - began_s


def machine_ratio(cores: list[int]) -> float:
    """Return how much more two processes on a core each do than one alone: what no sweep can pass."""
    with multiprocessing.Pool(2, initializer=pin_next, initargs=(multiprocessing.Value("i", 0), cores)) as pool:
        alone_s = min(pool.apply(loop) for _ in range(2))
        both_s = max(one.get() for one in [pool.apply_async(loop) for _ in cores])
    return 2 * alone_s / both_s


def pin_next(number: Any, cores: list[int]) -> None:
    with number.get_lock():
        os.sched_setaffinity(0, {cores[number.value]})
        number.value += 1


def turn(cores: list[int], n_variants: int, small: Path, large: Path, folder: Path) -> dict[str, Any]:
    os.environ["RAG_LAB_HOME"] = str(folder / "home")
    began_s = time.monotonic()
    with cluster_of(cores):
        start_s = time.monotonic() - began_s
        EXECUTORS["ray"] = clock = Clock(cores)
        sweep(experiment(small, 2), folder / "first", executor="ray", progress=False)
        first_s, began_s = clock.wall_s, time.monotonic()
        run = sweep(experiment(large, n_variants), folder / "run", executor="ray", progress=False)
        rest_s = time.monotonic() - began_s - clock.wall_s
    states = run.manifest()["variants"].values()
    assert {state["status"] for state in states} == {"ok"}, states
    return {
        "nodes": len(cores),
        "variants_s": round(clock.wall_s, 2),
        "ends_s": clock.ends_s,
        "processor_s": clock.processor_s,
        "start_s": round(start_s, 2),
        "first_s": round(first_s, 2),
        "rest_s": round(rest_s, 2),
        "each_variant_s": [round(state["seconds"], 1) for state in states],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--variants", type=int, default=8)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--documents", type=int, default=500)
    asked = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        raise SystemExit("This needs two cores, one a node.")
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as scratch:
        small = write_dataset(Path(scratch), "small", 4, 4)
        large = write_dataset(Path(scratch), "large", asked.documents, asked.questions)
        turns = []
        for number, n in enumerate(TURNS):
            (folder := Path(scratch) / f"turn_{number}").mkdir()
            turns.append(turn(cores[:n], asked.variants, small, large, folder))
    of = {n: [one["variants_s"] for one in turns if one["nodes"] == n] for n in (1, 2)}
    used = {n: [sum(one["processor_s"]) for one in turns if one["nodes"] == n] for n in (1, 2)}
    print(
        json.dumps(
            {
                "benchmark": "machines",
                "variants": asked.variants,
                "ratio": round(sum(of[1]) / sum(of[2]), 3),
                "target": TARGET,
                "machine_ratio": round(machine_ratio(cores), 3),
                "processor_two_to_one": round(sum(used[2]) / sum(used[1]), 3),
                "turns": turns,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
