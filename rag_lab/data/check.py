"""What is in a dataset, how long its texts are, and what is wrong with it."""

import tempfile
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

from rag_lab._kit.wording import some_of
from rag_lab.access import may_see
from rag_lab.corpus.build_index import files_of_the_same_text, repeats
from rag_lab.corpus.chunk_store import ChunkStore, locate_evidence, write_chunks
from rag_lab.corpus.chunks import split
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.folder import LoadedCorpus, load_folder
from rag_lab.corpus.spans import words
from rag_lab.data import labels
from rag_lab.data.dataset import Dataset
from rag_lab.data.questions_file import QUESTIONS_FILE, same_text
from rag_lab.data.sampling import cluster_proposal
from rag_lab.records import QUERY_CLASSES, Document, Evidence, Problem, Question

_LEAST = 90.0  # of 100: similarity of the sorted words by indel distance, of which 90 is about one word in ten
_ROWS_AT_ONCE = 500
_SHOWN = 3  # examples in a problem
UNLABELLED = "unlabelled"
_NO_QUESTIONS = f"{QUESTIONS_FILE}, for evaluation: labelled questions, one a line (docs/datasets.md)"
_LISTED = 20  # pairs and passages in the text; the page and the JSON have all


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """Two questions and how alike their words are, from 0 to 1."""

    first: str
    second: str
    similarity: float

    def __str__(self) -> str:
        return f"{self.first}, {self.second}: {self.similarity:.2f}"


def near_duplicates(questions: Sequence[Question]) -> list[NearDuplicate]:
    """Return the pairs that are nearly the same in their words, most alike first, but for those of one text."""
    from rapidfuzz import fuzz, process

    pairs: list[NearDuplicate] = []
    texts = [same_text(question.text) for question in questions]
    for start in range(0, len(texts), _ROWS_AT_ONCE):
        rows = process.cdist(
            texts[start : start + _ROWS_AT_ONCE], texts[start:], scorer=fuzz.token_sort_ratio, score_cutoff=_LEAST
        )
        for row, column in zip(*rows.nonzero(), strict=True):
            if row < column and texts[start + row] != texts[start + column]:
                ids = questions[start + row].question_id, questions[start + column].question_id
                pairs.append(NearDuplicate(*ids, float(rows[row, column]) / 100))
    return sorted(pairs, key=lambda pair: (-pair.similarity, pair.first, pair.second))


def contradictions(dataset: Dataset) -> list[Problem]:
    """Return a problem where one asker asks the same, and it is labelled both answerable and unanswerable."""
    asked: dict[Hashable, dict[bool, Question]] = defaultdict(dict)
    for question in dataset.questions:
        same = same_text(question.text), question.history, question.namespace, question.may_see
        asked[same].setdefault(question.answerable, question)
    pairs = [f"{found[True].question_id} and {found[False].question_id}" for found in asked.values() if len(found) > 1]
    if not pairs:
        return []
    both = "1 question is" if len(pairs) == 1 else f"{len(pairs):,} questions are"
    reason = (
        f"{both} labelled both answerable and unanswerable: {some_of(pairs, _SHOWN)}; correct or drop one of the two."
    )
    return [Problem(str(dataset.questions_path), reason)]


def copied_files(dataset: Dataset, corpus: LoadedCorpus, same_files: Mapping[str, Sequence[str]]) -> list[Problem]:
    """Return a problem where files read the same as others that the same people may see."""
    access = {item.source: (item.namespace, item.permissions) for item in corpus.documents}
    found = repeats(same_files, access)
    if not found:
        return []
    pairs = [f"{copy} as {original}" for copy, original in sorted(found.items())]
    read = "reads" if len(found) == 1 else "read"
    reason = (
        f"{len(found):,} of {len(access):,} files {read} the same as another: {some_of(pairs, _SHOWN)}. Each takes a "
        "place among what is found; remove them, or set corpus.duplicates: skip."
    )
    return [Problem(str(dataset.corpus_dir), reason)]


