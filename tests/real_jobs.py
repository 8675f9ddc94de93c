"""Notebooks as jobs for real kernels, and whether processes have ended."""

import time
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from rag_lab.experiment.executors.local import Job


def notebook_job(folder, name, body, declared='OUT: str = ""', parameters=None, **more):
    """Write a notebook with these parameters, of which OUT names a file, and return the job of it."""
    folder.mkdir(parents=True, exist_ok=True)
    book = new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        cells=[new_code_cell(declared, metadata={"tags": ["parameters"]}), new_code_cell(body)],
    )
    nbformat.write(book, folder / f"{name}_book.ipynb")
    given = {"OUT": str(folder / f"{name}.json")} | (parameters or {})
    return Job(name, folder / f"{name}_book.ipynb", folder / f"{name}.ipynb", given, folder / f"{name}.log", **more)


def wait_for(condition, seconds=120):
    """Wait until a condition holds."""
    for _ in range(seconds * 20):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def process_fields(pid):
    """What the system says of a process behind its name; [] where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def wait_for_end(pid):
    """Wait until a process has ended."""
    wait_for(lambda: (process_fields(pid) or "Z")[0] in "ZX")
