"""From documents to a set of drafted questions: written, filtered by rules, checked by a reader, and spread."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tqdm.auto import tqdm

from rag_lab._kit.wording import counted, some_of, text_table
from rag_lab.corpus.normalize import find_quote
from rag_lab.errors import ConfigError
from rag_lab.models.protocols import ChatModel
from rag_lab.pipeline import Pipeline
from rag_lab.questions.filters import RULES, agrees, near_duplicates, overlap
from rag_lab.questions.writer import DRAFTED, Draft, Kind, Run, WriteDraft, find_places, tasks, write
from rag_lab.records import Passage, Question, Remembered, Trace
from rag_lab.stages.generate import Generate, Parse
from rag_lab.stages.run_stage import run_stage
from rag_lab.stages.stage import Stage

Passages = tuple[Passage, ...]
_ANSWERED: tuple[Kind, ...] = ("single", "two_passages", "follow_up")
_TOKENS = 160


class Check(NamedTuple):
    """A question to the reader about drafts of some kinds; each of `reads` is one call, with these passages.

    Where `finds`, an answer must agree with the draft's. Else none may; of a draft without, there may be none at all.
    """

    name: str
    kinds: tuple[Kind, ...]
    reads: Callable[[Draft], Sequence[Passages]]
    finds: bool = False
    closed_book: bool = False


CHECKS = (
    Check("answerable", _ANSWERED, lambda draft: [draft.passages], finds=True),
    Check("closed_book", _ANSWERED, lambda draft: [()], closed_book=True),
    Check("needs_both", ("two_passages",), lambda draft: [(one,) for one in draft.passages]),
)


def nowhere(found: Callable[[Draft], Passages]) -> Check:
    """Return the check that nothing in the whole index answers; `found` searches it."""
    return Check("nowhere", ("unanswerable", "forbidden"), lambda draft: [found(draft)])


def checked(check: Check, drafts: Sequence[Draft], model: ChatModel, run: Run) -> list[tuple[Draft, str]]:
    """Return each draft with what the reader said noted on it, and why it falls, or ''."""
    asked = [(draft, passages) for draft in drafts for passages in check.reads(draft)]
    traces = [
        Trace(draft.question, remembered=Remembered(0, draft.question.history), passages=passages)
        for draft, passages in asked
    ]
    answered = run(Parse(), run(Generate(model, _TOKENS, 0.0, closed_book=check.closed_book), traces))
    notes: dict[str, list[str]] = {draft.name: [] for draft in drafts}
    reasons = dict.fromkeys(notes, "")
    for (draft, _), trace in zip(asked, answered, strict=True):
        answer = trace.answer
        said = answer.text if answer and not answer.abstained else ""
        notes[draft.name].append(said or "no answer")
        is_found = bool(said) and (not draft.question.answers or agrees(said, draft.question.answers, draft.language))
        if answer is None:
            reasons[draft.name] = f"the reader failed: {trace.stages[-1].reason}"
        elif is_found != check.finds:
            reasons[draft.name] = f"the reader says {said!r}" if said else "the reader finds no answer"
    return [
        (replace(one, checks={**one.checks, check.name: "; ".join(notes[one.name])}), reasons[one.name])
        for one in drafts
    ]


_SEARCHED = 100  # passages among which a quote is looked for
_EASY_OVERLAP = 0.6  # share of its words: drafts that BM25 finds first by so many may be half of a set
_NAMED = 5  # problems
# What finds the passages that might answer after all: what is configured, without what asks a model.
_SEARCH = {"query.rewrite": "none", "query.hyde": "none", "query.phrasings": 0, "rerank.name": "none",
           "answer.name": "none", "answer.agent": "none", "conversation.memory": "none"}  # fmt: skip


@dataclass
class DraftedSet:
    """What stood, and what fell with filter and reason; `seen` counts what each filter saw, in their order."""

    n_written: int
    stood: list[Draft]
    topics: list[Draft] = field(default_factory=list)
    fallen: list[tuple[Draft, str, str]] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)

    def sift(self, name: str, found: Iterable[tuple[Draft, str]]) -> None:
        """Let those fall for which there is a reason; drafts of `found` take the place of those of the same id."""
        judged = {draft.name: (draft, reason) for draft, reason in found}
        self.seen[name] = len(judged)
        self.fallen += [(draft, name, reason) for draft, reason in judged.values() if reason]
        both = (judged.get(draft.name, (draft, "")) for draft in self.stood)
        self.stood = [draft for draft, reason in both if not reason]

    @property
    def n_stood(self) -> int:
        """How many of the drafts that were written stood, topics included."""
        return len(self.topics) + sum(draft.kind != "forbidden" for draft in self.stood)

    def __str__(self) -> str:
        fell = Counter(name for _, name, _ in self.fallen)
        first = {name: f"{why}: {draft.question.text or 'no question'}" for draft, name, why in reversed(self.fallen)}
        rows = [(name, n, fell[name], first.get(name, "")) for name, n in self.seen.items()]
        lines = [text_table(("filter", "drafts", "fell", "the first"), rows, 118), ""]
        lines.append(f"{self.n_stood} of {self.n_written} drafts stood.")
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for one in self.stood:
            place, rank, n_words = one.places[0], one.bm25_rank, len(one.question.text.split())
            values = {"file": place.chunk.source, "kind": one.kind, "class": one.question.query_class or "",
                      "span": place.span, "language": place.language, "wording": one.wording,
                      "length": "up to 8 words" if n_words <= 8 else "9 words or more"}  # fmt: skip
            if one.question.evidence:
                values["overlap"] = ("below 1/3", "1/3 to 2/3", "above 2/3")[min(2, int(3 * one.overlap))]
                values["BM25 rank"] = "1" if rank == 1 else "2 to 10" if rank and rank <= 10 else "beyond"
            for name, value in values.items():
                found[name][value or "unknown"] += 1
        lines += [f"  {name:<9}  {some_of([f'{v} {n}' for v, n in c.most_common()])}" for name, c in found.items()]
        return "\n".join(lines)


class Drafting:
    """The drafting of up to `n` questions about the documents of a pipeline, by which the whole index is searched."""

    def __init__(self, pipeline: Pipeline, n: int) -> None:
        self.pipeline, self.index = pipeline.set(_SEARCH), pipeline.index
        self.documents = self.index.chunks.documents()
        self.found = find_places(self.documents, self.index.language())
        if not self.found:
            reasons = "".join(f"\n  {problem}" for problem in self.index.problems[:_NAMED])
            raise ConfigError(f"No file of {pipeline.corpus_name} has a text that can be asked about.{reasons}")
        self.todo = tasks(self.found, n)

    def found_sentence(self) -> str:
        """Return how many places there are, in which languages, and which files have none."""
        languages = Counter(place.language or "unknown" for place in self.found)
        sources = {place.chunk.source for place in self.found}
        without = sorted(self.index.manifest.made_of["files"].keys() - sources)
        none = f" Nothing is asked about {some_of(without, _NAMED)}: no text of its own." if without else ""
        listed = ", ".join(f"{name} {n:,}" for name, n in languages.most_common())
        return f"{counted(len(self.found), 'place')} in {counted(len(sources), 'file')} ({listed}).{none}"

    def n_calls(self) -> dict[str, int]:
        """Return the most calls: of writing, then of each check."""
        counts = {WriteDraft.name: len(self.todo)}
        for check in (*CHECKS, nowhere(lambda draft: ())):
            counts[check.name] = sum(len(check.reads(draft)) for draft in self.todo if draft.kind in check.kinds)
        counts["nowhere"] += sum(draft.kind == "single" and bool(draft.permissions) for draft in self.todo)
        return counts

    def draft(self, writer: WriteDraft, reader: ChatModel, known: Sequence[Question] = ()) -> DraftedSet:
        """Write, filter, check and spread drafts, none that asks what a `known` question does; calls are remembered."""

        doing = WriteDraft.name

        def run(stage: Stage, traces: Sequence[Trace]) -> list[Trace]:
            with tqdm(total=len(traces), desc=doing, unit="draft", disable=None if stage.costly else True) as bar:

                def show(_: str, done: int, of: int) -> None:
                    bar.update(done - bar.n)

                return run_stage(stage, traces, self.pipeline.memory, show)

        def check(one: Check) -> None:
            nonlocal doing
            doing = one.name
            asked = [draft for draft in result.stood if draft.kind in one.kinds]
            result.sift(one.name, checked(one, asked, reader, run))

        result = DraftedSet(len(self.todo), write(self.todo, writer, run))
        result.sift("written", [(draft, draft.problem) for draft in result.stood])
        for rule in RULES:
            result.sift(rule.__name__, [(draft, rule(draft)) for draft in result.stood])
        result.sift("near_duplicates", near_duplicates(result.stood, known))
        result.topics = [draft for draft in result.stood if draft.kind == "topic"]
        result.stood = [draft for draft in result.stood if draft.kind != "topic"]
        for one in CHECKS:
            check(one)
        result.stood = self._measured(result.stood)
        result.sift("too_easy", _too_easy(result.stood))
        result.stood = [one for draft in result.stood for one in self._labelled(draft)]
        check(nowhere(self._of_index))
        return result

    def _of_index(self, draft: Draft) -> Passages:
        """Return what the whole index has for a question, as its asker sees it, after the place that it was made of."""
        own = draft.passages if draft.kind == "unanswerable" else ()
        (trace,) = self.pipeline.run([draft.question], answer=(), read=lambda _: {"passages"})
        return tuple(replace(one, number=number) for number, one in enumerate((*own, *trace.passages), start=1))

    def _labelled(self, draft: Draft) -> list[Draft]:
        """Return a draft as its kind is labelled, and of a closed file the same question of who may not see it."""
        asked = draft.question
        unanswerable = replace(asked, answers=(), evidence=(), answerable=False)
        if draft.kind == "unanswerable":
            return [replace(draft, question=unanswerable)]
        if not draft.permissions:
            return [draft]
        twin = replace(
            unanswerable, question_id=f"{draft.name}x", may_see=(), forbidden=asked.answers, tags=(DRAFTED, "forbidden")
        )
        visible = [one.text for one in self.documents if self.index.is_visible(one.source, twin)]
        is_told = any(find_quote(text, quote) for text in visible for quote in draft.quotes)
        pair = [replace(draft, question=twin, kind="forbidden", checks={}, bm25_rank=None)]
        closed = replace(draft, question=replace(asked, may_see=draft.permissions))
        return [closed] if is_told or draft.kind != "single" else [closed, *pair]

    def _measured(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Return the drafts with the overlap of their words, and the rank at which BM25 finds a quote."""
        texts = [draft.question.text for draft in drafts]
        hits = self.index.search_terms("bm25", "auto", texts, _SEARCHED, level="child") if texts else []
        measured = []
        for draft, ranked in zip(drafts, hits, strict=True):
            quotes = [self.index.locate(item)[0] for item in draft.question.evidence]
            spans = [((one.source, one.page), one.start or 0, one.end or 0) for one in quotes]
            ranks = (
                rank
                for rank, hit in enumerate(ranked, start=1)
                if any(
                    (hit.source, hit.page) == page and hit.start < end and hit.end > start for page, start, end in spans
                )
            )
            shared = overlap(draft.question.text, draft.quotes, draft.language)
            measured.append(replace(draft, overlap=round(shared, 3), bm25_rank=next(ranks, None)))
        return measured


def _too_easy(drafts: Sequence[Draft]) -> list[tuple[Draft, str]]:
    """Return the answerable drafts; those that a search by words finds first fall beyond half of the set.

    With nothing but such questions BM25 would win, whatever the documents are. Those with most words in common go.
    """
    labelled = [draft for draft in drafts if draft.kind != "unanswerable"]
    easy = [one for one in labelled if one.bm25_rank == 1 and one.overlap >= _EASY_OVERLAP]
    most = len(labelled) - len(easy)
    surplus = {one.name for one in sorted(easy, key=lambda one: -one.overlap)[: max(0, len(easy) - most)]}
    reason = f"one of {len(easy)} that BM25 finds first by their words, of which {most} may stand"
    return [(draft, reason if draft.name in surplus else "") for draft in labelled]
