"""A table of a page in docs/ that a benchmark writes anew, between two comments that name it."""

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

Cell = str | int | float


def table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Return a Markdown table whose first column is words and whose others are figures."""
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(_told, line)) + " |" for line in lines)


def _told(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.2f}" if abs(cell) < 10 else f"{cell:,.1f}"


def argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--page", type=Path, help="the page whose table is written anew, benchmarks/tables/benchmarks.md"
    )


def tell(
    name: str, found: dict[str, Any], header: Sequence[str], rows: Sequence[Sequence[Cell]], page: Path | None
) -> None:
    """Print what was found as JSON, and write its table into the page, if any, with day and load of the machine."""
    load = os.getloadavg()[1]
    print(json.dumps({"benchmark": name, "cores": os.cpu_count(), "load_5_min": round(load, 1), **found}, indent=1))
    if page is None:
        return
    text = page.read_text(encoding="utf-8")
    made = f"{table(header, rows)}\n\n*{date.today():%d %B %Y}, {os.cpu_count()} cores, load {load:.1f} at the end.*"
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not pattern.search(text):
        sys.exit(f"{page} has no place for the table: a line <!-- {name} --> and a line <!-- /{name} -->.")
    page.write_text(pattern.sub(lambda place: f"{place[1]}\n{made}\n\n{place[2]}", text), encoding="utf-8")
