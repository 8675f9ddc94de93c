"""Pages whose buttons call Python, in a notebook or under `rag-lab open`; and that on which answers are rated."""

import getpass
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rag_lab.comparison.blind_trials import Key, ShownAnswer, labelled_pair
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.errors import ConfigError, RagLabError, unknown_name
from rag_lab.report.page.templates import render
from rag_lab.runs import human_input
from rag_lab.runs.human_input import RATINGS, AnswerLabel
from rag_lab.runs.run_folder import write_json

LABELS = 30


class Clicked(ABC):
    """What is shown as a page and clicked in it; a click that cannot be done becomes a sentence in the page."""

    said, is_bad = "", False
    _place, _n = 0, 1  # which is shown, of how many

    @abstractmethod
    def to_html(self, style: str = "") -> str:
        """Return the HTML, in which everything from outside is escaped; with a style, of a page that nobody can click.

        What has `data-do` is a button, `data-value` goes with it, and `data-key` is the key that presses it.
        """

    @abstractmethod
    def do(self, action: str, value: str, typed: Mapping[str, str]) -> None:
        """Do what was clicked; `typed` are the texts in the page by their `name`."""

    def go(self, steps: int) -> None:
        """Turn to another of what is shown, so many further on; the first and the last are the ends."""
        self._place = min(max(0, self._place + steps), self._n - 1)

    def rendered(self, template: str, style: str, **values: Any) -> str:
        """Return a template of this folder with the values, and what is to be said of the last click."""
        return render(template, style=style, said=self.said, bad=self.is_bad, **values)

    def receive(self, message: Mapping[str, Any]) -> str:
        """Do what a message of the page says, {do, value, typed}, and return the page that follows."""
        typed = {str(name): str(text) for name, text in dict(message.get("typed") or {}).items()}
        self.said, self.is_bad = "", False
        try:
            self.do(str(message.get("do", "")), str(message.get("value", "")), typed)
        except (RagLabError, OSError, ValueError, IndexError) as error:
            self.said, self.is_bad = str(error), True
        return self.to_html()


class Rating(Clicked):
    """Answers without the names of their variants; every click is written to `labels.jsonl` of the run at once.

    Those are shown that were drawn for the main comparison, by `rag-lab labels ask` or here; or of one question all.
    """

    def __init__(self, tables: RunTables, n: int = LABELS, by: str = "", question_id: str = "") -> None:
        self._folder, self.by = tables.run.path, by or getpass.getuser()
        pair = labelled_pair(tables)
        drawn = human_input.read_asked(self._folder)
        if drawn is None or drawn.n < n:
            drawn = pair.ask(n)
            write_json(self._folder / human_input.ASKED_FILE, drawn)
        every = {one.key: one for both in pair.answers.values() for one in both if not one.side.missing}
        wanted = drawn.answers if not question_id else [key for key in every if key[0] == question_id]
        self.answers: list[ShownAnswer] = [every[key] for key in wanted if key in every]
        if not self.answers:
            raise ConfigError("Nothing can be rated here: no answer of these variants was kept.")
        rated, self._n = self._labels, len(self.answers)
        self._place = next((n for n, one in enumerate(self.answers) if one.key not in rated), 0)

    @property
    def now(self) -> ShownAnswer:
        """What is shown."""
        return self.answers[self._place]

    @property
    def done(self) -> int:
        """How many of the answers this person has rated or skipped."""
        rated = self._labels  # is read from the file
        return sum(one.key in rated for one in self.answers)

    @property
    def _labels(self) -> dict[Key, AnswerLabel]:
        labels, _ = human_input.read_labels(self._folder / human_input.LABELS_FILE)
        return {one.key: one for one in human_input.latest(labels)[0] if one.by == self.by}

    def rate(self, rating: human_input.Rating, note: str = "", star: bool | None = None) -> None:
        """Rate what is shown, `up`, `down` or `skip`; '' takes the rating back."""
        if rating not in RATINGS:
            raise ConfigError(unknown_name("rating", str(rating), [name for name in RATINGS if name]))
        key, now = self.now.key, datetime.now(UTC).isoformat(timespec="milliseconds")
        before = self._labels.get(key)
        is_starred = bool(before and before.star) if star is None else star
        human_input.add_record(self._folder, AnswerLabel(*key, rating, self.by, now, note.strip(), is_starred))

    def do(self, action: str, value: str, typed: Mapping[str, str]) -> None:
        """Do what was clicked in the page."""
        note = typed.get("note", "")
        match action:
            case "rate":
                self.rate(value, note)  # type: ignore[arg-type]
                self.go(1 if value else 0)
            case "star":
                label = self._labels.get(self.now.key)
                self.rate(label.rating if label else "skip", note, star=not (label and label.star))
            case "go":
                self.go(int(value))

    def to_html(self, style: str = "") -> str:
        """Return how it stands; no name of a variant is in it. With a style, of a page that nobody can click."""
        return self.rendered(
            "rate.html",
            style,
            shown=self.now,
            label=self._labels.get(self.now.key),
            place_now=self._place,
            total=self._n,
            done=self.done,
            by=self.by,
            file=str(self._folder / human_input.LABELS_FILE),
        )
