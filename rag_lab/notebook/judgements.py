"""`label`: which passage answers a question, a line of its data set; `prefer`: which of two answers is better."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from rag_lab.comparison.blind_trials import Preferred, Trial, blind_trials, preferred_of
from rag_lab.comparison.comparison import Comparison, read_comparison
from rag_lab.data import labels
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.notebook.clicked_page import Clickable
from rag_lab.pipeline import Pipeline
from rag_lab.records import Hit, Question
from rag_lab.report.page.clicked import LABELS, Rating
from rag_lab.runs.human_input import CHOICES, Choice, Preference, add_record, read_preferences
from rag_lab.stages.extract import nearest_quotes, quotable

Pipelines = Pipeline | Sequence[Pipeline] | Mapping[str, Pipeline]
MOST = 10  # passages that are shown of all pipelines together
_NO_FIELDS = frozenset[str]()
_NEIGHBOURS = 2  # parts on each side of the best: the space, and the sentence behind it


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that may answer; `parts` make up its text: sentences, rows and items, and what is between them."""

    hit: Hit
    text: str
    parts: tuple[tuple[str, bool], ...]  # text, and whether it is a sentence, a table row or a list item
    best: int  # the place in `parts` of the sentence, row or item that is nearest to the question

    @property
    def quote(self) -> str:
        """The sentence, row or item that is nearest to the question."""
        return self.parts[self.best][0]

    @property
    def units(self) -> list[str]:
        """Its sentences, rows and items."""
        return [text for text, is_unit in self.parts if is_unit]

    def is_near(self, place: int) -> bool:
        """Tell whether a folded passage shows a part: the best one, its neighbours, and what is between them."""
        return abs(place - self.best) <= _NEIGHBOURS


