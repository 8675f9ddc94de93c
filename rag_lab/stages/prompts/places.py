"""The places of the pipeline where a custom prompt can stand: what each fills in, and the file that is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rag_lab._kit.module_files import modules_folder
from rag_lab.errors import ConfigError
from rag_lab.records import Passage, Turn
from rag_lab.stages.prompts.chat_template import ChatTemplate

BUILT_IN = "builtin"
SUFFIX = ".j2"
MAX_BYTES = 100_000

_SHIPPED = Path(__file__).with_name(
    "shipped"
)  # what systems of the presets ask; a file beside the experiment goes first

_TURNS = (Turn("user", "At which pressure does P-1 run?"), Turn("assistant", "At 40 bar."))
_PASSAGE = Passage(1, "press.md#1", "press.md", None, 0, 11, "P-2: 60 bar")


@dataclass(frozen=True)
class PromptPlace:
    """Where a prompt stands: an example of every variable that is filled in, and those of which it must use one."""

    name: str
    example: Mapping[str, Any]
    needed: tuple[str, ...]

    def problem(self, file: str) -> str:
        """Return why `file` cannot be used here, in one sentence, or ''."""
        try:
            self.read(file)
        except ConfigError as error:
            return str(error)
        return ""

    def read(self, file: str) -> ChatTemplate | None:
        """Return the prompt in a file beside the experiment, or one that is shipped; None for the one that is built in.

        Raises:
            ConfigError: if there is no such file, it is no template, or it asks by variables that there are not.
        """
        if file == BUILT_IN:
            return None
        template = ChatTemplate(f"The prompt {file}", _text(file))
        template.check(self.example, self.needed)
        nothing = {name: value[:0] if isinstance(value, tuple) else value for name, value in self.example.items()}
        for values in (self.example, nothing):  # a question may have no earlier turn and find no passage
            template.messages(values)
        return template


# By key of the section `prompts`.
PLACES = {
    place.name: place
    for place in (
        PromptPlace(
            "understanding", {"question": "And P-2?", "history": _TURNS, "summary": "", "classes": ("fuzzy",)},
            ("question",),
        ),
        PromptPlace("phrasings", {"question": "At which pressure does P-2 run?", "n": 2}, ("question",)),
        PromptPlace("hyde", {"question": "At which pressure does P-2 run?", "query_class": "specific"}, ("question",)),
        PromptPlace("summary", {"summary": "", "turns": _TURNS}, ("turns",)),
        PromptPlace(
            "answer",
            {
                "question": "And P-2?", "history": _TURNS, "summary": "", "passages": (_PASSAGE,),
                "context": "[1] (press.md)\nP-2: 60 bar", "not_found": "The documents do not say.",
            },
            ("question",),
        ),
    )
}  # fmt: skip


def prompt_name(text: str) -> str:
    """Return `text` if it can name a prompt; nothing is read."""
    path = PurePosixPath(text)
    if text != BUILT_IN and (path.suffix != SUFFIX or path.is_absolute() or ".." in path.parts or "\\" in text):
        raise ValueError(f"must be {BUILT_IN} or a {SUFFIX} file beside the experiment, by its path from there")
    return text


def _text(file: str) -> str:
    path = Path(modules_folder(), *PurePosixPath(file).parts)
    if not path.exists() and (shipped := _SHIPPED / file).is_file():
        path = shipped
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"Cannot read the prompt {path} ({error.strerror}); put the file there, or set builtin."
        ) from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"The prompt {file} has {len(data):,} bytes, and at most {MAX_BYTES:,} are read; shorten it.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"The prompt {file} is not UTF-8; save it as that.") from None
