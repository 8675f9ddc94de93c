"""attributes.yaml: whose documents the files of a corpus are, and who may see them.

    - files: hr/**
      namespace: hr
      permissions: [hr, management]

A list of rules; `*` and `?` stand for characters of one name, `**` for any number of folders. Each file follows the
first rule that fits it; a file that none fits is in no namespace and may be seen by everybody. The file stands beside
the folder `corpus` of a dataset, or in a folder of documents that is no dataset. A fault in it, in its name or its
place is an error, never a warning: what was meant to be restricted must not become public.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from rag_lab._kit.complaints import complaint_and_value
from rag_lab._kit.yaml_file import read_yaml
from rag_lab.corpus.files.walk import rules_folder
from rag_lab.errors import ConfigError, DatasetError, unknown_name

ATTRIBUTES_FILE = "attributes.yaml"
_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|.", re.DOTALL)
_PATTERNS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True, slots=True)
class Attributes:
    """Of one file: its documents and chunks carry them."""

    namespace: str = ""
    permissions: tuple[str, ...] = ()


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


def read_attributes(corpus_dir: Path, sources: Collection[str]) -> dict[str, Attributes]:
    """Return the attributes of those of `sources` (paths below the corpus folder) that a rule fits.

    Raises:
        DatasetError: if the file cannot be read, has another name or place, is no list of rules, or has a rule that
            decides on no file or says nothing.
    """
    path = rules_folder(corpus_dir) / ATTRIBUTES_FILE
    _refuse_misplaced(path, corpus_dir)
    if not path.exists() and not path.is_symlink():
        return {}
    rules = _rules(path)
    decided = _decided(rules, sources)
    for number, rule in enumerate(rules):
        if not any(rule is decider for decider in decided.values()):
            raise DatasetError(
                f"{path}: rule {number + 1} ({rule.files!r}) decides on no file of {corpus_dir}: it fits none, or none "
                "that a rule above it does not fit, too; mend or remove it."
            )
    return {
        source: Attributes(rule.namespace or "", tuple(dict.fromkeys(rule.permissions or ())))
        for source, rule in decided.items()
    }


def _refuse_misplaced(path: Path, corpus_dir: Path) -> None:
    names = (path.name, path.with_suffix(".yml").name)
    for wrong in {path.with_suffix(".yml"), *(corpus_dir / name for name in names)} - {path}:
        if wrong.exists():
            raise DatasetError(f"{wrong} is not where rules are read, which is {path}; move it there.")
    above = corpus_dir.resolve().parents if path.parent == corpus_dir and not path.exists() else ()
    for rules in (folder / name for folder in above for name in names):
        if rules.exists():
            raise DatasetError(
                f"{rules} says whose documents are, also below {corpus_dir}, and would not be read; name that folder, "
                f"or give this one rules of its own in {path}."
            )


def _decided(rules: Sequence[_Rule], sources: Collection[str]) -> dict[str, _Rule]:
    """Return the rule that each file follows: the first that fits it."""
    patterns = [(_pattern(rule.files), rule) for rule in rules]
    first = {
        source: next((rule for pattern, rule in patterns if pattern.fullmatch(_composed(source))), None)
        for source in sources
    }
    return {source: rule for source, rule in first.items() if rule}


def _rules(path: Path) -> list[_Rule]:
    try:
        rules = TypeAdapter(list[_Rule]).validate_python(read_yaml(path))
    except ConfigError as error:
        raise DatasetError(str(error)) from None
    except ValidationError as error:
        raise DatasetError(f"{path}: {'; '.join(_sentence(detail) for detail in error.errors())}") from None
    for number, rule in enumerate(rules, start=1):
        if rule.permissions == []:
            raise DatasetError(f"{path}: rule {number} has no permissions; leave the key out where everybody may see.")
        if rule.namespace is None and rule.permissions is None:
            raise DatasetError(f"{path}: rule {number} says nothing; give it a namespace, permissions or both.")
    return rules


def _sentence(detail: Mapping[str, object]) -> str:
    where = [str(part + 1) if isinstance(part, int) else str(part) for part in detail["loc"]]  # type: ignore[attr-defined]
    place = f"rule {where[0]}" if where else "the file"
    if detail["type"] == "extra_forbidden":
        return f"{place}: {unknown_name('key', where[-1], _Rule.model_fields)}"
    key = f" {where[1]}" if len(where) > 1 else ""
    return f"{place}{key}: {complaint_and_value(detail)}"


def _pattern(glob: str) -> re.Pattern[str]:
    parts = _TOKEN.findall(_composed(glob))
    return re.compile("".join(_PATTERNS.get(part, re.escape(part)) for part in parts), re.DOTALL)


def _composed(text: str) -> str:
    """Return a name in one spelling: file systems differ in how they store letters with marks."""
    return unicodedata.normalize("NFC", text)
