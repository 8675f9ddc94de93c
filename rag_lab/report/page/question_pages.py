"""The list of questions: a line for each, with what it is filtered by, and what every variant did behind it.

That is in the page itself where it is small enough, and otherwise in a page a question beside it.
"""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Any

from markupsafe import Markup

from rag_lab._kit.digest import whole_file
from rag_lab._kit.machine import in_background
from rag_lab._kit.wording import DASH, number, plain
from rag_lab.comparison.by_question import QuestionValues, cards, question_values
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.trace_findings import state_names
from rag_lab.errors import RagLabError
from rag_lab.records import Question
from rag_lab.redaction import shown
from rag_lab.report.page.templates import anchors, asset, macro, render, script_digest

FOLDER = "questions"  # of the pages, beside the report
_MOST_CELLS = 12  # variants of a grid; of more the worst and the best are named
MOST_CHARS = 4_000_000  # of what stands behind the list in the report's own page


def question_list(comparison: Comparison) -> dict[str, Any]:
    """Return what the list's template shows beside `bodies`, what stands behind each question."""
    asked, names = comparison.asked, anchors(comparison.asked)
    found = question_values(comparison)
    strips = _cells(comparison, found)
    tags = list(dict.fromkeys(tag for question in asked.values() for tag in question.tags))
    classes = list(dict.fromkeys(question.query_class or "" for question in asked.values()))
    number_of = {tag: place for place, tag in enumerate(tags)}
    evidence = comparison.evidence
    bits = {state: 1 << place for place, state in enumerate(evidence.states)}
    # For the script: numbers, letters and hexadecimal digits, nothing that came from outside.
    data = {
        "variants": list(comparison.codes.values()),
        "values": list(found.values.values()),
        "higher": [scale is None or scale.higher_is_better for scale in map(comparison.scales.get, found.values)],
        "marks": found.marks,
        "answers": found.answers,
        "read": found.read,
        "classes": [question.query_class or "none" for question in asked.values()],
        "tags": [[number_of[tag] for tag in question.tags] for question in asked.values()],
        # A number a variant for each question: a bit for each state in which a piece of its evidence ended.
        "evidence": [
            [sum(bits[state] for state in evidence.by_question.get((name, v), ())) for v in comparison.codes]
            for name in ([] if evidence.items.empty else asked)
        ],
    }
    return {
        "lines": [
            {"question": question, "anchor": names[one], "strip": strip}
            for (one, question), strip in zip(asked.items(), strips, strict=True)
        ],
        "folder": FOLDER,
        "wide": len(comparison.codes) > _MOST_CELLS,
        "directed_metrics": [(metric, comparison.directed(metric)) for metric in found.values],
        "classes": [(name or "none", name or "no class") for name in classes],
        "tags": [(tag, tag) for tag in tags],
        "evidence_states": [(state, name.name) for state, name in state_names(evidence).items()],
        "values": Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")),  # noqa: S704 -- see above
    }


def _cells(comparison: Comparison, found: QuestionValues) -> list[Markup]:
    """Return for each question a cell a variant: its main metric, and its answer where the pointer rests."""
    main = comparison.main_metric
    if main is None:
        return [Markup()] * len(found.questions)
    codes = list(comparison.codes.values())
    # How the first answer to each question begins, by question and code; nothing where it abstained.
    answers: dict[tuple[str, str], str] = {}
    for variant, traces in comparison.traces.items():
        for trace in traces:
            if trace.answer is not None and trace.answer.text:
                key = trace.question.question_id, comparison.codes[variant]
                answers.setdefault(key, f": {shorten(trace.answer.text, 120)}")
    scale = comparison.scales.get(main)
    low, high = (0.0, 1.0) if scale is None or scale.low is None or scale.high is None else (scale.low, scale.high)
    rows = []
    for question, row in zip(comparison.asked, found.values[main], strict=True):
        values = dict(zip(codes, map(number, row), strict=True))
        known = [value for value in values.values() if value is not None]
        if len(values) > _MOST_CELLS:
            rows.append(Markup.escape(f"{plain(min(known))} to {plain(max(known))}" if known else "not scored"))
            continue
        cells = Markup().join(
            Markup('<i style="--v:{:.2f}" title="{}">{}</i>').format(
                max(0.0, min(1.0, ((low if value is None else value) - low) / ((high - low) or 1.0))),
                f"{code} {plain(value)}{answers.get((question, code), '')}",
                plain(value).removeprefix("0")[:4] if value is not None else DASH,
            )
            for code, value in values.items()
        )
        label = ", ".join(f"{code} {'not scored' if v is None else plain(v)}" for code, v in values.items())
        rows.append(Markup('<span class="cells" role="img" aria-label="{}">{}</span>').format(label, cells))
    return rows


