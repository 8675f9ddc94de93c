"""What a variant leaves: `traces.jsonl`, `scores.parquet`, and `live.json` while it runs, as a sweep has one, too.

A trace is one line of JSON in which nothing stands twice, see `docs/report.md`. It has the fields of `Trace`, without
those that hold what they hold before any stage has run, and these two:

- `found`: each hit of the trace once, without the score that orders a list. A list of hits is a list of
  `[place in found, score]`, or `{"first": n, "of": "hits.bm25"}` where it is the beginning of another list.
- `texts`: long texts that no earlier line has. All of a file are numbered in their order, from 0; `{"text": 3}` stands
  for one, and a prompt in which passages stand is a list of pieces.

Files are written whole, without secrets. A `live.json` is gone at a proper end: one that is left names a process that
was killed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from rag_lab._kit.digest import whole_file
from rag_lab._kit.machine import Process
from rag_lab._kit.section import adapter_of
from rag_lab.errors import DamagedFile
from rag_lab.records import Hit, Question, Score, Trace
from rag_lab.redaction import hide_known, hide_known_jsons

if TYPE_CHECKING:
    import pandas as pd

_TRACE: TypeAdapter[Trace] = TypeAdapter(Trace)
_QUESTION: TypeAdapter[Question] = TypeAdapter(Question)
_HITS: TypeAdapter[tuple[Hit, ...]] = TypeAdapter(tuple[Hit, ...])
_LISTS = ("base_hits", "candidates", "reranked", "ranked")
_SEARCH = "hits."  # before the name of a search, where a list is named
_LONG_CHARS = 100  # a shorter text takes no more room than its number

Lists = dict[str, tuple[Hit, ...]]
Questions = dict[bytes, Question]  # by their JSON


def _written(trace: Trace, numbers: dict[str, int]) -> str:
    """Return the trace as a line of JSON, without its end; long texts that are new get the next of `numbers`."""
    separate = {"texts", "hits", *_LISTS}
    data = _TRACE.dump_python(trace, mode="json", exclude=separate, exclude_defaults=True)
    data |= _written_hits(trace)
    n_before = len(numbers)
    for holder, name in _texts_in(data):
        text = holder[name]
        if len(text) >= _LONG_CHARS:
            holder[name] = {"text": numbers.setdefault(text, len(numbers))}
    # The prompt is split at the first place of each text that has a number, as it follows the one before.
    pieces: list[Any] = []
    rest = trace.prompt or ""
    for passage in trace.passages if rest else ():
        before, found, after = rest.partition(passage.text) if passage.text in numbers else (rest, "", "")
        if found:
            pieces += [before, {"text": numbers[passage.text]}]
            rest = after
    if pieces:
        data["prompt"] = [*pieces, rest]
    if new := list(numbers)[n_before:]:
        data["texts"] = new
    return to_json(data).decode()


def _read(line: bytes, texts: list[str], known: Questions) -> Trace:
    """Return the trace that `_written` wrote; texts and hits may also stand in full."""

    def in_full(written: str | Mapping[str, int]) -> str:
        return written if isinstance(written, str) else texts[written["text"]]

    data: dict[str, Any] = from_json(line)
    texts += data.pop("texts", ())
    for holder, name in _texts_in(data):
        holder[name] = in_full(holder[name])
    if isinstance(data.get("prompt"), list):
        data["prompt"] = "".join(map(in_full, data["prompt"]))
    if "found" in data:
        data |= _read_hits(data)
    asked = to_json(data["question"])
    if asked not in known:
        known[asked] = _QUESTION.validate_python(data["question"])
    data["question"] = known[asked]
    return _TRACE.validate_python(data)


def _texts_in(data: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield where passages may stand in full: the object, and its field."""
    question = data["question"]
    for evidence in (*question.get("evidence", ()), *question.get("not_relevant", ())):
        if evidence.get("context"):
            yield evidence, "context"
    for passage in data.get("passages", ()):
        yield from ((passage, name) for name in ("text", "parent_text") if passage.get(name))


def _written_hits(trace: Trace) -> dict[str, Any]:
    """Return the lists of hits of a trace as they are written; nothing for lists that are empty."""
    places: dict[tuple[Any, ...], int] = {}
    found: list[dict[str, Any]] = []

    def place(hit: Hit) -> int:
        key = (hit.chunk_id, hit.span, *hit.scores.items())
        if key not in places:
            places[key] = len(found)
            page = {} if hit.page is None else {"page": hit.page}
            where = {"parent_id": hit.parent_id, "chunk_id": hit.chunk_id, "source": hit.source, **page}
            found.append({**where, "start": hit.start, "end": hit.end, "scores": hit.scores})
        return places[key]

    # In the order in which they came about.
    named = {f"{_SEARCH}{search}": hits for search, hits in trace.hits.items()}
    named |= {name: hits for name in _LISTS if (hits := getattr(trace, name))}
    written: Lists = {}
    lists: dict[str, Any] = {}
    for name, hits in named.items():
        longer = next((other for other, long in written.items() if hits and long[: len(hits)] == hits), None)
        lists[name] = {"first": len(hits), "of": longer} if longer else [[place(hit), hit.score] for hit in hits]
        written[name] = hits
    searches = {name.removeprefix(_SEARCH): one for name, one in lists.items() if name.startswith(_SEARCH)}
    others = {name: one for name, one in lists.items() if one and not name.startswith(_SEARCH)}
    return {"found": found, "hits": searches, **others} if lists else {}


