"""The hashes of what is installed belong to the versions that the tests pass with."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


def lines(name):
    return [line for line in (REPOSITORY / name).read_text().splitlines() if not line.startswith("#")]


def test_every_pin_has_the_hash_of_its_file_and_no_other_package_has_one():
    pins = {
        re.sub(r"[-_.]+", "-", name).lower(): version
        for name, version in (p.split("==") for p in lines("constraints.txt"))
    }
    hashed = [re.fullmatch(r"([a-z0-9-]+)==(\S+) --hash=sha256:[0-9a-f]{64}", line) for line in lines("hashes.txt")]
    assert {found[1]: found[2] for found in hashed} == pins
    assert len(hashed) == len(pins)