def bodies_or_pages(
    comparison: Comparison, folder: Path, report: str, most_chars: int | None = MOST_CHARS
) -> dict[str, Markup]:
    """Return what every variant did with each question, or write it to `folder`, a page a question, and return nothing.

    Pages of an earlier report are removed from `folder`. `report` is the file name of the report, beside it; more than
    `most_chars` characters in all are written to pages, where it is None never.
    """
    bodies: dict[str, Markup] = {}
    asked, names, size, is_paged = comparison.asked, anchors(comparison.asked), 0, False
    body = partial(macro("card.html", "body"), metrics=comparison.quality_metrics, asked=False)
    for card in cards(comparison, comparison.why_failed):
        bodies[card.question.question_id] = body(card)
        size += len(bodies[card.question.question_id])
        if is_paged := most_chars is not None and size > most_chars:
            break
    if is_paged:
        write, rest = _page_writer(comparison, names, folder, report), list(asked)[len(bodies) :]

        def write_some(only: Sequence[str]) -> None:
            for card in cards(comparison, comparison.why_failed, only):
                write(card.question, body(card))

        with in_background(partial(write_some, rest[::2])) as others:
            for name in list(bodies):
                write(asked[name], bodies.pop(name))
            write_some(rest[1::2])
            others()
    # Pages of an earlier report are known by their name; the folder goes once it is empty.
    if folder.is_dir():
        kept = set(names.values()) if is_paged else set()
        for path in folder.glob("q-*.html"):
            if path.stem not in kept:
                path.unlink()
        if not any(folder.iterdir()):
            folder.rmdir()
    return bodies


def _page_writer(
    comparison: Comparison, names: Mapping[str, str], folder: Path, report: str
) -> Callable[[Question, Markup], None]:
    """Return what writes the page of a question: they differ in few places, and all else is rendered once."""
    order, run = list(names.values()), comparison.run.name
    position = {anchor: place for place, anchor in enumerate(order)}
    script = asset("pair.js")
    slots = {name: f"{name}{uuid.uuid4().hex}" for name in ("title", "top", "body")}
    page = render(
        "question_page.html",
        c=comparison,
        style=asset("card.css") + asset("style.css") + asset("questions.css"),
        script=script,
        script_digest=script_digest(script),
        **slots,
    )
    head, rest = page.split(slots["title"])
    between, rest = rest.split(slots["top"])
    form, foot = rest.split(slots["body"])
    mark = f" {uuid.uuid4().hex} "  # secrets are looked for in all that differs at once

    def write(question: Question, body: Markup) -> None:
        anchor = names[question.question_id]
        place = position[anchor]
        before = order[place - 1] if place else ""
        after = order[place + 1] if place + 1 < len(order) else ""
        top = macro("card.html", "content")(question, run, f"../{report}#{anchor}", before, after)
        title = Markup("{}: {}").format(question.question_id, run)
        title_text, top_text, body_text = shown(mark.join((title, top, body))).split(mark)
        write_text(folder / f"{anchor}.html", head + title_text + between + top_text + form + body_text + foot)

    return write


def write_text(path: Path, text: str) -> None:
    """Write `text`, replacing `path` at the end: a file that is there is whole, and one that holds it is left."""
    try:
        if path.is_file() and path.read_bytes() == text.encode():
            return
        path.parent.mkdir(exist_ok=True)
        with whole_file(path) as partial:
            partial.write_bytes(text.encode())
    except OSError as error:
        where = path if path.parent.is_dir() else path.parent
        raise RagLabError(f"Cannot write {where}: {error.strerror}; make room or move away what is there.") from None
