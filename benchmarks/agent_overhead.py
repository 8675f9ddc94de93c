"""What the graph of an agent costs a call: seconds of a walk, less those of its model and searches, by visits.

`python benchmarks/agent_overhead.py [--walks 50]`; a supervisor that searches three times and answers, on the demo set,
with and without a memory of results. Goal: under 5 ms a call.
"""

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import rag_lab as rl
from rag_lab.memory.results import Memory
from rag_lab.testing import ScriptedChat

QUERIES = ["press", "oven temperature", "forklift"]


def script():
    """Return what replies to the roles of one walk, in turn."""
    decisions, queries = iter(["context", "generate", "finish"]), iter(QUERIES)

    def reply(request):
        keys = set((request.json_schema or {}).get("properties", {}))
        if keys == {"next"}:
            return json.dumps({"next": next(decisions, "finish")})
        if keys == {"query", "namespace"}:
            return json.dumps({"query": next(queries, ""), "namespace": "all"})
        return json.dumps({"answer": "It is 290 bar.", "citations": [1]})

    return reply


def main():
    """Print the mean of each kind."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--walks", type=int, default=50)
    walks = arguments.parse_args().walks
    chat = ScriptedChat(lambda request: "", context_tokens=8192)
    pipeline = rl.Pipeline("plant_docs").set("answer.name", "llm").set("answer.agent", "supervisor")
    pipeline = pipeline.replace(generation_model=chat)
    question = pipeline.dataset.questions[0]
    (found,) = pipeline.on(pipeline.index, pipeline.parts.embedder, pipeline.config).run([question])
    agent = next(stage for stage in pipeline.stages if stage.name == "agent")
    tool, spent = agent.tool, {"model": 0.0, "search": 0.0}

    def timed(what, call):
        def run(*given, **more):
            started = time.perf_counter()
            try:
                return call(*given, **more)
            finally:
                spent[what] += time.perf_counter() - started

        return run

    for kind in ("without memory", "with memory"):
        with tempfile.TemporaryDirectory() as folder:
            memory = Memory(Path(folder) / "stages.sqlite") if kind == "with memory" else None
            visits, total = 0, 0.0
            for number in range(walks):
                chat.script = script()
                asked = replace(question, question_id=f"q{number}", text=f"{question.text} ({number})")
                chat.generate, find = timed("model", type(chat).generate.__get__(chat)), tool.find
                object.__setattr__(tool, "find", timed("search", find))
                spent.update(model=0.0, search=0.0)
                started = time.perf_counter()
                (outcome,) = replace(agent, memory=memory).run([replace(found, question=asked)])
                walk_s = time.perf_counter() - started
                object.__delattr__(tool, "find")
                if number:  # the first loads
                    total += walk_s - spent["model"] - spent["search"]
                    visits += len(outcome.updates["visits"])
            print(f"{kind}: {1000 * total / visits:.2f} ms a call, {visits / (walks - 1):.1f} calls a walk")


if __name__ == "__main__":
    main()