class Labelling(Clickable):
    """Questions that are labelled one after the other; every click is written at once. See `label`."""

    def __init__(self, pipelines: Sequence[Pipeline], questions: Sequence[Question]) -> None:
        self._pipelines, self.questions, self._n = pipelines, tuple(questions), len(questions)
        self._dataset = pipelines[0].dataset
        self._found: dict[int, list[Found]] = {}
        self._unfolded: set[tuple[int, int]] = set()  # question and passage
        self._written: list[labels.Written] = []
        labels.questions_file(self._dataset)  # refuses a data set in which nothing can be written

    @property
    def question(self) -> Question:
        """What is labelled now, with the labels that it has by now."""
        asked = self.questions[self._place]
        return self._known.get(labels.asked_by(asked), asked)

    @property
    def labelled(self) -> int:
        """How many of the questions have a label."""
        return sum(self._known.get(labels.asked_by(one), one).is_labelled for one in self.questions)

    @property
    def passages(self) -> list[Found]:
        """What the pipelines found for the question, in turn, the best of each first, each place once."""
        if self._place not in self._found:
            question = self.questions[self._place]
            rankings = [
                (one, one.run([question], answer=(), read=lambda _: _NO_FIELDS)[0].ranked) for one in self._pipelines
            ]
            found: dict[tuple[str, int | None, int, int], tuple[Hit, str]] = {}
            for rank in range(max((len(hits) for _, hits in rankings), default=0)):
                for pipeline, hits in rankings:
                    if rank < len(hits):
                        hit = hits[rank]
                        found.setdefault((hit.source, hit.page, hit.start, hit.end), (hit, pipeline.index.text(hit)))
            shown = list(found.values())[:MOST]
            quotes = nearest_quotes(self._pipelines[0].parts, question, [text for _, text in shown])
            passages: list[Found] = []
            for (hit, text), quote in zip(shown, quotes, strict=True):
                parts, end = list[tuple[str, bool]](), 0  # which make the text up again, and whether one can be quoted
                for start, stop in quotable(text) or [(0, len(text))]:
                    if start > end:
                        parts.append((text[end:start], False))
                    parts.append((text[start:stop], True))
                    end = stop
                parts += [(text[end:], False)] if end < len(text) else []
                nearest = next((n for n, part in enumerate(parts) if part == (quote, True)), 0)
                passages.append(Found(hit, text, tuple(parts), nearest))
            self._found[self._place] = passages
        return self._found[self._place]

    def take(self, number: int, quote: str = "") -> None:
        """Write that words of a passage answer the question: `quote`, or where empty those nearest to it."""
        found = self._passage(number)
        quote = quote.strip() or found.quote
        if " ".join(quote.split()) not in " ".join(found.text.split()):
            raise ConfigError(f"Passage {number} does not hold {quote!r:.80}; give words as they stand in it.")
        passage = found.hit.source, found.hit.page, quote
        self._keep(labels.write_label(self._dataset, self.question, answered_by=passage))

    def drop(self, number: int, quote: str = "") -> None:
        """Take back that words of a passage answer the question, as `take` has them."""
        found = self._passage(number)
        quote = quote.strip() or found.quote
        passage = found.hit.source, found.hit.page, quote
        self._keep(labels.write_label(self._dataset, self.question, not_answered_by=passage))

    def answer(self, text: str) -> None:
        """Write a right answer in words."""
        if not text.strip():
            raise ConfigError("The answer is empty; write what is right, as in: 290 bar")
        self._keep(labels.write_label(self._dataset, self.question, answer=text.strip()))

    def no_answer(self) -> None:
        """Write that the documents hold no answer."""
        self._keep(labels.write_label(self._dataset, self.question, unanswerable=True))

    def undo(self) -> None:
        """Put back what the last label changed."""
        if not self._written:
            raise ConfigError("There is no label to undo.")
        self._written[-1].undo()
        self._written.pop()
        self.__dict__.pop("_known", None)  # is read again

    def is_taken(self, found: Found, quote: str) -> bool:
        """Tell whether words of a passage are a label of the question."""
        place = found.hit.source, found.hit.page, quote.strip()
        return any((one.source, one.page, one.quote) == place for one in self.question.evidence)

    def _keep(self, written: labels.Written) -> None:
        if written.after is not None:
            self._written.append(written)
        self.__dict__.pop("_known", None)  # is read again

    def _passage(self, number: int) -> Found:
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(self.passages):
            raise ConfigError(f"There are {len(self.passages)} passages, numbered from 1; got {number!r:.40}.")
        return self.passages[number - 1]

    @cached_property
    def _known(self) -> dict[labels.Asked, Question]:
        return labels.labelled_questions(self._dataset)

    def to_html(self, style: str = "") -> str:
        """Return how it stands; with a style, of a page that nobody can click."""
        unfolded = []  # passages shown whole: somebody wanted it, or a label would be folded away
        for number, found in enumerate(self.passages, start=1):
            taken = [n for n, (text, is_unit) in enumerate(found.parts) if is_unit and self.is_taken(found, text)]
            if (self._place, number) in self._unfolded or not all(map(found.is_near, taken)):
                unfolded.append(number)
        return self.rendered(
            "label.html",
            style,
            labelling=self,
            unfolded=unfolded,
            question=self.question,
            passages=self.passages,
            place_now=self._place,
            total=len(self.questions),
            file=str(labels.questions_file(self._dataset)),
            can_undo=bool(self._written),
        )

    def do(self, action: str, value: str, typed: Mapping[str, str]) -> None:
        """Do what was clicked in the page."""
        match action:
            case "take":
                number, _, part = value.partition(":")
                found = self._passage(int(number))
                quote = found.parts[int(part)][0] if part else found.text
                (self.drop if self.is_taken(found, quote) else self.take)(int(number), quote)
            case "unfold":
                self._unfolded ^= {(self._place, int(value))}
            case "answer":
                self.answer(typed.get("answer", ""))
            case "no_answer":
                self.no_answer()
            case "undo":
                self.undo()
            case "go":
                self.go(int(value))

    def __repr__(self) -> str:
        return f"{self.labelled} of {len(self.questions)} labelled; .take(1), .answer('...'), .no_answer(), .undo()"


