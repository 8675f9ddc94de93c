"""What it costs N kernels to have a model: loaded in each, held by a process that they ask, or forked; prints JSON.

A kernel here is a Python that asks the model once, as papermill's do one after another (`--jobs 1`). Forked ones are
children of a process that has loaded the weights and computed nothing: torch's threads do not survive a fork.

    python benchmarks/model_host.py [N]
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rag_lab.models.hosted import HOST_VARIABLE, OFF, model_host, model_processes

MODELS = {
    "sentence_transformers:minilm": "embedder",
    "llamacpp:smollm2": "chat_model",
    "transformers:smollm2": "chat_model",
}
FORKED = "sentence_transformers:minilm"
KERNEL = """
import json, re, sys, time
from pathlib import Path
from rag_lab.models import shared
from rag_lab.models.protocols import ChatRequest, Message

def asked(kind, spec):
    if kind == "embedder":
        return shared.embedder(spec).embed_queries(["What is greased every month?"]).tolist()
    request = ChatRequest((Message("user", "What is greased every month?"),), max_tokens=4)
    return [reply.text for reply in shared.chat_model(spec).generate([request])]

def told(found):
    own = re.search(r"^Pss:\\s+(\\d+)", Path("/proc/self/smaps_rollup").read_text(), re.MULTILINE)
    return json.dumps({"cpu_s": time.process_time(), "memory_mb": int(own[1]) / 1024, "found": found})
"""
ALONE = f"{KERNEL}\nprint(told(asked(*sys.argv[1:3])))"
FORKS = f"""{KERNEL}
import os
shared.embedder(sys.argv[2]).loaded  # which loads the weights
loaded = {{"cpu_s": time.process_time()}}
for _ in range(int(sys.argv[3])):
    if child := os.fork():
        os.waitpid(child, 0)
    else:
        print(told(asked(*sys.argv[1:3])), flush=True)
        os._exit(0)
print(json.dumps(loaded))
"""
TICKS = os.sysconf("SC_CLK_TCK")


def kernels(kind: str, spec: str, n: int, environment: dict[str, str]) -> list[dict[str, Any]]:
    command = [sys.executable, "-c", ALONE, kind, spec]
    run = [subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True) for _ in range(n)]
    return [json.loads(one.stdout) for one in run]


def summary(found: list[dict[str, Any]], seconds: float, beside: dict[str, float]) -> dict[str, Any]:
    """Return the figures of N kernels, and of whatever stands beside them."""
    return {
        "cpu_s": round(sum(one["cpu_s"] for one in found) + beside.get("cpu_s", 0.0), 1),
        "seconds": round(seconds, 1),
        "mb_each": round(max(one["memory_mb"] for one in found)),
        "mb_beside": round(beside.get("memory_mb", 0.0)),
    }


def of_process(pid: int) -> dict[str, float]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {"cpu_s": (int(fields[11]) + int(fields[12])) / TICKS, "memory_mb": int(status["VmHWM"].split()[0]) / 1024}


def compared(kind: str, spec: str, n: int) -> dict[str, Any]:
    started = time.perf_counter()
    each = kernels(kind, spec, n, {HOST_VARIABLE: OFF})
    loaded_s, started = time.perf_counter() - started, time.perf_counter()
    with model_host() as environment:
        asking = kernels(kind, spec, n, environment)
        (held,) = model_processes(Path(environment[HOST_VARIABLE]))
        beside = of_process(held.process.pid)
    result = {
        "loaded_in_each": summary(each, loaded_s, {}),
        "held_by_a_process": summary(asking, time.perf_counter() - started, beside),
        "same_results": all(one["found"] == each[0]["found"] for one in [*each, *asking]),
    }
    if spec == FORKED:
        result["forked"] = forked(kind, spec, n)
    return result


def forked(kind: str, spec: str, n: int) -> dict[str, Any]:
    started = time.perf_counter()
    command = [sys.executable, "-c", FORKS, kind, spec, str(n)]
    environment = {**os.environ, HOST_VARIABLE: OFF}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    *children, parent = map(json.loads, run.stdout.splitlines())
    return summary(children, time.perf_counter() - started, parent)


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    for spec, kind in MODELS.items():  # what is made once for a machine is made before anything is measured
        kernels(kind, spec, 1, {HOST_VARIABLE: OFF})
    found = {spec: compared(kind, spec, n) for spec, kind in MODELS.items()}
    print(json.dumps({"benchmark": "model_host", "kernels": n, **found}, indent=1))


if __name__ == "__main__":
    main()