def located_evidence(dataset: Dataset, corpus: LoadedCorpus) -> tuple[dict[str, list[Evidence]], list[Problem]]:
    """Return each question's evidence that a sweep would find, located, and a problem, in its words, for the rest."""
    located: dict[str, list[Evidence]] = {}
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chunks.sqlite")
        write_chunks(path, corpus.documents, split(corpus.documents, CorpusConfig()))
        store = ChunkStore(path)
        pairs = [(question, item) for question in dataset.questions for item in question.evidence]
        for question, item in pairs:
            found, reason = locate_evidence(store, item)
            if reason:
                reason = f"evidence of question {question.question_id!r}: {reason}"
                problems.append(Problem(str(dataset.corpus_dir / item.source), reason))
            else:
                located.setdefault(question.question_id, []).append(found)
    return located, problems


def unmet_access(dataset: Dataset, corpus: LoadedCorpus) -> list[Problem]:
    """Return a problem for each question whose namespace or permissions no file has, and for evidence they hide."""
    files = {item.source: (item.namespace, item.permissions) for item in corpus.documents}
    attributes = set(files.values())
    problems = []
    for asked in dataset.questions:
        reasons = []
        if asked.namespaces is not None and all(namespace not in asked.namespaces for namespace, _ in attributes):
            reasons.append(f"names the namespace {', '.join(asked.namespaces)!r}, which no file is in")
        if asked.may_see and all(set(permissions).isdisjoint(asked.may_see) for _, permissions in attributes):
            reasons.append(f"has may_see {list(asked.may_see)}, none of which a file asks for")
        reasons = [f"{reason}; correct it or attributes.yaml" for reason in reasons]
        for name in dict.fromkeys(item.source for item in asked.evidence if item.source in files):
            if not may_see(asked, *files[name]):
                why = "which its asker may not see; give may_see or namespace as the file asks for"
                reasons.append(f"has evidence in {name!r}, {why}")
        where = f"question {asked.question_id!r}"
        problems += [Problem(str(dataset.questions_path), f"{where} {reason}.") for reason in reasons]
    return problems


@dataclass(frozen=True, slots=True)
class DatasetCheck:
    """Counts over the usable questions of a dataset, and the problems met; `str()` renders it as text."""

    name: str
    n_files: int  # of the corpus, of a type that can be read
    n_questions: int
    n_answerable: int
    by_class: Mapping[str, int]  # in the order of QUERY_CLASSES, then `unlabelled`; classes without questions left out
    by_tag: Mapping[str, int]  # sorted by tag
    n_evidence: int
    n_with_page: int  # evidence items
    n_with_quote: int
    n_found: int  # evidence items whose file and page were read, and whose quote, where there is one, stands there
    n_without_evidence: int  # answerable questions
    duplicates: tuple[tuple[str, ...], ...]  # ids of questions whose text is the same but for case and spaces
    near_duplicates: tuple[NearDuplicate, ...]  # pairs that differ by a few words or their order, most alike first
    grades: str  # how many evidence items have each, in words; "" where all are 1
    repeated_evidence: tuple[labels.RepeatedEvidence, ...]  # labels of one question for one passage, which count as one
    lengths: "Mapping[str, Lengths]"  # words of questions and of answers, characters of documents
    problems: tuple[Problem, ...]
    whole_files: tuple[str, ...] = ()  # that labels name files alone, in a sentence; none where those of none do
    clusters: str = ""  # why questions should be declared as clusters; "" where they need not be
    missing: tuple[str, ...] = ()  # what evaluation needs and is not there, in words

    @property
    def unanswerable_share(self) -> float | None:
        """The share of questions that have no answer; None where there are no questions."""
        return 1 - self.n_answerable / self.n_questions if self.n_questions else None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {**asdict(self), "unanswerable_share": self.unanswerable_share}

    def __str__(self) -> str:
        classes, tags = (
            ", ".join(f"{name} {count}" for name, count in counts.items()) for counts in (self.by_class, self.by_tag)
        )
        head = f"{self.name}: {self.n_questions} questions over {self.n_files} files"
        of_questions = [
            f"  answerable    {self.n_answerable}, unanswerable {self.n_questions - self.n_answerable} "
            f"({self.unanswerable_share or 0:.0%})",
            f"  classes       {classes}",
            *([f"  tags          {tags}"] if tags else []),
            f"  evidence      {self.n_evidence} items, {self.n_with_page} with page, {self.n_with_quote} with quote, "
            f"{self.n_found} found in the corpus",
            *([f"  grades        {self.grades}"] if self.grades else []),
            *(f"  files alone   {sentence}" for sentence in self.whole_files),
            f"  no evidence   {self.n_without_evidence} answerable questions",
            *(
                f"  named twice   {repeated}: one passage, counted once"
                for repeated in self.repeated_evidence[:_LISTED]
            ),
            *([f"  clusters      {self.clusters}"] if self.clusters else []),
            f"  same text     {len(self.duplicates)} groups of questions",
            *(f"    {', '.join(ids)}" for ids in self.duplicates),
            f"  nearly same   {len(self.near_duplicates)} pairs of questions",
            *(f"    {pair}" for pair in self.near_duplicates[:_LISTED]),
        ]
        return "\n".join(
            [
                head,
                *(f"  missing       {part}" for part in self.missing),
                *(of_questions if self.n_questions else ()),
                *(f"  {name:<13} {lengths}" for name, lengths in self.lengths.items()),
                f"  problems      {len(self.problems)}",
                *(f"    {problem}" for problem in self.problems),
            ]
        )


