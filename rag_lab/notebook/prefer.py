"""`prefer`: two answers without names, and which of them is better."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from rag_lab.comparison.comparison import Comparison, read_comparison
from rag_lab.comparison.questions.preferences import Preferred, Trial, Trials, blind_trials, preferred_of
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.notebook.clicked_page import Clickable
from rag_lab.report.page.templates import render
from rag_lab.runs.preferences import CHOICES, Choice, Preference, add_preference, read_preferences

QUESTIONS = 20


class Preferring(Clickable):
    """Blind trials of two variants of a run, of which a person judges one after the other.

    Every choice is written to the run folder at once, so it goes on where it was left, here or in another notebook.
    See `prefer`.
    """

    def __init__(self, comparison: Comparison, pair: tuple[str, str], questions: int, seed: int) -> None:
        self._comparison, self._pair, self._most, self._seed = comparison, pair, questions, seed
        self._is_ended = False

    @property
    def now(self) -> Trial | None:
        """What is to be judged now; None where all is."""
        judged = self._judged
        return next((trial for trial in self.trials if trial.question.question_id not in judged), None)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Everything that is judged, in its order."""
        return self._all.trials[: self._most]

    @property
    def done(self) -> int:
        """How many of `trials` were judged or skipped."""
        return sum(trial.question.question_id in self._judged for trial in self.trials)

    @property
    def result(self) -> Preferred:
        """What was preferred so far, with the names."""
        return preferred_of(self._comparison, self._pair, self._made)

    def choose(self, choice: Choice) -> None:
        """Judge what is shown now: `left`, `right`, `same` or `skip`."""
        allowed = [name for name in CHOICES if name != "undo"]
        if choice not in allowed:
            raise ConfigError(unknown_name("choice", str(choice), allowed))
        trial = self.now
        if trial is None:
            raise ConfigError("Everything is judged; take more questions, as in prefer(run, questions=40).")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        one = Preference(trial.question.question_id, trial.left, trial.right, choice, trial.shown, now)
        add_preference(self._comparison.run.path, one)

    def undo(self) -> None:
        """Take the last choice back; it is asked again."""
        if not self._made:
            raise ConfigError("There is no choice to undo.")
        last = self._made[-1]
        add_preference(self._comparison.run.path, Preference(last.question_id, last.left, last.right, "undo", ""))

    @cached_property
    def _all(self) -> Trials:
        return blind_trials(self._comparison, self._pair, self._seed)

    @property
    def _made(self) -> list[Preference]:
        found = read_preferences(self._comparison.run.path)
        return [one for one in found if {one.left, one.right} == {*self._pair}]

    @property
    def _judged(self) -> set[str]:
        """The questions whose choice is between what is shown now."""
        shown = {trial.question.question_id: trial.shown for trial in self._all.trials}
        return {one.question_id for one in self._made if shown.get(one.question_id) == one.shown}

    def to_html(self, style: str = "") -> str:
        """Return how it stands; no name is in it before the end. With a style, of a page that nobody can click."""
        trial, done = self.now, self.done
        is_over = trial is None or self._is_ended
        return render(
            "prefer.html",
            style=style,
            trial=trial,
            total=len(self.trials),
            done=done,
            alike=self._all.alike,
            result=self.result if is_over else None,
            can_undo=bool(self._made),
            said=self.said,
            bad=self.is_bad,
        )

    def do(self, action: str, value: str, typed: Mapping[str, str]) -> None:
        """Do what was clicked in the page."""
        if action == "choose":
            self.choose(value)  # type: ignore[arg-type]
        elif action == "undo":
            self.undo()
            self.said = "The last choice was taken back."
        elif action in ("end", "go on"):
            self._is_ended = action == "end"

    def __repr__(self) -> str:
        return f"{self.done} of {len(self.trials)} judged; .choose('left'), .undo(), .result"


def prefer(
    run: Comparison | Path | str, variants: str | Sequence[str] = (), *, questions: int = QUESTIONS, seed: int = 0
) -> Preferring:
    """Let a person say which of two answers is better, without seeing whose they are.

    Shown in a notebook it has buttons and keys; `choose` does the same from Python. Questions with the same answer
    under both variants are not asked; where there are no answers, what was found is compared. What was chosen is kept
    in the run folder, and its report and `compare` of it show it when they are made again.

    Args:
        run: a run folder, or what `compare` returned.
        variants: one that is set against the baseline, or two, by id, label or letter; where none is given, the
            baseline and the variant that changes most.
        questions: at most so many are judged, a sample.
        seed: draws the sample, the order and the sides.
    """
    comparison = run if isinstance(run, Comparison) else read_comparison(run)
    if isinstance(questions, bool) or not isinstance(questions, int) or questions < 1:
        raise ConfigError(f"questions is how many are judged, 1 or more; got {questions!r:.40}.")
    ids = {key: v for v, code in comparison.codes.items() for key in (code, comparison.label(v), v)}
    named = []
    for name in [variants] if isinstance(variants, str) else variants:
        if name not in ids:
            raise ConfigError(unknown_name("variant", str(name), [comparison.name(v) for v in comparison.codes]))
        named.append(ids[name])
    baseline = comparison.run.baseline
    if not named:
        others = [one for one in comparison.changes.variants if one.variant_id != baseline]
        if not others:
            raise ConfigError("The run has one variant with results, and a preference needs two.")
        named = [max(others, key=lambda one: (one.answers_changed, one.rankings_changed)).variant_id]
    pair = [baseline, *named] if len(named) == 1 else [*named]
    if len(set(pair)) != 2 or len(pair) != 2:
        raise ConfigError(f"A preference needs two different variants, got {', '.join(pair)}.")
    first, second = sorted(pair, key=list(comparison.codes).index)
    found = Preferring(comparison, (first, second), questions, seed)
    if not found.trials:
        found.said = "Both variants show the same for every question; name two others, as in prefer(run, ['A', 'C'])."
    return found