def label(pipelines: Pipelines, questions: str | Question | Sequence[str | Question] | None = None) -> Labelling:
    """Let a person click the passage that answers a question; what they click is a line of the data set's questions.

    The line stands in questions.jsonl of the data set, or of the plain folder, in the form of docs/datasets.md, so the
    next comparison measures by it. What is there stays; a question that is there is extended.

    Args:
        pipelines: what finds the passages. Give all that are compared, since what only one of them finds cannot be
            clicked where another was asked.
        questions: a text or an id, or several; those of the pipeline where None.
    """
    several = pipelines.values() if isinstance(pipelines, Mapping) else pipelines
    searched = [several] if isinstance(several, Pipeline) else list(several)
    if not searched or not all(isinstance(one, Pipeline) for one in searched):
        raise ConfigError("Give a Pipeline, or several, as in label([base, other], questions).")
    asked = [questions] if isinstance(questions, str | Question) else questions
    first = searched[0] if asked is None else searched[0].asking(list(asked))
    if not first.dataset.questions:
        raise ConfigError(f'{first.dataset.name} has no questions; give some, as in label(pipeline, "What is ...?").')
    return Labelling(searched, first.dataset.questions)


QUESTIONS = 20


class Preferring(Clickable):
    """Blind trials of two variants of a run, of which a person judges one after the other.

    Every choice is written to the run folder at once, so it goes on where it was left, here or in another notebook.
    See `prefer`.
    """

    def __init__(self, comparison: Comparison, pair: tuple[str, str], questions: int, seed: int) -> None:
        self._comparison, self._pair, self._is_ended = comparison, pair, False
        self._blind = blind_trials(comparison, pair, seed)
        self.trials = self._blind.trials[:questions]  # everything that is judged, in its order

    @property
    def now(self) -> Trial | None:
        """What is to be judged now; None where all is."""
        judged = self._judged
        return next((trial for trial in self.trials if trial.question.question_id not in judged), None)

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
        add_record(self._comparison.run.path, one)

    def undo(self) -> None:
        """Take the last choice back; it is asked again."""
        if not self._made:
            raise ConfigError("There is no choice to undo.")
        last = self._made[-1]
        add_record(self._comparison.run.path, Preference(last.question_id, last.left, last.right, "undo", ""))

    @property
    def _made(self) -> list[Preference]:
        found = read_preferences(self._comparison.run.path)
        return [one for one in found if {one.left, one.right} == {*self._pair}]

    @property
    def _judged(self) -> set[str]:
        """The questions whose choice is between what is shown now."""
        shown = {trial.question.question_id: trial.shown for trial in self._blind.trials}
        return {one.question_id for one in self._made if shown.get(one.question_id) == one.shown}

    def to_html(self, style: str = "") -> str:
        """Return how it stands; no name is in it before the end. With a style, of a page that nobody can click."""
        trial, done = self.now, self.done
        is_over = trial is None or self._is_ended
        return self.rendered(
            "prefer.html",
            style,
            trial=trial,
            total=len(self.trials),
            done=done,
            alike=self._blind.alike,
            result=self.result if is_over else None,
            can_undo=bool(self._made),
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


class RatingPage(Rating, Clickable):
    """Answers to be rated, in a notebook."""


def rate(run: Comparison | Path | str, *, n: int = LABELS, by: str = "") -> RatingPage:
    """Rate answers of a run without the names of its variants: good, bad, or cannot tell.

    Those are shown whose labels narrow the main comparison most, as `rag-lab labels ask` draws them. What is clicked is
    kept in `labels.jsonl` of the run folder at once; the report then shows the judge, the labels, and both together.

    Args:
        n: labels to be asked for; a larger number later goes on with the same draw.
        by: who rates; the name of the user where empty. Two people rate the same answers, and do not see each other's.
    """
    return RatingPage(run if isinstance(run, Comparison) else read_comparison(run), n, by)
