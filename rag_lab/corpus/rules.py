"""What stands beside a corpus about its files: attributes.yaml, whose they are, users.yaml, who asks, and removed.txt.

    - files: hr/**
      namespace: hr
      permissions: [hr, management]

attributes.yaml is a list of rules; `*` and `?` stand for characters of one name, `**` for any number of folders. Each
file follows the first rule that fits it; a file that none fits is in no namespace and may be seen by everybody. The
file stands beside the folder `corpus` of a dataset, or in a folder of documents that is no dataset. A fault in it, in
its name or its place is an error, never a warning: what was meant to be restricted must not become public.

Of one content under several labels the strictest holds, so that a link or a copy opens nothing. A link has the label
of its target as well as that of its path. Files with the same bytes, hard links among them, may be seen by those who
may see every one of them; but files of two namespaces do not know of each other, for what two tenants have belongs to
each of them. Permissions that exclude each other leave nobody but an unrestricted asker.

`removed.txt` names files that stay in the folder and out of the index, one path below the folder a line. `users.yaml`
has the permissions of the people who ask, as `anna: [hr, management]`.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from rag_lab._kit.config_file import read_yaml
from rag_lab._kit.digest import whole_file
from rag_lab._kit.section import complaint_and_value, key_of
from rag_lab.access import NOBODY
from rag_lab.errors import ConfigError, DatasetError, unknown_name

CORPUS_FOLDER = "corpus"
ATTRIBUTES_FILE, REMOVED_FILE = "attributes.yaml", "removed.txt"
_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|.", re.DOTALL)
_PATTERNS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True, slots=True)
class Attributes:
    """Of one file: its documents and chunks carry them."""

    namespace: str = ""
    permissions: tuple[str, ...] = ()


PUBLIC = Attributes()


def _filled(text: str) -> str:
    if not text.strip() or text != text.strip():
        raise ValueError("must be text without spaces around it, and not empty")
    return text


_Name = Annotated[str, AfterValidator(_filled)]


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    files: _Name
    namespace: _Name | None = None
    permissions: list[_Name] | None = None


def rules_folder(corpus_dir: Path) -> Path:
    """Return where attributes.yaml and removed.txt stand: beside the folder `corpus` of a dataset, else in it."""
    return corpus_dir.parent if corpus_dir.name == CORPUS_FOLDER else corpus_dir


def read_attributes(corpus_dir: Path, sources: Collection[str]) -> dict[str, Attributes]:
    """Return the attributes of those of `sources` (paths below the corpus folder) that a rule fits."""
    path = rules_folder(corpus_dir) / ATTRIBUTES_FILE
    names = (path.name, path.with_suffix(".yml").name)
    for wrong in {path.with_suffix(".yml"), *(corpus_dir / name for name in names)} - {path}:
        if wrong.exists():
            raise DatasetError(f"{wrong} is not where rules are read, which is {path}; move it there.")
    above = corpus_dir.resolve().parents if path.parent == corpus_dir and not path.exists() else ()
    for other in (folder / name for folder in above for name in names):
        if other.exists():
            raise DatasetError(
                f"{other} says whose documents are, also below {corpus_dir}, and would not be read; name that folder, "
                f"or give this one rules of its own in {path}."
            )
    if not path.exists() and not path.is_symlink():
        return {}
    rules = _rules(path)
    # File systems differ in how they store letters with marks.
    composed = partial(unicodedata.normalize, "NFC")
    parts = [[_PATTERNS.get(part, re.escape(part)) for part in _TOKEN.findall(composed(rule.files))] for rule in rules]
    patterns = [(re.compile("".join(of_rule), re.DOTALL), rule) for of_rule, rule in zip(parts, rules, strict=True)]
    fitting = {source: [rule for each, rule in patterns if each.fullmatch(composed(source))] for source in sources}
    decided = {source: found[0] for source, found in fitting.items() if found}
    for number, rule in enumerate(rules):
        if not any(rule is decider for decider in decided.values()):
            raise DatasetError(
                f"{path}: rule {number + 1} ({rule.files!r}) decides on no file of {corpus_dir}: it fits none, or none "
                "that a rule above it does not fit, too; mend or remove it."
            )
    labels = {id(one): Attributes(one.namespace or "", tuple(dict.fromkeys(one.permissions or ()))) for one in rules}
    return {source: labels[id(rule)] for source, rule in decided.items()}


def _rules(path: Path) -> list[_Rule]:
    try:
        rules = TypeAdapter(list[_Rule]).validate_python(read_yaml(path))
    except ConfigError as error:
        raise DatasetError(str(error)) from None
    except ValidationError as error:
        faults = []
        for detail in error.errors():
            where = [str(part + 1) if isinstance(part, int) else str(part) for part in detail["loc"]]
            place = f"rule {where[0]}" if where else "the file"
            if detail["type"] == "extra_forbidden":
                faults.append(f"{place}: {unknown_name('key', where[-1], _Rule.model_fields)}")
            else:
                key = f" {where[1]}" if len(where) > 1 else ""
                faults.append(f"{place}{key}: {complaint_and_value(detail)}")
        raise DatasetError(f"{path}: {'; '.join(faults)}") from None
    for number, rule in enumerate(rules, start=1):
        if rule.permissions == []:
            raise DatasetError(f"{path}: rule {number} has no permissions; leave the key out where everybody may see.")
        if rule.namespace is None and rule.permissions is None:
            raise DatasetError(f"{path}: rule {number} says nothing; give it a namespace, permissions or both.")
    return rules


def of_link(label: Attributes, target: Attributes) -> Attributes | None:
    """Return what holds for a link with a label and its target's; None where they are in two namespaces: for nobody."""
    if label.namespace and target.namespace and label.namespace != target.namespace:
        return None
    return Attributes(label.namespace or target.namespace, _both(label.permissions, target.permissions))


