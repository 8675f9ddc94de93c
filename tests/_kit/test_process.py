import os
import subprocess
import sys
import threading
from pathlib import Path

import nbclient
import nbformat
import pytest

from rag_lab._kit import process
from rag_lab._kit.process import Process, in_kernel


def test_what_starts_kernels_is_none():
    loaded = "import rag_lab.experiment.kernels.notebook_process, ipykernel.kernelapp"
    code = f"{loaded}; from rag_lab._kit.process import in_kernel; print(in_kernel())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
    assert not in_kernel()


@pytest.mark.slow
def test_a_kernel_is_one():
    cell = nbformat.v4.new_code_cell("from rag_lab._kit.process import in_kernel; in_kernel()")
    book = nbformat.v4.new_notebook(cells=[cell])
    nbclient.execute(book)
    assert book.cells[0].outputs[0].data["text/plain"] == "True"


FIRST_THREAD_ENDS = """
import ctypes, threading
threading.Thread(target=input).start()
print(flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_runs_until_its_last_thread_has_ended():
    begun = subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    begun.stdout.readline()
    one = Process(*Process.this()[:2], begun.pid, process._began(begun.pid))
    state = Path(f"/proc/{begun.pid}/stat")
    while state.read_text().rpartition(")")[2].split()[0] != "Z":
        threading.Event().wait(0.01)
    assert one.runs() is True  # its files and sockets are still open
    begun.kill()
    while one.runs():  # until it ends, which nobody has to notice
        threading.Event().wait(0.01)
    begun.communicate()


def test_a_process_that_vanishes_between_two_looks_has_ended(monkeypatch):
    begun = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    one = Process.of(begun.pid)
    begun.stdin.close()
    while process._told(Path(f"/proc/{begun.pid}/stat"))[0] != "Z":
        threading.Event().wait(0.01)

    def after_it_has_gone(look):
        return lambda path: (begun.wait(), look(path))[1]

    monkeypatch.setattr(os, "scandir", after_it_has_gone(os.scandir))
    monkeypatch.setattr(os, "listdir", after_it_has_gone(os.listdir))
    assert one.runs() is False