def check(dataset: Dataset) -> DatasetCheck:
    """Count what `dataset` holds and collect its problems: of reading it, and of what its questions name in vain."""
    corpus = load_folder(dataset.corpus_dir)
    questions = dataset.questions
    evidence = [item for question in questions for item in question.evidence]
    located, unfound = located_evidence(dataset, corpus)
    same_files = files_of_the_same_text((item.source, item.page, item.text) for item in corpus.documents)
    classes = Counter(question.query_class or UNLABELLED for question in questions)
    same_questions: dict[str, list[str]] = defaultdict(list)
    for question in questions:
        same_questions[same_text(question.text)].append(question.question_id)
    return DatasetCheck(
        name=dataset.name,
        n_files=len(corpus.digests),
        n_questions=len(questions),
        n_answerable=sum(question.answerable for question in questions),
        by_class={name: classes[name] for name in (*QUERY_CLASSES, UNLABELLED) if classes[name]},
        by_tag=dict(sorted(Counter(tag for question in questions for tag in question.tags).items())),
        n_evidence=len(evidence),
        n_with_page=sum(item.page is not None for item in evidence),
        n_with_quote=sum(item.quote is not None for item in evidence),
        n_found=len(evidence) - len(unfound),
        n_without_evidence=sum(question.answerable and not question.evidence for question in questions),
        duplicates=tuple(tuple(ids) for ids in same_questions.values() if len(ids) > 1),
        near_duplicates=tuple(near_duplicates(questions)),
        lengths=lengths_of(questions, corpus.documents),
        grades=labels.grades_text(questions),
        repeated_evidence=tuple(labels.repeated_evidence(located, same_files)),
        problems=(
            *dataset.problems,
            *contradictions(dataset),
            *corpus.problems,
            *copied_files(dataset, corpus, same_files),
            *unfound,
            *unmet_access(dataset, corpus),
        ),
        whole_files=tuple(
            labels.whole_files_sentences(
                [replace(q, evidence=tuple(located.get(q.question_id, ()))) for q in questions]
            )
        ),
        clusters=cluster_proposal(questions, "none"),
        missing=() if dataset.questions_path.exists() else (_NO_QUESTIONS,),
    )


@dataclass(frozen=True, slots=True)
class Lengths:
    """The spread of some lengths; `unit` is what they count. All are 0 where there is nothing to measure."""

    n: int
    unit: str
    shortest: int
    median: int  # the lower one of an even number
    most: int  # 9 of 10 are at most as long
    longest: int

    def __str__(self) -> str:
        if not self.n:
            return "none"
        return f"{self.shortest} to {self.longest} {self.unit}, median {self.median}, 90% up to {self.most}"


def lengths_of(questions: Iterable[Question], documents: Iterable[Document]) -> dict[str, Lengths]:
    """Return the lengths of questions and answers in words, and of documents in characters."""
    asked = list(questions)
    answers = [answer for question in asked for answer in question.answers]
    measured = {
        "questions": ([len(words(question.text)) for question in asked], "words"),
        "answers": ([len(words(answer)) for answer in answers], "words"),
        "documents": ([len(document.text) for document in documents], "characters"),
    }
    found = {}
    for name, (values, unit) in measured.items():
        ranked = sorted(values) or [0]
        # The smallest value that at least this share of the values do not exceed.
        median, most = (ranked[ceil(share * len(ranked)) - 1] for share in (0.5, 0.9))
        found[name] = Lengths(len(values), unit, ranked[0], median, most, ranked[-1])
    return found
