import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from browser import browser, needs_browser, watch
from hostile_text import EVIL, controls_in, write_evil_dataset

from rag_lab.config import dotted_keys
from rag_lab.notebook import clicked_page
from rag_lab.notebook.bench.bench import Bench, BenchWidget

PATIENCE_S = 60
SCRIPT = '<img src=x onerror="alert(1)"><script>alert(2)</script>'


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a notebook's file would hold after each display and update of it."""
    seen: list[str] = []

    class Handle:
        def __init__(self, display_id: str) -> None:
            self.display_id = display_id

        def display(self, shown: Any) -> None:
            seen.append(shown.data)

        update = display

    monkeypatch.setattr(clicked_page, "DisplayHandle", Handle)
    monkeypatch.setattr(clicked_page, "display", lambda shown: None)
    return seen


def test_the_browser_gets_every_field_and_how_it_stands(bench: Bench) -> None:
    widget = BenchWidget(bench)
    drawn = [field["key"] for box in widget.drawing for field in box["fields"]]
    assert sorted(drawn) == sorted(dotted_keys()) == sorted(widget.state["values"])
    assert [box["title"] for box in widget.drawing if box["stage"]] == [
        *("Understand", "HyDE", "Search", "Merge", "Rerank", "Select", "Context", "Answer")
    ]
    assert set(widget.state["off"]) == {"understand", "hyde", "rerank", "select", "answer"}
    assert widget.questions[1] == ["q2", "What does alarm A7 of the oven mean?"]


def test_the_rules_of_the_page_are_sent_as_they_are_written(bench: Bench) -> None:
    assert 'content:"→"' in BenchWidget(bench)._css and "&gt;" not in BenchWidget(bench)._css


