"""A run that somebody made up: nothing tells from its numbers, so all that it must not do is more than show them."""

import json
import os
import pickle
import sqlite3
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic_run import GRID, MAIN, factorial, write_run

from rag_lab.comparison.comparison import read_comparison
from rag_lab.errors import RagLabError
from rag_lab.experiment.bundle import export_run
from rag_lab.experiment.sweep_status import sweep_status
from rag_lab.memory.ledger import Ledger
from rag_lab.report.page.report_page import to_html
from rag_lab.runs.run_folder import LEDGER_FILE, MANIFEST_FILE, PLAN_FILE, RECORD_FILE, SCORES_FILE, RunFolder

CONFIG = """
corpus: {splitter: "evil:function", readers: {".txt": "evil:function"}}
rerank: {name: "evil:Evil"}
models: {generation: "langchain:evil:function"}
"""
COMMANDS = """
import sys
from rag_lab.cli import main
for arguments in (["report", "run"], ["compare", "run"], ["status", "run"], ["export", "run", "trec"]):
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit as end:
        assert not end.code, arguments
"""


class Unpickled:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.fixture
def run(tmp_path):
    """A consistent run whose parts name code to run, wherever parts can."""
    run = write_run(tmp_path / "run", GRID, {MAIN: factorial(20)})
    for name in GRID:
        (run.variant_dir(name) / "config.yaml").write_text(CONFIG)
        (run.variant_dir(name) / RECORD_FILE).write_text(json.dumps({"results": {}, "failed_stages": {"hyde": 0}}))
    manifest = {"variants": {name: {"status": "ok", "reason": "", "seconds": 1.0} for name in GRID}}
    (run.path / MANIFEST_FILE).write_text(json.dumps(manifest))
    table = pq.read_table(run.path / SCORES_FILE)
    named = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Unpickled(str(tmp_path / "ran"))),
    }
    fields = [field.with_metadata(named if field.name == "value" else None) for field in table.schema]
    pq.write_table(pa.Table.from_arrays(table.columns, schema=pa.schema(fields)), run.path / SCORES_FILE)
    for folder in (run.path, tmp_path):
        code = f"import os; os.makedirs({str(tmp_path / 'ran')!r}, exist_ok=True)\n"
        (folder / "evil.py").write_text(f"{code}def function(*given): ...\nclass Evil: ...\n")
    return run.path


@pytest.mark.slow
def test_no_code_of_a_forged_run_is_run_and_nothing_outside_of_it_is_written(run, tmp_path):
    before = {path for path in tmp_path.rglob("*") if run not in path.parents}
    subprocess.run([sys.executable, "-c", COMMANDS], cwd=tmp_path, check=True, capture_output=True, timeout=300)
    after = {path for path in tmp_path.rglob("*") if run not in path.parents and "trec" not in str(path)}
    assert after == before and (tmp_path / "trec").is_dir()


def test_a_ledger_that_never_ends_is_refused(run):
    Ledger(run / LEDGER_FILE).start(None, None, None)
    with sqlite3.connect(run / LEDGER_FILE) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(calls)")]
        database.execute("DROP TABLE calls")
        endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
        database.execute(
            f"CREATE VIEW calls AS {endless} SELECT {', '.join(f'x AS {name}' for name in columns)} FROM c"
        )
    with pytest.raises(RagLabError, match="it would run statements that the workbench never wrote"):
        sweep_status(run)


def test_a_run_of_so_many_repeats_that_an_export_fills_the_disk_is_refused(run):
    plan = json.loads((run / PLAN_FILE).read_text()) | {"repeats": 10**9, "questions": []}
    (run / PLAN_FILE).write_text(json.dumps(plan))
    with pytest.raises(RagLabError, match=r"asks each question 1000000000 times, of at most 100"):
        RunFolder.open(run)


def places(value, at=()):
    """The paths of all values in a JSON value; of long lists the first alone."""
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*at, key))


def put(value, at, wrong):
    """The JSON value with another one at this path."""
    if not at:
        return wrong
    other = dict(value) if isinstance(value, dict) else list(value)
    other[at[0]] = put(value[at[0]], at[1:], wrong)
    return other


@pytest.mark.slow
@pytest.mark.parametrize("name", [PLAN_FILE, MANIFEST_FILE, f"variants/always-none/{RECORD_FILE}"])
def test_a_value_of_another_kind_is_a_sentence_wherever_it_stands(run, tmp_path, name):
    path = run / name
    known = json.loads(path.read_text())
    n_refused = 0
    for number, at in enumerate(places(known)):
        for wrong in (None, [], {"a": []}, "x", float("nan"), 10**30):
            path.write_text(json.dumps(put(known, at, wrong)))
            try:
                sweep_status(run)
                export_run(RunFolder.open(run), tmp_path / f"trec{number}{str(wrong)[:2]}")
                if number % 7 == 0:
                    to_html(read_comparison(run))
            except RagLabError as error:
                assert "\n" not in str(error)
                n_refused += 1
    assert n_refused
