"""`review`: a person reads drafted questions one at a time, and keeps, edits or drops each."""

import getpass
from collections.abc import Mapping
from pathlib import Path

from rag_lab.comparison.passages import Piece
from rag_lab.corpus.normalize import find_quote
from rag_lab.data.dataset import Dataset
from rag_lab.errors import ConfigError
from rag_lab.notebook.clicked_page import Clickable
from rag_lab.questions.draft_files import Line, Verdict, drafts, review_sentences, verdict_of, write_verdict
from rag_lab.records import QUERY_CLASSES


class Reviewing(Clickable):
    """Drafts that are reviewed one after the other; every click is written at once. See `review`."""

    def __init__(self, dataset: Dataset, by: str) -> None:
        self._dataset, self.by = dataset, by
        lines = self.lines
        if not lines:
            advice = f"rag-lab questions draft {dataset.path} --model provider:name"
            raise ConfigError(f"{dataset.name} has no drafts to review; draft some: {advice}")
        self._names, self._n = [str(line["id"]) for line in lines], len(lines)
        self._place = next((n for n, line in enumerate(lines) if not verdict_of(line, by)), 0)
        self._edits: dict[str, str] = {}  # question, answer and class that were typed, and not decided on yet

    @property
    def lines(self) -> list[Line]:
        """The drafts as their files have them by now; where a draft fell by review, it is among them."""
        return drafts(self._dataset)

    @property
    def now(self) -> Line:
        """The draft that is shown."""
        return next(line for line in self.lines if line["id"] == self._names[self._place])

    @property
    def done(self) -> int:
        """How many drafts this person has reviewed."""
        return sum(bool(verdict_of(line, self.by)) for line in self.lines)

    def decide(self, verdict: Verdict, question: str = "", answer: str = "", query_class: str = "") -> None:
        """Keep or drop what is shown, and turn to the next; other words, or another class, are written with it.

        An empty verdict takes one back.
        """
        chosen = query_class or self._edits.get("class", "")
        write_verdict(self._dataset, self._names[self._place], self.by, verdict, question, answer, chosen)
        if verdict:
            self.go(1)

    def go(self, steps: int) -> None:
        """Turn to another draft, as `Clicked.go`; what was typed and not decided on is dropped."""
        super().go(steps)
        self._edits = {}

    def do(self, action: str, value: str, typed: Mapping[str, str]) -> None:
        """Do what was clicked in the page."""
        match action:
            case "decide":
                self.decide(value, typed.get("question", ""), typed.get("answer", ""))  # type: ignore[arg-type]
            case "class":
                self._edits = {**typed, "class": value}
            case "go":
                self.go(int(value))

    def to_html(self, style: str = "") -> str:
        """Return how it stands; what others found is not in it. With a style, of a page that nobody can click."""
        lines = self.lines
        line = next(one for one in lines if one["id"] == self._names[self._place])
        n_done = sum(bool(verdict_of(one, self.by)) for one in lines)
        quotes = [str(one.get("quote") or "") for one in line.get("evidence", [])]
        text = str(line["draft"].get("passage") or "\n\n".join(quotes))
        spans = (find_quote(text, quote) for quote in quotes)
        parts, end = list[Piece](), 0
        for start, stop in sorted(filter(None, spans)):
            if start >= end:
                parts += [Piece(text[end:start]), Piece(text[start:stop], marked=True)]
                end = stop
        return self.rendered(
            "review.html",
            style,
            line=line | {"question": self._edits.get("question", line["question"])},
            answer=self._edits.get("answer", next(iter(line.get("answers") or ()), "")),
            draft=line["draft"],
            parts=[*parts, Piece(text[end:])],
            verdict=verdict_of(line, self.by).get("verdict", ""),
            chosen=self._edits.get("class") or line.get("class") or "",
            classes=QUERY_CLASSES,
            place_now=self._place,
            total=len(self._names),
            done=n_done,
            by=self.by,
            summary=review_sentences(lines) if n_done == len(self._names) else [],
        )


def review(dataset: str | Path | Dataset, *, by: str = "") -> Reviewing:
    """Let a person review the drafted questions of a data set, one at a time with the passage and its quote marked.

    Every verdict is written to `questions.jsonl` at once, so that a review goes on where it was left. What half of its
    reviewers, or more, drop is moved to `fallen.jsonl`. A second person takes another name.

    Args:
        dataset: a data set by path or name, as `rag-lab questions draft` made it.
        by: who reviews; the name of the user where empty.
    """
    found = dataset if isinstance(dataset, Dataset) else Dataset.load(dataset, labelled=False)
    return Reviewing(found, by or getpass.getuser())
