"""Names for questions that stand in addresses and in file systems, whatever their ids are."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

_LONGEST = 80  # characters of an id that are kept: with what is added a file name that every file system takes
_DIGEST = re.compile(r"-[0-9a-f]{8}$")


def anchors(question_ids: Iterable[str]) -> dict[str, str]:
    """Return `q-` and the id for each of `question_ids`, of the letters, digits and marks that are safe anywhere.

    An id that had to be changed, or that another one equals but for upper and lower case, ends in a digest of it, so
    that no two are alike, also where file names ignore case.
    """
    ids = list(dict.fromkeys(question_ids))
    safe = {one: re.sub(r"[^A-Za-z0-9._-]+", "-", one)[:_LONGEST] for one in ids}
    alike = Counter(name.lower() for name in safe.values())
    kept = {one for one, name in safe.items() if one == name and alike[name.lower()] == 1 and not _DIGEST.search(name)}
    return {one: f"q-{name}" if one in kept else f"q-{name}-{_digest(one)}" for one, name in safe.items()}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]