def of_copies(
    labels: Mapping[str, Attributes], digests: Mapping[str, str]
) -> tuple[dict[str, Attributes], list[tuple[str, str]]]:
    """Return the labels of files, stricter where others have the same content, and why: (source, reason)."""
    same: dict[str, list[str]] = defaultdict(list)
    for source, digest in digests.items():
        same[digest].append(source)
    strict, reasons = dict(labels), []
    for source, digest in digests.items():
        label = labels.get(source, PUBLIC)
        kept, stricter = label, ""  # what is left of the label, and the last file that took something of it away
        for name in same[digest]:
            other = labels.get(name, PUBLIC)
            if label.namespace and other.namespace and label.namespace != other.namespace:
                continue
            left = replace(kept, permissions=_both(kept.permissions, other.permissions))
            if left != kept:
                kept, stricter = left, name
        if stricter:
            strict[source] = kept
            reasons.append((source, stricter_reason(kept, f"it is the same as {stricter}, byte for byte")))
    return strict, reasons


def stricter_reason(label: Attributes, because: str) -> str:
    """Return the sentence on a file that is less open than its own label says."""
    whose = f" in the namespace {label.namespace}" if label.namespace else ""
    who = "nobody who is restricted" if label.permissions == NOBODY else ", ".join(label.permissions) or "everybody"
    return f"may be seen by {who}{whose}, because {because}: the strictest label holds. Remove it, or mend the rules."


def _both(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """Return permissions of which each satisfies both lists; an empty list asks for none."""
    if not some or not others:
        return some or others
    return tuple(name for name in some if name in others) or NOBODY


def read_removed(corpus_dir: Path) -> frozenset[str]:
    """Return the sources that `removed.txt` beside the corpus folder names, none where there is no such file."""
    path = rules_folder(corpus_dir) / REMOVED_FILE
    if not path.exists():
        return frozenset()
    try:
        lines = path.read_bytes().decode().split("\n")  # a name may hold any other kind of line end
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"Cannot read {path}: {error}; it names files of the corpus, one a line.") from None
    return frozenset(line.removesuffix("\r") for line in lines if line.strip())


@contextmanager
def removing(corpus_dir: Path, names: Collection[str], sources: Collection[str]) -> Iterator[None]:
    """Add `names` to `removed.txt` while the body indexes what is left; where it fails, the file is as it was."""
    path, removed = rules_folder(corpus_dir) / REMOVED_FILE, read_removed(corpus_dir)
    before = path.read_bytes() if path.exists() else None
    known = {*sources, *removed}
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "`rag-lab index DATASET --list` shows all."
            raise DatasetError(f"{name!r} is no file of {corpus_dir}; {hint}")
        if "\n" in name:
            raise DatasetError(f"{name!r} holds a line break, and {REMOVED_FILE} has a name a line; rename the file.")
    _write(path, "".join(f"{name}\n" for name in sorted({*removed, *names})).encode())
    try:
        yield
    except BaseException:
        if before is None:
            path.unlink()
        else:
            _write(path, before)
        raise


def _write(path: Path, content: bytes) -> None:
    try:
        with whole_file(path) as partial:
            partial.write_bytes(content)
    except OSError as error:
        raise DatasetError(f"Cannot write {path}: {error.strerror}; it says what is left out of the index.") from None


USERS_FILE = "users.yaml"


def read_users(corpus_dir: Path) -> dict[str, tuple[str, ...]]:
    """Return the permissions of each person; nobody where there is no file."""
    path = rules_folder(corpus_dir) / USERS_FILE
    if not path.exists():
        return {}
    try:
        people = TypeAdapter(dict[str, list[str]]).validate_python(read_yaml(path), strict=True)
    except ConfigError as error:
        raise DatasetError(str(error)) from None
    except ValidationError as error:
        detail = error.errors()[0]
        raise DatasetError(
            f"{path}: {key_of(detail)} {complaint_and_value(detail)}; write a name with its permissions: anna: [hr]"
        ) from None
    if blank := [name for name, permissions in people.items() if not all(map(str.strip, (name, *permissions)))]:
        raise DatasetError(f"{path}: {blank[0]!r} has an empty name or permission; fill it in.")
    return {name: tuple(permissions) for name, permissions in people.items()}


def permissions_of(corpus_dir: Path, person: str) -> tuple[str, ...]:
    """Return the permissions of a person; raise a `ConfigError` where users.yaml does not name one so called."""
    people = read_users(corpus_dir)
    if person not in people:
        where = rules_folder(corpus_dir) / USERS_FILE
        found = unknown_name("person", person, people) if people else f"There is no {where}"
        raise ConfigError(f"{found}; {where.name} names who may see what, as: {person}: [hr]")
    return people[person]
