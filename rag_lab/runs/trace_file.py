"""One trace as one line of JSON in which nothing stands twice: `traces.jsonl`, see `docs/report.md`.

A line has the fields of `Trace`, without those that hold what they hold before any stage has run, and these two:

- `found`: each hit of the trace once, without the score that orders a list. A list of hits is a list of
  `[place in found, score]`, or `{"first": n, "of": "hits.bm25"}` where it is the beginning of another list.
- `texts`: long texts that no earlier line has. All of a file are numbered in their order, from 0; `{"text": 3}` stands
  for one, and a prompt in which passages stand is a list of pieces.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from rag_lab._kit.digest import whole_file
from rag_lab.errors import DamagedFile
from rag_lab.records import Hit, Question, Trace
from rag_lab.redaction import hide_known_jsons

_TRACE: TypeAdapter[Trace] = TypeAdapter(Trace)
_QUESTION: TypeAdapter[Question] = TypeAdapter(Question)
_HITS: TypeAdapter[tuple[Hit, ...]] = TypeAdapter(tuple[Hit, ...])
_LISTS = ("base_hits", "candidates", "reranked", "ranked")
_SEARCH = "hits."  # before the name of a search, where a list is named
_LONG_CHARS = 100  # a shorter text takes no more room than its number
_HAD_A_FIELD = ("dense", "bm25", "tfidf", "hyde")  # searches, in traces that were written before `Trace.hits`

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
    """Return the trace that `_written` wrote, or an earlier version, which wrote everything in full.

    Raises:
        ValueError, TypeError, AttributeError, LookupError: if it is none.
    """

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
    earlier = {name: data.pop(f"{name}_hits") for name in _HAD_A_FIELD if f"{name}_hits" in data}
    return _TRACE.validate_python({"hits": earlier, **data})


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
        ranked = []
        for place, score in written:
            one = found[place]  # copied field by field, as a run has hundreds of thousands
            ranked.append(
                Hit(one.parent_id, one.chunk_id, one.source, one.page, one.start, one.end, float(score), one.scores)
            )
        lists[name] = tuple(ranked)
    searches = {search: lists.pop(f"{_SEARCH}{search}") for search in data["hits"]}
    return {"hits": searches, **lists}


def write_traces(path: Path, traces: Iterable[Trace]) -> None:
    """Write `traces` to `path`, replacing it at the end: the file's presence means that it is whole.

    Control characters stay as they are, escaped where JSON wants it; secrets that this process knows are hidden.
    """
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