def _read_hits(data: dict[str, Any]) -> dict[str, Any]:
    """Return the lists of hits of what `_written_hits` wrote; lists that begin alike share their hits."""
    found = _HITS.validate_python([{"page": None, "score": 0.0, **one} for one in data.pop("found")])
    named = {f"{_SEARCH}{search}": one for search, one in data["hits"].items()}
    named |= {name: data[name] for name in _LISTS if name in data}
    lists: Lists = {}
    for name, written in named.items():
        if isinstance(written, dict):
            lists[name] = lists[written["of"]][: written["first"]]
            continue
        lists[name] = tuple(  # copied field by field, as a run has hundreds of thousands
            Hit(one.parent_id, one.chunk_id, one.source, one.page, one.start, one.end, float(score), one.scores)
            for one, score in ((found[place], score) for place, score in written)
        )
    searches = {search: lists.pop(f"{_SEARCH}{search}") for search in data["hits"]}
    return {"hits": searches, **lists}


def write_traces(path: Path, traces: Iterable[Trace]) -> None:
    """Write `traces` to `path`, replacing it at the end: the file's presence means that it is whole."""
    numbers: dict[str, int] = {}
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in hide_known_jsons(_written(trace, numbers) for trace in traces))


def read_traces(path: Path, known: Questions | None = None) -> list[Trace]:
    """Read the traces that `write_traces` wrote, in order; a DamagedFile names the first line that is no trace.

    `known` are the questions of files that were read before, which are kept once; those of this one are added.
    """
    texts: list[str] = []
    known = {} if known is None else known
    traces: list[Trace] = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                traces.append(_read(line, texts, known))
            except (ValueError, TypeError, AttributeError, LookupError):  # all but the first: JSON, and no trace
                raise DamagedFile(path, f"line {number} is no trace") from None
    return traces


# Column -> pandas dtype. `value` is null in the file, NaN in the frame, where `status` is not `scored`.
COLUMNS = {
    **{"variant_id": "string", "question_id": "string", "metric": "string", "repeat": "int64", "value": "float64"},
    **{"status": "string", "reason": "string", "judge": "string", "seconds": "float64", "calls": "int64"},
    "truncated_tokens": "int64",
}


def to_frame(by_variant: Mapping[str, Iterable[Score]]) -> pd.DataFrame:
    """Return one row a score of each variant, in order, with the columns of `COLUMNS`."""
    import pandas as pd

    read = attrgetter(*(name for name in COLUMNS if name != "variant_id"))
    rows = [(variant_id, *read(score)) for variant_id, scores in by_variant.items() for score in scores]
    found = pd.DataFrame(rows, columns=list(COLUMNS))
    found["reason"] = [hide_known(reason) if reason else "" for reason in found["reason"]]
    return found.astype(COLUMNS)


def write_scores(path: Path, scores: Mapping[str, Iterable[Score]] | pd.DataFrame) -> None:
    """Write scores by variant, or a table with the columns of `COLUMNS`, whole or not at all."""
    frame = to_frame(scores) if isinstance(scores, Mapping) else scores
    with whole_file(path) as partial:
        frame.to_parquet(partial, engine="pyarrow", index=False)


def read_scores(*paths: Path) -> pd.DataFrame:
    """Read what `write_scores` wrote, in order, one file at least, one after the other."""
    import pandas as pd

    frames = []
    for path in paths:
        try:
            frames.append(pd.read_parquet(path, engine="pyarrow").astype(COLUMNS))
        except (OSError, ValueError, KeyError, TypeError):  # pyarrow's own errors are the first two
            raise DamagedFile(path, "it holds no scores") from None
    return pd.concat(frames, ignore_index=True)


LIVE_FILE = "live.json"  # in the folder of a run, of its sweep; in that of a variant, of that variant

Live = TypeVar("Live", bound="LiveVariant | LiveSweep")


@dataclass(frozen=True, slots=True)
class LiveVariant:
    """A variant at work."""

    stage: str
    stage_began: float  # in seconds since 1970
    done: int = 0  # questions that have passed the stage
    total: int | None = None  # None where nothing is counted
    known: int = 0  # that were there when it began
    remembered: int = 0  # results of all stages
    computed: int = 0
    failed: int = 0
    fell_back: int = 0
    reason: str = ""  # of the last one that failed or fell back


@dataclass(frozen=True, slots=True)
class LiveEnd:
    """How a variant ended in this start of the sweep: `ok`, `failed` or `stopped`, and why."""

    status: str
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class LiveSweep:
    """A sweep at work: the process that conducts it, when it began and when it last said so, in seconds since 1970."""

    process: Process
    began: float
    seen: float
    jobs: int  # variants that run at a time, at most
    step: str  # `plan`, `check`, `variants` or `report`
    running: dict[str, float] = field(default_factory=dict)  # the ids of variants, and when each began
    ended: dict[str, LiveEnd] = field(default_factory=dict)  # in this start


def read_live(folder: Path, kind: type[Live]) -> Live | None:
    """Return what a variant or a sweep says of itself; None where it says nothing, or nothing that can be read."""
    found: Live | None = None
    with suppress(OSError, ValidationError):  # it has not begun, has ended, or the disk is full
        found = adapter_of(kind).validate_json((folder / LIVE_FILE).read_bytes())
    return found
