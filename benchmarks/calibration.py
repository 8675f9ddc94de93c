"""Check the workbench's own claims on data whose truth is known: findings, power, seeds, margins, plans, intervals.

Usage: python benchmarks/calibration.py [--sweeps 1000] [--seed 0] [--only SECTION ...] [--page FILE].
Prints one JSON object: what is claimed, and what was found at worst. Writes all tables as a page, where one is given.
Two processes, a quarter of an hour.
"""

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when numpy is imported; the processes share two cores

from simulation.sections import SECTIONS, Runs
from simulation.tables import Row, markdown


def page(claims: list[Row], sections: list[str]) -> str:
    """Return the tables as `benchmarks/tables/calibration.md`."""
    return f"""# Calibration

How far the conclusions hold on data whose truth is known. Made by `python benchmarks/calibration.py --page
benchmarks/tables/calibration.md`; [conclusions.md](../../docs/conclusions.md) defines the methods,
`benchmarks/simulation/` holds the simulations. Another seed of a simulation with 1,000 sweeps moves a share of 0.05
by about 0.007.

## What is claimed

Each claim with the worst of all its cells. The tables below have every cell.

{markdown(claims)}

{chr(10).join(sections)}"""


def main() -> None:
    names = {section.__name__: section for section in SECTIONS}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=1000, help="of each cell")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=names, default=list(names), help="sections")
    parser.add_argument("--page", type=Path, help="a Markdown file to write")
    given = parser.parse_args()
    claims, sections, seconds = [], [], {}
    with ProcessPoolExecutor(2) as pool:
        for name in given.only:
            started = time.perf_counter()
            found, text = names[name](Runs(pool, given.sweeps, given.seed))
            claims, sections = [*claims, *found], [*sections, text]
            seconds[name] = round(time.perf_counter() - started, 1)
    print(json.dumps({"sweeps": given.sweeps, "claims": claims, "seconds": seconds}, indent=2))
    if given.page:
        given.page.write_text(page(claims, sections), encoding="utf-8")


if __name__ == "__main__":
    main()
