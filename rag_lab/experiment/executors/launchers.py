"""What starts workers, on this machine, by a scheduler, or on the nodes of a Ray cluster; and the executors by name."""

import logging
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from rag_lab._kit import home, machine
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.experiment.executors import job_queue, local

Look = Callable[[], None]  # what is called several times a second while workers run
LOCAL, WORKERS, SLURM, RAY = "local", "workers", "slurm", "ray"
RAY_ADDRESS = "RAY_ADDRESS"
SCHEDULER_FOLDER = "scheduler"  # in the run folder: what submitit writes, with what workers print
_STORE = "RAG_LAB_STORE"
_PYTHON = f"{shlex.quote(sys.executable)} -P"  # without the working folder among the places to import from
_STOP_S = 10.0
_NODES_EVERY_S = 2.0
_LOGGER = logging.getLogger(__name__)


def executor_of(name: str, slurm: Mapping[str, Any] | None = None) -> local.Execute:
    """Return the executor of this name; `slurm` is what submitit is asked for: `timeout_min`, `slurm_partition`, …"""
    if name not in EXECUTORS:
        raise ConfigError(unknown_name("executor", name, EXECUTORS))
    if slurm and name != SLURM:
        raise ConfigError(f"--slurm is for --executor {SLURM}, and the executor is {name}; leave one of them out.")
    return partial(job_queue.announce_and_collect, partial(_slurm_workers, slurm)) if slurm else EXECUTORS[name]


def worker_command(run: str, *more: str) -> list[str]:
    """Return the command of a worker in this Python; it imports nothing from the working folder (-P)."""
    return [sys.executable, "-P", "-c", "from rag_lab.cli import main; main()", "worker", run, *more]


@contextmanager
def _local_workers(run: str, jobs: Sequence[local.Job], n: int) -> Iterator[Look]:
    """Keep `n` workers on this machine in this block, which may be none."""
    known = jobs[0].origin
    dataset = known.dataset_path if known is not None else ""
    environment = {**os.environ, **jobs[0].environment, home.VARIABLE: str(home.home())}
    command, ours, printed = worker_command(run, "--dataset", dataset), list[Any](), list[str]()
    try:  # Ctrl-C reaches this process only, which then ends the others in order
        with _running(n, command, environment, start_new_session=True) as (ours, printed):
            yield lambda: None
    finally:
        if any(worker.returncode == 2 for worker in ours):
            _LOGGER.warning("A worker on this machine ended: %s", printed[-1])


@contextmanager
def _running(
    n: int, command: Sequence[str], environment: Mapping[str, str], **options: Any
) -> Iterator[tuple[list[subprocess.Popen[bytes]], list[str]]]:
    """Yield `n` processes of a command, which are ended after this block, and then the last line that they printed."""
    lines = list[str]()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed:
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": printed, "stderr": printed}
        ours = [subprocess.Popen(command, env=environment, **streams, **options) for _ in range(n)]  # noqa: S603
        try:
            yield ours, lines
        finally:
            for worker in ours:
                worker.terminate()
            for worker in ours:
                try:
                    worker.wait(_STOP_S)
                except subprocess.TimeoutExpired:
                    worker.kill()
                    worker.wait(_STOP_S)
            printed.seek(0)
            lines.append(printed.read().strip().rpartition("\n")[2])


@contextmanager
def _slurm_workers(asked: Mapping[str, Any], run: str, jobs: Sequence[local.Job], n: int) -> Iterator[Look]:
    """Submit `n` workers as one array, no more than jobs; they are cancelled at the end."""
    try:
        import submitit
    except ImportError:
        raise ConfigError(
            "--executor slurm needs submitit, which is not installed; install it with `pip install 'rag_lab[slurm]'`."
        ) from None
    parameters = {"timeout_min": 24 * 60, "name": "rag-lab", **asked}
    cluster = parameters.pop("cluster", "slurm")  # or `local`, for processes of this machine
    try:
        folder = jobs[0].output.parents[2] / SCHEDULER_FOLDER
        scheduler = submitit.AutoExecutor(folder=folder, cluster=cluster, slurm_python=_PYTHON)
        scheduler.update_parameters(**parameters)
    except (RuntimeError, ValueError, TypeError, NameError, AssertionError) as error:
        raise ConfigError(
            f"The scheduler cannot be used: {error}; run where sbatch is, and give --slurm what submitit knows, as "
            "timeout_min=60 or slurm_partition=gpu."
        ) from None
    # A command, so that nothing of ours is pickled; its working folder is this one.
    worker = submitit.helpers.CommandFunction(worker_command(run), verbose=False)
    # The variable keeps the working folder out of what submitit starts on this machine.
    with home.variable("PYTHONSAFEPATH", "1"), scheduler.batch():
        submitted = [scheduler.submit(worker) for _ in range(min(max(n, 1), len(jobs)))]
    try:
        yield lambda: None
    finally:
        for one in submitted:
            with suppress(Exception):  # whatever it says, it has ended or ends by its own time
                one.cancel()