def test_what_a_user_does_is_a_message_and_what_it_changed_goes_out_again(bench: Bench, tmp_path: Path) -> None:
    widget = BenchWidget(bench)
    widget.do({"do": "set", "key": "rerank.final_k", "value": 1})
    assert widget.state["values"]["rerank.final_k"] == 1 and widget.state["changed"] == ["rerank.final_k"]
    assert "final_k: 1" in widget.state["yaml"] and "'rerank.final_k': 1" in widget.state["python"]
    widget.do({"do": "choose", "value": 1})
    assert widget.state["question"] == "What does alarm A7 of the oven mean?"
    widget.do({"do": "run"})
    bench.job.join()
    assert widget.state["columns"] == [["A", False], ["B", False]] and not widget.state["running"]
    assert "The burner is locked out." in widget.html and widget.state["done"]["search"]["bad"] == ""
    widget.do({"do": "pin", "value": "A"})
    assert widget.state["columns"] == [["A", True], ["B", False]]
    widget.do({"do": "add", "value": str(tmp_path / "mine.yaml")})
    assert (tmp_path / "mine.yaml").is_file() and "rag-lab sweep" in widget.state["said"]
    widget.do({"do": "reset"})
    assert widget.state["changed"] == []


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"do": "set", "key": "rerank.final_k", "value": 1000}, "less than or equal to 100"),
        ({"do": "set", "key": "rerank.final_k", "value": None}, "valid integer"),
        ({"do": "set", "key": "nothing", "value": 1}, "Unknown parameter"),
        ({"do": "try", "value": 0, "metrics": ""}, "2 questions or more"),
        ({"do": "try", "value": 5, "metrics": "x.y"}, "one setting only"),
        ({"do": "pin", "value": "A"}, "run first"),
        ({"do": "variants", "value": "/nowhere"}, "no run folder"),
        ({"do": "add", "value": "notes.txt"}, "ends in .yaml"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_nothing_has_changed(
    bench: Bench, message: dict[str, Any], said: str
) -> None:
    widget = BenchWidget(bench)
    before = widget.state["values"]
    widget.do(message)
    assert said in widget.state["said"] and widget.state["bad"]
    assert widget.state["values"] == before


def test_a_run_leaves_the_kernel_free_and_is_stopped_by_a_message(answering: Callable[..., Bench]) -> None:
    begun, go_on = Event(), Event()

    def slow(request: object) -> str:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return '{"answer": "290 bar", "citations": [1]}'

    widget = BenchWidget(answering(slow))
    widget.do({"do": "run"})
    assert begun.wait(PATIENCE_S)
    assert widget.state["running"] and (widget.state["step"], widget.state["box"]) == ("A: generate", "answer")
    assert 0 < widget.state["share"] < 1
    end = time.monotonic() + PATIENCE_S
    while "press.md" not in widget.html:  # what was found stands there before the answer comes
        assert time.monotonic() < end
        time.sleep(0.05)
    widget.do({"do": "run"})
    assert "runs already" in widget.state["said"]
    widget.do({"do": "stop"})
    assert widget.state["stopping"]
    go_on.set()
    widget._bench.job.join()
    assert widget.state["said"].startswith("Stopped before A: parse") and not widget.state["running"]


def test_the_last_result_stays_in_the_notebook_as_html_that_needs_no_kernel(bench: Bench, kept: list[str]) -> None:
    widget = BenchWidget(bench)
    widget.show()
    assert "Nothing has been run on this bench yet." in kept[-1]
    bench.set("retrieval.mode", "tfidf")
    bench.run()
    assert f'data-kept="{widget.kept}"' in kept[-1] and "<script" not in kept[-1]
    for shown in ("<style>", "290 bar", "mode = tfidf", "press.md"):
        assert shown in kept[-1]
    n = len(kept)
    bench.set("rerank.final_k", 1)
    assert len(kept) == n  # a toggle alone changes no result


def test_a_bench_made_again_shows_the_last_result_at_once(bench: Bench, dataset: Path, kept: list[str]) -> None:
    bench.run()
    again = Bench(dataset, bench.toggles.start, home=bench.pipeline.home)
    BenchWidget(again).show()
    assert "290 bar" in kept[-1]


@needs_browser
@pytest.mark.slow
def test_texts_from_outside_are_shown_and_do_nothing(bench: Bench, tmp_path: Path, kept: list[str]) -> None:
    folder = write_evil_dataset(tmp_path)
    (folder / "corpus" / "script.txt").write_text(f"The valve {SCRIPT} opens {EVIL}.".replace("\0", ""))
    evil = Bench(folder, bench.config, question=f"Which valve {SCRIPT} opens {EVIL}?", home=tmp_path / "home")
    evil.set("retrieval.mode", "tfidf")
    widget = BenchWidget(evil)
    widget.show()
    evil.run()
    sent = [widget.html, kept[-1], *(text for pair in widget.questions for text in pair), widget.state["question"]]
    assert [found for text in sent for found in controls_in(text)] == []
    (tmp_path / "kept.html").write_text(f"<!doctype html><meta charset=utf-8>{kept[-1]}{widget.html}")
    with browser() as page:
        seen = watch(page)
        page.goto((tmp_path / "kept.html").as_uri())
        assert "The valve" in page.locator(".bench-result").first.text_content()
        assert (seen.dialogs, seen.requests, seen.errors) == ([], [], [])
        assert page.locator("img, script").count() == 0


def test_what_takes_over_two_minutes_is_tried_when_it_is_asked_for_twice(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.set("rerank.final_k", 1)
    widget, begun = BenchWidget(bench), []
    monkeypatch.setattr(bench, "try_on", lambda n, metrics, wait: begun.append(n))
    widget.do({"do": "try", "value": 3, "metrics": "retrieval.mrr@5"})
    assert begun == [3] and widget.state["try_s"] == 0
    monkeypatch.setattr(type(bench), "seconds_to_try", 60.0)
    for n in (4, 3, 3):
        widget.do({"do": "try", "value": n, "metrics": "retrieval.mrr@5"})
        if n == 4:
            assert "This takes about 4 minutes: press Try on again to begin" in widget.state["said"]
    assert begun == [3, 3]  # the last, which was asked for twice
