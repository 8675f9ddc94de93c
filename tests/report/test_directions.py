"""A text from outside that is written from right to left turns nothing beside it."""

import json
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rag_lab.report.page.report_page import question_html, to_html
from rag_lab.report.shown_comparison import compare

TURN = "\u05d0"  # a letter of Hebrew; marks that turn the direction are shown as such (test_visible)
OUTSIDE = ("text", "quote", "content", "source", "question_id", "answers", "rejected_citations", "thinking") + (
    *("hypothetical", "search_query", "proposed_query", "phrasings", "raw_text", "prompt"),
)


class Turns(HTMLParser):
    """Collects the texts that hold the letter, by whether they stand in a `bdi`."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.depth = 0
        self.held: list[str] = []
        self.loose: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.depth += tag == "bdi"

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag == "bdi"

    def handle_data(self, data: str) -> None:
        if TURN in data:
            (self.held if self.depth else self.loose).append(data)


def turned(value: Any, inside: bool = False) -> Any:
    """Put the letter before every text that comes from outside."""
    if isinstance(value, dict):
        return {key: turned(one, key in OUTSIDE) for key, one in value.items()}
    if isinstance(value, list):
        return [turned(one, inside) for one in value]
    return TURN + value if inside and isinstance(value, str) else value


@pytest.fixture(scope="module")
def hostile(build: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = build.build_run(tmp_path_factory.mktemp("turned") / "run", 8, 3)
    for file in run.path.glob("variants/*/traces.jsonl"):
        lines = [json.dumps(turned(json.loads(line))) for line in file.read_text().splitlines()]
        file.write_text("\n".join(lines) + "\n")
    scores = run.scores()
    scores.assign(question_id=TURN + scores["question_id"].astype(str)).to_parquet(run.path / "scores.parquet")
    return run.path


def test_texts_from_outside_keep_their_direction_to_themselves(hostile: Path) -> None:
    comparison = compare(hostile)
    pages = [to_html(comparison), *(question_html(comparison, name) for name in comparison.questions["question_id"])]
    pages += [trace._repr_html_() for traces in comparison.traces.values() for trace in traces]
    for page in pages:
        found = Turns(page)
        assert found.loose == []
        assert found.held
