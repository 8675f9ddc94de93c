"""Files that read the same, be their bytes the same or not: a copy with other line ends, a PDF saved again."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from hashlib import blake2b

Page = tuple[str, int | None, str]  # file, page and text, as the corpus has them


def files_of_the_same_text(pages: Iterable[Page]) -> dict[str, tuple[str, ...]]:
    """Return, of each file that shares all of its text, page by page, with others, these and itself, sorted.

    The texts are compared as they were read: Unicode and white space are normalized, letters are not.
    """
    digests: dict[str, blake2b] = {}
    for source, page, text in pages:
        digest = digests.setdefault(source, blake2b(digest_size=16))
        digest.update(f"{page}\0{len(text)}\0{text}".encode(errors="surrogatepass"))
    files: dict[bytes, list[str]] = {}
    for source, digest in digests.items():
        files.setdefault(digest.digest(), []).append(source)
    groups = (tuple(sorted(names)) for names in files.values() if len(names) > 1)
    return {name: names for names in groups for name in names}


def repeats(pages: Iterable[Page], labels: Mapping[str, Hashable]) -> dict[str, str]:
    """Return each file that reads as one before it by name, and the first such; files of other labels count for none.

    Args:
        pages: of all files.
        labels: who may see a file, of those that not everybody may: a file stands in nobody's place who may not see it.
    """
    groups = files_of_the_same_text(pages)
    first = {
        name: min(other for other in same if labels.get(other) == labels.get(name)) for name, same in groups.items()
    }
    return {name: original for name, original in first.items() if original != name}
