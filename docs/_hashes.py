"""Print hashes.txt: the SHA-256 of each file that pip would install, of a report that `pip install --report` wrote."""

import json
import re
import sys
from pathlib import Path

HEAD = (
    "# The files of constraints.txt for Linux x86-64, CPython 3.11. `make hashes` writes it, `make verified` uses it."
)


def hashes(report: Path) -> list[str]:
    """Return a line a package, in the order of their names; torch is without the name of its build."""
    lines = []
    for file in json.loads(report.read_text(encoding="utf-8"))["install"]:
        name = re.sub(r"[-_.]+", "-", file["metadata"]["name"]).lower()
        version = file["metadata"]["version"].partition("+")[0]
        lines.append(f"{name}=={version} --hash=sha256:{file['download_info']['archive_info']['hashes']['sha256']}")
    return sorted(lines)


if __name__ == "__main__":
    print("\n".join([HEAD, *hashes(Path(sys.argv[1]))]))
