"""A real PostgreSQL server in a folder of its own, where this machine has one."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
_FOUND = shutil.which("pg_ctl") or next((str(place / "pg_ctl") for place in _PLACES if (place / "pg_ctl").exists()), "")
_IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
CAN_RUN = bool(_FOUND) and (not _IS_ROOT or shutil.which("runuser") is not None)

needs_postgres = pytest.mark.skipif(not CAN_RUN, reason="there is no PostgreSQL server on this machine")


class Server:
    """A cluster; `address(name)` makes an empty database."""

    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._run("initdb", "-D", str(folder / "data"), "-U", "tester", "--auth=trust", "--no-sync")
        self.start()

    def start(self):
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        self._run(
            "pg_ctl", "-D", str(self.folder / "data"), "-w", "-l", str(self.folder / "log"), "-o", options, "start"
        )

    def stop(self):
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")

    def address(self):
        name = f"store_{time.time_ns()}"
        with psycopg.connect(f"postgresql://tester@127.0.0.1:{self.port}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://tester@127.0.0.1:{self.port}/{name}"

    def _run(self, program, *arguments):
        command = [str(Path(_FOUND).with_name(program)), *arguments]
        command = ["runuser", "-u", "postgres", "--", *command] if _IS_ROOT else command
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)


@contextmanager
def postgres_server():
    folder = Path(tempfile.mkdtemp(prefix="postgres_"))
    if _IS_ROOT:
        shutil.chown(folder, "postgres", "postgres")
    server = Server(folder)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
