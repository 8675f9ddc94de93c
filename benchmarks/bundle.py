"""How large a bundle is, how long it takes to verify, and whether a number that was changed in it is found.

`python benchmarks/bundle.py [--variants 16] [--questions 1000] [--forged 100]` bundles a made-up run, verifies it, then
changes one number after another in bundles of a small run, digests and all, as a forger would. Goals: 5 MB, 15 s, all.
"""

import argparse
import hashlib
import json
import random
import sys
import tempfile
import time
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from rag_lab.experiment import bundle as bundles
from rag_lab.report.page.report_page import write_report


def small_run(folder):
    """Write a run of five questions under three variants, with traces, and return its folder."""
    from run_folder_fixture import build_run

    return build_run(folder, 5, 3).path


def report_size_run(folder, variants, questions):
    """Write the made-up run of `report_size.py` and return its folder."""
    from report_size import write

    write(folder, variants, questions)
    return folder


def bundled(folder):
    """Return the bundle of a run, with its report."""
    write_report(folder)
    return bundles.bundle(folder, folder.with_suffix(".ragrun.zip"))


def numbers_in(value, path=()):
    """Return the paths of the numbers in JSON values."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return [found for key, inner in pairs for found in numbers_in(inner, (*path, key))]
    return [path] if isinstance(value, int | float) and not isinstance(value, bool) else []


def forged(bundle, target, seed):
    """Write the bundle with one number changed by a thousandth, or by one, and return where it stands."""
    with zipfile.ZipFile(bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    numbers = json.loads(files[bundles.NUMBERS_FILE])
    place = random.Random(seed).choice(numbers_in(numbers))
    inner = numbers
    for key in place[:-1]:
        inner = inner[key]
    old = inner[place[-1]]
    inner[place[-1]] = old + 1 if isinstance(old, int) else old * 1.001 + 0.001
    files[bundles.NUMBERS_FILE] = json.dumps(numbers).encode()
    listed = json.loads(files[bundles.LIST_FILE])
    listed["files"] = {name: hashlib.sha256(files[name]).hexdigest() for name in listed["files"]}
    files[bundles.LIST_FILE] = json.dumps(listed).encode()
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return place


def main():
    """Print what was measured."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--variants", type=int, default=16)
    arguments.add_argument("--questions", type=int, default=1000)
    arguments.add_argument("--forged", type=int, default=100)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        small = bundled(small_run(Path(scratch) / "small"))
        missed = []
        for seed in range(given.forged):
            target = Path(scratch) / "forged.ragrun.zip"
            place = forged(small, target, seed)
            if bundles.verify(target).agrees:
                missed.append(place)
        print(f"{given.forged - len(missed)} of {given.forged} changed numbers are found {missed}", flush=True)
        large = bundled(report_size_run(Path(scratch) / "large", given.variants, given.questions))
        started = time.perf_counter()
        found = bundles.verify(large)
        verify_s = time.perf_counter() - started
        size_mb = large.stat().st_size / 1e6
        print(f"{given.variants} x {given.questions}: {size_mb:.1f} MB, verified in {verify_s:.1f} s: {found.agrees}")


if __name__ == "__main__":
    main()
