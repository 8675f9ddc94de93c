"""What each technique does to all questions of the demo, as a table in its notebook, which asks a dozen of them live.

    python benchmarks/techniques.py [NAME ...]

The notebook's own cells are run up to its first comparison, with every question in place of the sample, and the cell
behind that comparison, which begins with `**On all`, is written anew. What was computed before is remembered.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from rag_lab._kit.wording import interval, plain, signed, signed_interval
from rag_lab.comparison.findings.verdict_sentences import module_rows
from rag_lab.data.dataset import Dataset
from rag_lab.report.shown_comparison import ShownComparison

FOLDER = Path(__file__).parents[1] / "notebooks/techniques"
NAMES = ("rewriting", "hyde", "citations")  # those that ask a sample, as a model takes its time
COMPARED, BEGIN = "comparison", "**On all"


def main() -> None:
    """Write the table of each notebook that is named, of all where none is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    for name in parser.parse_args().names or NAMES:
        path = FOLDER / f"{name}.ipynb"
        book = json.loads(path.read_text(encoding="utf-8"))
        place, found = compared_on_all(book["cells"])
        write_table(book["cells"], place, table(found))
        path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def compared_on_all(cells: list[dict[str, Any]]) -> tuple[int, ShownComparison]:
    """Run the cells up to the first that ends with a comparison of several; return its place, and what it found."""
    made: dict[str, Any] = {}
    for place, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        exec(source, made)  # our own notebook
        if "parameters" in cell["metadata"].get("tags", ()):
            made["QUESTIONS"] = len(Dataset.load(made["DATASET"]).questions)
        if source.splitlines()[-1] == COMPARED and len(made[COMPARED].variants) > 1:
            return place, made[COMPARED]
    raise SystemExit("no cell ends with a comparison")


def table(found: ShownComparison) -> str:
    """Return the comparison as Markdown: the baseline, and what each other variant changes."""
    metric, baseline = found.main_metric, found.run.baseline
    cell = found.cell(baseline, metric)
    if cell is None:
        raise SystemExit(f"the baseline has no {metric}")
    mean = f"{plain(cell['mean'])} [{interval(cell['low'], cell['high'])}]"
    rows = [(found.name(baseline), mean, "")]
    for row in module_rows(found):
        effect = "–" if row.effect is None else f"{signed(row.effect)} [{signed_interval(row.low, row.high)}]"
        rows.append((found.name(row.variant_id), effect, row.word))
    lines = [
        f"{BEGIN} questions** of the demo, of which {cell['scored']} have a score (`python benchmarks/techniques.py`): "
        "differences from A, with 95% intervals.",
        "",
        f"| variant | {metric} | verdict |",
        "|---|---|---|",
        *(f"| {' | '.join(cells)} |" for cells in rows),
    ]
    return "\n".join(lines)


def write_table(cells: list[dict[str, Any]], place: int, text: str) -> None:
    """Put the text into the cell behind the comparison, which is made where it is missing."""
    after = cells[place + 1]
    if not "".join(after["source"]).startswith(BEGIN):
        after = {"cell_type": "markdown", "id": "", "metadata": {}, "source": []}
        cells.insert(place + 1, after)
    after["source"] = text.splitlines(keepends=True)
    for number, cell in enumerate(cells):  # as nbstripout has them
        cell["id"] = str(number)


if __name__ == "__main__":
    main()
