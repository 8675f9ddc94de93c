"""Every test has a home of its own, no network beyond loopback, and no hub."""

import gc
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings
from pytest_socket import enable_socket, socket_allow_hosts

sys.path.insert(0, str(Path(__file__).parent))

# Hundreds of processes import the package: each would compile it anew where no bytecode is kept.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# ranx, against which formulas are held, would compile for a minute what it computes in a moment.
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
if "PYTEST_XDIST_WORKER" in os.environ:  # a test a core: more threads than cores wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# As the command has it: a worker holds gigabytes of libraries, models and runs, which Python's 700 would search often.
gc.set_threshold(50_000, 20, 20)

settings.register_profile("no_deadline", deadline=None)  # a busy machine is no failure
settings.load_profile("no_deadline")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell's background job has it, and so would our children
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Browsers, JupyterLab, kernels of notebooks, Ray and the pages: what takes half of the time and breaks the least often.
NIGHTLY = ("docs/", "notebooks/", "browser", "in_jupyterlab", "test_first_screen", "test_live_report",
           "test_launchers", "test_worker")  # fmt: skip


def pytest_collection_modifyitems(items):
    for item in items:
        path = item.path.relative_to(Path(__file__).parent).as_posix()
        if item.get_closest_marker("slow") and any(one in path for one in NIGHTLY):
            item.add_marker("nightly")


def pytest_addoption(parser):
    parser.addoption("--approve", action="store_true", help="rewrite the stored texts of tests/golden")


@pytest.fixture(scope="session")
def converted(tmp_path_factory):
    """GGUF files that a test has converted, which takes seconds each time: the homes of later tests hold them, too."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "converted"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory, monkeypatch, converted):
    home = tmp_path_factory.mktemp("home")
    (home / "weights").mkdir()
    for known in converted.iterdir():
        (home / "weights" / known.name).symlink_to(known)
    monkeypatch.setenv("RAG_LAB_HOME", str(home))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    enable_socket()
    socket_allow_hosts(["127.0.0.1", "localhost", "::1"], allow_unix_socket=True)
    yield
    for made in (home / "weights").glob("*.gguf"):
        if not made.is_symlink() and made.stat().st_size > 100_000_000:
            with suppress(FileExistsError):  # the other worker was first
                os.link(made, converted / made.name)
