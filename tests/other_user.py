"""Another user of this machine, whom only root can play."""

import os
import sys

import pytest

NOBODY = 65_534
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can act as another user of this machine"
)


def give_away(*paths):
    """Let the other user own these paths; a link itself, not what it leads to."""
    for path in paths:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def as_nobody(act):
    """Call `act` in a process of the other user and return what it printed, and the exception that ended it."""
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            os.close(read)
            os.dup2(write, 1)
            sys.stdout = os.fdopen(1, "w", closefd=False)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            act()
        except BaseException as error:
            print(type(error).__name__, error)
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        told = said.read()
    os.waitpid(pid, 0)
    return told
