"""dataset.yaml: what a dataset is called and how it is to be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_lab._kit.yaml_file import read_mapping
from rag_lab.data.validation import describe_one
from rag_lab.errors import ConfigError, DatasetError, unknown_name

METADATA_FILE = "dataset.yaml"


class Metadata(BaseModel):
    """The content of dataset.yaml. Unknown keys are refused: a misspelt page_base would shift every page."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    description: str = ""
    licence: str = ""
    language: str = ""  # a name or code: English, en; decides on the analyzer `auto`
    page_base: Literal[0, 1] = 1  # the number of the first page, as questions.jsonl counts

    @classmethod
    def load(cls, folder: Path) -> Metadata:
        """Read the metadata of the dataset in `folder`; its name is the folder's where none is given, or no file.

        Raises:
            DatasetError: naming every unknown key and impossible value at once.
        """
        path = folder / METADATA_FILE
        given = {"name": folder.resolve().name or "documents"}
        try:
            return cls.model_validate({**given, **(read_mapping(path) if path.exists() else {})})
        except ConfigError as error:
            raise DatasetError(str(error)) from None
        except ValidationError as error:
            reasons = "; ".join(_sentence(detail) for detail in error.errors())
            raise DatasetError(f"{path}: {reasons}") from None

    def save(self, folder: Path) -> None:
        """Write the file that `load` reads."""
        text = yaml.safe_dump(self.model_dump(), sort_keys=False, allow_unicode=True)
        (folder / METADATA_FILE).write_text(text, encoding="utf-8")


def _sentence(detail: Any) -> str:
    if detail["type"] == "extra_forbidden":
        return unknown_name("key", str(detail["loc"][0]), Metadata.model_fields)
    return f"{describe_one(detail)}, got {detail['input']!r}"
