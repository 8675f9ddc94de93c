"""How long the package and the command line take to start, beside a bare interpreter; prints JSON.

Targets: `import rag_lab` under 0.3 s beyond the interpreter, `rag-lab --help` under 1 s.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 7
COMMANDS = {
    "interpreter_s": [sys.executable, "-c", "pass"],
    "import_s": [sys.executable, "-c", "import rag_lab"],
    "help_s": [str(Path(sys.executable).with_name("rag-lab")), "--help"],
}


def seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    # In turn, so that a slow moment of the machine meets all of them.
    rounds = [{name: seconds(command) for name, command in COMMANDS.items()} for _ in range(RUNS)]
    median = {name: round(statistics.median(run[name] for run in rounds), 3) for name in COMMANDS}
    median["import_beyond_interpreter_s"] = round(median["import_s"] - median["interpreter_s"], 3)
    print(json.dumps({"benchmark": "startup", "runs": RUNS, **median}))


if __name__ == "__main__":
    main()
