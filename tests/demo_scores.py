"""The demo's scores, question by question, as stored in golden/demo_scores.json; the seconds are left out.

`python tests/demo_scores.py RUN` names what differs in a run of the demo; `--approve` stores its scores instead.
"""

import json
import sys
from pathlib import Path

import pandas as pd

from rag_lab.runs.run_folder import RunFolder

FILE = Path(__file__).parent / "golden" / "demo_scores.json"
DIGITS, TOLERANCE = 6, 2e-6  # an embedding depends in its seventh digit on the texts that are embedded with it

Scores = dict[str, dict[str, dict[str, float | None]]]


def scores_of(run: Path) -> Scores:
    """Return the scores by metric, variant and question; None where there is none."""
    table = RunFolder.open(run).scores()
    table = table[table["metric"] != "cost.seconds"].sort_values(["metric", "variant_id", "question_id"])
    found: Scores = {}
    for row in table.itertuples():
        value = None if pd.isna(row.value) else round(float(row.value), DIGITS) + 0.0
        found.setdefault(row.metric, {}).setdefault(row.variant_id, {})[row.question_id] = value
    return found


def differences(run: Path) -> list[str]:
    """Return a line for each score of a run of the demo that is not the stored one."""
    stored, found = _flat(json.loads(FILE.read_text())), _flat(scores_of(run))
    names = sorted({*stored, *found})
    return [
        f"{' '.join(name)}: {stored.get(name, '-')} stored, {found.get(name, '-')} found"
        for name in names
        if not _same(stored.get(name, "-"), found.get(name, "-"))
    ]


def _same(one: float | str | None, other: float | str | None) -> bool:
    numbers = isinstance(one, float) and isinstance(other, float)
    return abs(one - other) <= TOLERANCE if numbers else one == other


def _flat(scores: Scores) -> dict[tuple[str, str, str], float | None]:
    return {(m, v, q): value for m, rows in scores.items() for v, row in rows.items() for q, value in row.items()}


if __name__ == "__main__":
    if "--approve" in sys.argv:
        lines = (f'"{metric}": {json.dumps(rows)}' for metric, rows in scores_of(Path(sys.argv[1])).items())
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    else:
        sys.exit("\n".join(differences(Path(sys.argv[1]))) or None)