@contextmanager
def _ray_workers(run: str, jobs: Sequence[local.Job], n: int) -> Iterator[Look]:
    """Keep a worker on each node of a Ray cluster in this block, or one a GPU; it takes a variant a core.

    Where `RAY_ADDRESS` names no cluster, and none runs here, a Ray of this machine with `n` cores is started. Workers
    of nodes that join are started while it runs; why one has ended is logged.
    """
    me, known_nodes, tasks, looked_s = machine.Process.of(), set[str](), list[Any](), float("-inf")
    origin = {"host": me.host, "system": me.system, "home": str(home.home()), "store": os.environ.get(_STORE, "")}

    def look() -> None:
        nonlocal looked_s
        if time.monotonic() - looked_s < _NODES_EVERY_S:
            return
        looked_s = time.monotonic()
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        for node in ray.nodes():
            name, n_cores = node["NodeID"], int(node["Resources"].get("CPU", 0))
            if not node["Alive"] or name in known_nodes or n_cores < 1:
                continue
            known_nodes.add(name)
            n_gpus = int(node["Resources"].get("GPU", 0))
            n_workers = max(1, min(n_cores, n_gpus))
            start = ray.remote(
                num_cpus=n_cores // n_workers,
                num_gpus=1 if n_gpus else 0,
                max_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(name, soft=False),
            )(_work_on_node)
            n_variants = min(n_cores // n_workers, len(jobs))
            tasks.extend(start.remote(run, n_variants, origin) for _ in range(n_workers))
        for task in ray.wait(tasks, num_returns=len(tasks), timeout=0)[0] if tasks else []:
            tasks.remove(task)
            with suppress(ray.exceptions.RayError):  # its node has left: others take its variants
                if reason := ray.get(task):
                    _LOGGER.warning("A worker on a node of the cluster ended: %s", reason)

    with ray_cluster(n) as ray:
        try:
            yield look
        finally:
            for force in (False, True):  # by Ctrl-C, in which a worker gives up its variant; else at once
                for task in tasks:
                    with suppress(Exception):  # the cluster may be gone
                        ray.cancel(task, force=force)
                with suppress(Exception):
                    tasks = ray.wait(tasks, num_returns=len(tasks), timeout=_STOP_S)[1] if tasks else []


def _work_on_node(run: str, n_variants: int, origin: Mapping[str, str]) -> str:
    """Run a worker on the node of a cluster until it has ended; return why it could not work, or ''."""
    environment = {name: value for name, value in os.environ.items() if name != RAY_ADDRESS}
    me = machine.Process.of()
    if (me.host, me.system) == (origin["host"], origin["system"]):  # else the node has a home on its disk
        environment[home.VARIABLE] = origin["home"]
    if origin["store"]:
        environment[_STORE] = origin["store"]
    with _running(1, worker_command(run, "--jobs", str(n_variants)), environment) as ((worker,), printed):
        while worker.poll() is None:
            time.sleep(0.1)  # Ray interrupts between two looks, not in a wait
    return printed[-1] if worker.returncode else ""


@contextmanager
def ray_cluster(n_cores: int) -> Iterator[Any]:
    """Yield Ray, connected to the cluster that is there, or to one of this machine's."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise ConfigError(
            "--executor ray needs Ray, which is not installed; install it with `pip install 'rag_lab[ray]'`."
        ) from None
    if ray.is_initialized():  # by whoever called this, and theirs to end
        yield ray
        return
    address = os.environ.get(RAY_ADDRESS)
    place: dict[str, Any] = {"address": address} if address else {"num_cpus": n_cores, "include_dashboard": False}
    config = ray.job_config.JobConfig()
    # A list that stays empty: Ray would put the working folder first, where it imports from.
    config._py_driver_sys_path = type("NoFolders", (list,), {"extend": lambda *_: None})()
    try:
        ray.init(**place, job_config=config, logging_level=logging.ERROR, log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(
            f"Ray cannot be used: {reason}; give {RAY_ADDRESS} the address of a cluster, or leave it out for this "
            "machine."
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


EXECUTORS: dict[str, local.Execute] = {
    LOCAL: local.execute,
    WORKERS: partial(job_queue.announce_and_collect, _local_workers),
    RAY: partial(job_queue.announce_and_collect, _ray_workers),
    SLURM: partial(job_queue.announce_and_collect, partial(_slurm_workers, {})),
}
