"""What several processes want at the same time is computed once, whatever it is."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag_lab.evaluation.judge_queue import JudgeQueue, JudgeReplies
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.remembered_vectors import RememberedScorer
from rag_lab.testing import OverlapScorer, ScriptedChat

PAIRS = [("the oven", "the oven trips"), ("the press", "an oven")]
REQUEST = ChatRequest((Message("user", "Is it so?"),), max_tokens=8)
OTHER = """
import sys
from pathlib import Path
from test_sharing import PAIRS, REQUEST, judged, scored
from rag_lab.memory.results import Memory

def hold():
    print("computing", flush=True)
    input()

memory = Memory(Path(sys.argv[2]))
print({"scores": lambda: scored(memory, hold), "judge": lambda: judged(memory, hold)}[sys.argv[1]](), flush=True)
"""


class Held(OverlapScorer):
    def __init__(self, on_call):
        super().__init__()
        self.on_call = on_call

    def score(self, pairs):
        self.on_call()
        return super().score(pairs)


def scored(memory, on_call):
    return RememberedScorer(Held(on_call), memory).score(PAIRS)


def judged(memory, on_call):
    judge = ScriptedChat(lambda request: on_call() or "yes")
    return asyncio.run(JudgeQueue(judge, JudgeReplies(judge, memory)).ask(REQUEST)).text


@pytest.mark.parametrize(("what", "run"), [("scores", scored), ("judge", judged)])
def test_what_another_process_is_computing_is_waited_for_and_not_computed_again(tmp_path, monkeypatch, what, run):
    path, asked = tmp_path / "memory.sqlite", []
    command = [sys.executable, "-c", OTHER, what, str(path)]
    with subprocess.Popen(
        command, cwd=Path(__file__).parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "computing\n"

        def let_the_other_go_on(_):
            if not other.stdin.closed:
                other.communicate("\n")

        monkeypatch.setattr(time, "sleep", let_the_other_go_on)
        result = run(Memory(path), lambda: asked.append(1))
        let_the_other_go_on(0)
    assert asked == []
    assert result == run(Memory(tmp_path / "empty.sqlite"), lambda: None)
