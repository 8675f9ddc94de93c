"""Sixteen variants as one cold sweep, each alone through stock papermill, and their model work alone, as JSON.

    python benchmarks/factorial.py [--questions 100] [--half] [--chat-s 0.5] [--pair-s 0.01] [--page FILE]

The grid is rewrite x HyDE x parent x rerank on the demo's documents. Chunks and questions are embedded by the
packaged MiniLM on this machine. The chat model and the reranker are servers on loopback that take a fixed time,
half a second for a reply and 10 ms for a passage, so that all sides wait for the same: four calls at a time, as the
package asks by default.

- `sweep` is the command in a fresh home folder, run before and after the others: start, all notebooks, scores,
  report.
- `stock` is plain papermill with its own engine, one variant after another, each in a fresh home folder, so that
  nothing is shared: the notebooks that the sweep ran, with the same parameters. No report is made.
- `work` is the same stages called directly in one process, variant after variant, in a fresh home: each distinct
  call is made once. No notebook, no scores, no report; the time to import and to load the models is in it.

`times_as_fast` is stock over sweep (6 is asked), `over_work` the sweep over the work (1.10 at most is asked). With
`--half` stock papermill runs the eight variants with an even number of switches on, in which every two switches
meet equally often, and `stock` is told as twice their sum.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from beside.data import ROOT
from beside.model_servers import chat_server, reranker
from beside.page import argument, tell
from beside.sweeps import states, swept, written
from beside.took import Took, mean, ran

METRICS = ["retrieval.ndcg@5", "retrieval.mrr@5", "cost.seconds"]
FACTORS = {
    "query.rewrite": ["none", "llm"],
    "query.hyde": ["none", "always"],
    "corpus.parents": ["page", "none"],
    "rerank.name": ["none", "cross_encoder"],
}
STOCK = "import sys; from papermill.__main__ import papermill; sys.argv[0] = 'papermill'; papermill()"
WORK = """
import json, sys, time
from pathlib import Path
import rag_lab as rl
from rag_lab.config import PipelineConfig

run = Path(sys.argv[1])
plan = json.loads((run / "plan.json").read_text())
for variant in sys.argv[2:]:
    config = PipelineConfig.load(run / "variants" / variant / "config.yaml")
    pipeline = rl.Pipeline("plant_docs", config, progress=False)
    asked = [one for one in pipeline.dataset.questions if one.question_id in set(plan["questions"])]
    traces = pipeline.run(asked, answer=(), read=lambda question: ("ranked",))
    assert len(traces) == len(asked) and not any(trace.failure for trace in traces)
"""


def experiment(questions: int, chat: str, scorer: str) -> dict[str, Any]:
    return {
        "name": "factorial",
        "question": "Which of four switches earn their keep?",
        "dataset": str(ROOT / "datasets/plant_docs"),
        "base": {
            "retrieval": {"mode": "dense"},
            "answer": {"name": "none"},
            "models": {
                "understanding": f"openai:tiny?base_url={chat}",
                "hyde": f"openai:tiny?base_url={chat}",
                "cross_encoder": f"vllm:tiny?base_url={scorer}",
            },
        },
        "factors": FACTORS,
        "design": "grid",
        "metrics": METRICS,
        "limits": {"questions": questions},
    }


def stock(variant: str, run: Path, folder: Path) -> Took:
    """Execute one variant's notebook by papermill alone, in a fresh home; a failing cell ends the benchmark."""
    notebook = json.loads((run / "variants" / variant / "notebook.ipynb").read_text(encoding="utf-8"))
    given = notebook["metadata"]["papermill"]["parameters"] | {"OUT": str(folder / variant)}
    config = folder / f"{variant}.yaml"
    config.write_text((run / "variants" / variant / "config.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    given["CONFIG"] = str(config)
    parameters = [part for name, value in given.items() for part in ("-p", name, str(value))]
    command = [sys.executable, "-c", STOCK, str(ROOT / "notebooks/02_run_variant.ipynb"), str(folder / "out.ipynb")]
    home = {"RAG_LAB_HOME": str(folder / f"home_{variant}"), "RAG_LAB_MODEL_HOST": "off"}
    took, _ = ran([*command, *parameters, "-k", "python3", "--no-progress-bar"], folder, home)
    return took


def work(variants: list[str], run: Path, home: Path) -> Took:
    took, _ = ran([sys.executable, "-c", WORK, str(run), *variants], ROOT, {"RAG_LAB_HOME": str(home)})
    return took


def _switches(variant: str) -> int:
    return 0 if variant == "baseline" else len(variant.split("__"))


def measure(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    with chat_server(given.chat_s) as chat, reranker(given.pair_s) as scorer:
        path = written(folder, experiment(given.questions, chat.url, scorer.url))

        def calls() -> dict[str, int]:
            return {"chat": len(chat.bodies), "passages": sum(len(body.get("documents", ())) for body in scorer.bodies)}

        def since(before: dict[str, int]) -> dict[str, int]:
            return {name: n - before[name] for name, n in calls().items()}

        run, before = folder / "run_0", calls()
        sweeps = [swept(path, run, folder / "home_0")]
        asked = {"sweep": since(before)}
        variants = list(states(run))
        chosen = [variant for variant in variants if not given.half or _switches(variant) % 2 == 0]
        before = calls()
        alone = [stock(variant, run, folder) for variant in chosen]
        asked["stock"] = since(before)
        before = calls()
        worked = work(variants, run, folder / "home_work")
        asked["work"] = since(before)
        sweeps.append(swept(path, folder / "run_1", folder / "home_1"))
    all_alone = mean(alone) * len(variants)
    together = mean(sweeps)
    return {
        "questions": given.questions,
        "variants": len(variants),
        "ran_by_stock_papermill": len(alone),
        "reply_s": given.chat_s,
        "passage_s": given.pair_s,
        "calls": asked,
        "sweep": together.told(),
        "sweeps": [took.told() for took in sweeps],
        "stock": all_alone.told(),
        "work": worked.told(),
        "times_as_fast": all_alone.over(together),
        "over_work": together.over(worked),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--half", action="store_true", help="stock papermill runs eight variants, told as sixteen")
    parser.add_argument("--chat-s", type=float, default=0.5)
    parser.add_argument("--pair-s", type=float, default=0.01)
    argument(parser)
    given = parser.parse_args()
    os.environ.setdefault("OPENAI_API_KEY", "none")
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), given)
    rows = [
        [
            name,
            found[side]["wall_s"],
            found[side]["cpu_s"],
            found["calls"][side]["chat"],
            found["calls"][side]["passages"],
        ]
        for side, name in (
            ("stock", "each variant alone, stock papermill"),
            ("sweep", "one sweep"),
            ("work", "its stages called in one process"),
        )
    ]
    tell("factorial", found, ["", "seconds", "processor s", "replies", "passages reranked"], rows, given.page)


if __name__ == "__main__":
    main()
