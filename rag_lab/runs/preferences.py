"""What a person preferred, as a file of the run folder that only grows: a line a choice, a line where one is undone."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from rag_lab._kit.config_file import adapter_of
from rag_lab.runs.run_folder import strict_json

PREFERENCES_FILE = "preferences.jsonl"
Choice = Literal["left", "right", "same", "skip", "undo"]
CHOICES: tuple[Choice, ...] = get_args(Choice)


@dataclass(frozen=True, slots=True)
class Preference:
    """One choice between what two variants did with a question."""

    question_id: str
    left: str  # the variant that was shown on the left
    right: str
    choice: Choice
    shown: str  # digest of what both sides showed; a choice between other texts is no choice between these
    made: str = ""  # when, in ISO 8601

    @property
    def preferred(self) -> str | None:
        """The variant that was preferred; None where none was."""
        return {"left": self.left, "right": self.right}.get(self.choice)

    @property
    def about(self) -> tuple[str, frozenset[str]]:
        """The question and the pair of variants."""
        return self.question_id, frozenset((self.left, self.right))


def read_preferences(run: Path) -> list[Preference]:
    """Return the choices that stand in a run folder, in order; of several on one question and pair the last.

    What was undone, and a line that a crash has cut, is left out.
    """
    try:
        lines = (run / PREFERENCES_FILE).read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    choices: list[Preference] = []
    for line in lines:
        try:
            one = adapter_of(Preference).validate_python(strict_json(line))
        except ValueError:
            continue
        if one.choice != "undo":
            choices.append(one)
        elif undone := next((earlier for earlier in reversed(choices) if earlier.about == one.about), None):
            choices.remove(undone)
    last = {one.about: one for one in choices}
    return [one for one in choices if one is last[one.about]]


def add_preference(run: Path, preference: Preference) -> None:
    """Write a choice behind those that are there; `undo` takes back the last on its question and pair."""
    line = json.dumps(asdict(preference), ensure_ascii=False).encode() + b"\n"
    with (run / PREFERENCES_FILE).open("ab+") as file:
        if file.tell():  # a line of its own also where a crash has cut the last one
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else b"\n" + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
