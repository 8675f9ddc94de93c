"""The executor of a Ray cluster: a variant is a task, whose results come back as a parcel.

Ray runs a task again whose node has left. What it had stored until then is remembered where all nodes share the store.
The variants of a node share its local models (see `ray_places`), those of a core what prepares its kernels.
Where cores are idle, variants are run on those, too, to share their work (see `ray_help`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from rag_lab._kit.home import VARIABLE as HOME_VARIABLE
from rag_lab._kit.home import home
from rag_lab._kit.process import Process
from rag_lab.errors import ConfigError, RagLabError
from rag_lab.experiment.executors.job import Done, Job, Poll, Veto
from rag_lab.experiment.executors.local import Starter
from rag_lab.experiment.executors.parcels import BadParcelError, Ended, unpack
from rag_lab.experiment.executors.ray_help import Helpers
from rag_lab.experiment.executors.ray_places import Places, place_here
from rag_lab.experiment.executors.run_task import run_task
from rag_lab.experiment.executors.said_elsewhere import say_in
from rag_lab.experiment.executors.task import Task
from rag_lab.experiment.kernels.check_parameters import check_parameters
from rag_lab.models.host.place import model_host
from rag_lab.runs.live_file import remove_live

ADDRESS = "RAY_ADDRESS"
_STORE = "RAG_LAB_STORE"
_LOOK_EVERY_S = 0.2
_RETRIES = 5  # of a task whose node or process is gone


def execute(
    jobs: Sequence[Job],
    n_jobs: int = 1,
    cwd: Path | None = None,
    *,
    poll: Poll = lambda running: None,
    veto: Veto = lambda job, runs: "",
) -> Iterator[Done]:
    """Yield each job as it ends, on whichever node; the cluster's cores bound how many run at a time.

    Where `RAY_ADDRESS` names no cluster, and none runs here, a Ray of this machine with `n_jobs` cores is started.

    Raises:
        ConfigError: before anything runs, if Ray is missing or the cluster does not answer.
    """
    if not jobs:
        return
    for job in jobs:
        check_parameters(job.notebook, job.parameters)
    tasks = {job.name: Task.of(job) for job in jobs}
    open_jobs = {job.name: job for job in jobs}
    with _cluster(n_jobs) as ray, closing(Places(ray)) as places:
        places.look()
        run = ray.remote(num_cpus=1, max_retries=_RETRIES)(_run_on_node)
        given = _here() | {"sweep": places.sweep}
        names = {run.remote(tasks[name].to_json(), given): name for name in open_jobs}
        help_out = ray.remote(num_cpus=1, max_retries=0)(_help_on_node)
        helpers = Helpers(ray, lambda name: help_out.remote(tasks[name].for_help().to_json(), given))
        try:
            while names:
                for name, said in places.look().items():
                    if name in open_jobs:
                        say_in(open_jobs[name].output.parent, said)
                done, _ = ray.wait(list(names), num_returns=1, timeout=_LOOK_EVERY_S)
                for one in done:
                    yield _done(ray, open_jobs.pop(names[one]), one)
                    del names[one]
                n_cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
                helpers.look(names.values(), n_cores)
                poll(list(names.values())[:n_cores])
                for one, name in list(names.items()):
                    if why := veto(open_jobs[name], True):
                        ray.cancel(one, force=True)
                        del names[one]
                        remove_live(open_jobs[name].output.parent)
                        yield Done(open_jobs.pop(name), why, 0.0, vetoed=True)
        finally:
            helpers.close()
            for one in names:
                with suppress(Exception):  # the cluster may be gone
                    ray.cancel(one, force=True)


def _run_on_node(task: str, given: Mapping[str, str]) -> str:
    """Run a task on the node of a cluster; the parcel says what was wrong where the node cannot run it."""
    _enter(given)
    known, here = Task.from_json(task), place_here(given["sweep"])
    if here is None:
        with model_host() as alone:
            return run_task(known, environment=alone, starter=_starter())[1]
    tell = (lambda said: None) if "silent" in given else partial(here.tell, known.name)
    return run_task(known, environment=here.environment, tell=tell, starter=_starter())[1]


def _help_on_node(task: str, given: Mapping[str, str]) -> None:
    """Run a task that runs elsewhere, too, where both see one store; else everything would be computed twice."""
    if given["store"] or _is_home(given):
        _run_on_node(task, {**given, "silent": "yes"})


def _enter(given: Mapping[str, str]) -> None:
    if _is_home(given):
        os.environ[HOME_VARIABLE] = given["home"]  # else the node has its own, which is of its own disk
    if given["store"]:
        os.environ[_STORE] = given["store"]
    os.environ.pop("RAY_ADDRESS", None)


def _is_home(given: Mapping[str, str]) -> bool:
    """Tell whether this is the machine of the sweep."""
    return (given["host"], given["system"]) == Process.this()[:2]


@cache
def _starter() -> Starter:
    """Return what starts the kernels of this process of Ray's, which runs one task after another."""
    return Starter()


def _here() -> dict[str, str]:
    """Return what a node has to know of the machine of the sweep."""
    me = Process.this()
    return {"host": me.host, "system": me.system, "home": str(home()), "store": os.environ.get(_STORE, "")}


def _done(ray: Any, job: Job, result: Any) -> Done:
    try:
        ended: Ended = unpack(ray.get(result), job.output.parent)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        return Done(job, str(cause) if isinstance(cause, RagLabError) else f"{type(cause).__name__}: {cause}", 0.0)
    except ray.exceptions.RayError as error:
        said = " ".join(str(error).split())[:200]
        return Done(job, f"Its node left, and so did those that Ray tried it on after that ({said}).", 0.0)
    except BadParcelError as error:
        return Done(job, str(error), 0.0)
    return Done(job, ended.reason, ended.seconds)


@contextmanager
def _cluster(n_jobs: int) -> Iterator[Any]:
    """Yield Ray, connected to the cluster that is there, or to one of this machine's."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # the actors that share models say which GPU
    try:
        import ray
    except ImportError:
        raise ConfigError(
            "--executor ray needs Ray, which is not installed; install it with `pip install 'rag_lab[ray]'`."
        ) from None
    if ray.is_initialized():  # by whoever called this, and theirs to end
        yield ray
        return
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if os.environ.get(ADDRESS):
            ray.init(address=os.environ[ADDRESS], job_config=_job_config(ray), **quiet)
        else:
            ray.init(num_cpus=n_jobs, include_dashboard=False, job_config=_job_config(ray), **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        said = " ".join(str(error).split())[:200]
        raise ConfigError(
            f"Ray cannot be used: {said}; give {ADDRESS} the address of a cluster, or leave it out for this machine."
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


class _NoFolders(list[str]):
    """A list that stays empty."""

    def extend(self, _: object) -> None:
        """Take nothing."""


def _job_config(ray: Any) -> Any:
    """Return what keeps the working folder, which Ray would put first, out of where its processes import from."""
    config = ray.job_config.JobConfig()
    config._py_driver_sys_path = _NoFolders()
    return config
