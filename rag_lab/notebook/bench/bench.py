"""`Bench`, and how it stands in a browser: what it is goes out as traits, what its user does comes in as messages.

The browser holds no state: each message calls a method of the bench, and what that changed goes out again.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from threading import RLock, Timer, current_thread
from typing import Any
from uuid import uuid4

import traitlets
import yaml
from markupsafe import Markup, escape

from rag_lab.errors import ConfigError, RagLabError
from rag_lab.models.shared import small_model_note
from rag_lab.notebook.bench.answers import SideBySide
from rag_lab.notebook.bench.bench_work import EXPERIMENT, BenchWork, QuickComparison
from rag_lab.notebook.bench.toggles import BOXES, box_of_stage, fields, fields_of, is_off
from rag_lab.notebook.clicked_page import KeptWidget
from rag_lab.redaction import shown as safe
from rag_lab.report.page.templates import asset, render
from rag_lab.runs.run_folder import RunFolder

_FOLDER = Path(__file__).parent
_STYLE = asset("card.css") + asset("bench.css")
_MOST_OFFERED = 500  # questions in the list; others are found by id or text
_LONG_MINUTES = 2
_LIVE_EVERY_S = 0.25  # so often a result that is being made is drawn


def result_html(
    shown: SideBySide | None, compared: QuickComparison | None = None, *, is_running: bool = False, styled: bool = True
) -> str:
    """Return settings side by side; `styled` with the rules that they need where the page does not bring them."""
    records = [record for column in shown.columns for record in column.records] if shown else []
    models = {record.model for record in records if record.stage == "generate"}
    return render(
        "bench.html",
        shown=shown,
        answers=shown.answers() if shown else [],
        is_running=is_running,
        toy=next((note for model in models if (note := small_model_note(model, "an answer here"))), ""),
        compared=Markup(compared.html) if compared else "",  # noqa: S704 - a page of ours, which escapes
        compared_title=compared.title if compared else "",
        style=_STYLE if styled else "",
    )


class BenchWidget(KeptWidget):
    """One view of a bench; every trait is written here and read in the browser."""

    _esm = _FOLDER / "bench.js"
    _css = f"{_STYLE}{(_FOLDER / 'bench.css').read_text(encoding='utf-8')}"
    drawing: traitlets.List[Any] = traitlets.List().tag(sync=True)
    questions: traitlets.List[Any] = traitlets.List().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)
    runs: traitlets.List[Any] = traitlets.List().tag(sync=True)
    variants: traitlets.List[Any] = traitlets.List().tag(sync=True)
    heard = traitlets.Int().tag(sync=True)

    def __init__(self, bench: BenchWork) -> None:
        runs = sorted(safe(str(plan.parent)) for plan in Path("results").glob("*/plan.json"))
        drawing = [
            {
                "name": box.name,
                "title": box.title,
                "mains": list(box.mains),
                "stage": box.is_stage,
                "fields": [asdict(field) for field in fields_of(box)],
            }
            for box in BOXES
        ]
        super().__init__(drawing=drawing, kept=uuid4().hex, runs=runs)
        self.questions = [[safe(one.question_id), safe(one.text)] for one in bench.questions[:_MOST_OFFERED]]
        self._bench, self._drawn_at, self._in_file = bench, 0.0, ""
        self._warned: Any = None  # what was said to take long
        self._timer: Timer | None = None
        self._lock = RLock()  # what runs tells from its own thread
        self.on_msg(lambda _, content, __: self.do(content))
        bench.listeners.append(self.refresh)
        self.refresh()

    def do(self, message: Mapping[str, Any]) -> None:
        """Do what the user asked for; what cannot be done is said, and nothing has changed."""
        bench, value = self._bench, message.get("value")
        try:
            match message.get("do"):
                case "set":
                    bench.set(str(message["key"]), value)
                case "ask" if value != safe(bench.question):  # as it is shown, it may be other characters
                    bench.ask(str(value))
                case "choose":
                    bench.ask(bench.questions[int(str(value))].text)
                case "run":
                    bench.run(wait=False)
                case "stop":
                    bench.stop()
                case "reset":
                    bench.reset()
                case "pin":
                    bench.pin(str(value))
                case "try":
                    if not isinstance(value, int) or isinstance(value, bool) or value < 2:
                        raise ConfigError(f"A comparison takes 2 questions or more, got {escape(str(value))!s:.40}.")
                    names = [name.strip() for name in str(message.get("metrics", "")).split(",") if name.strip()]
                    wanted = (value, tuple(names), bench.toggles.side_by_side)
                    minutes = bench.seconds_to_try * min(value, len(bench.questions)) / 60
                    is_long = minutes > _LONG_MINUTES and wanted != self._warned  # only when it is asked for once more
                    self._warned = wanted if is_long else None
                    if is_long:
                        again = "press Try on again to begin, or try fewer questions"
                        bench.say(f"This takes about {minutes:,.0f} minutes: {again}.")
                    else:
                        bench.try_on(value, names, wait=False)
                case "variants":
                    self.variants = [[one.variant_id, safe(one.label)] for one in RunFolder.open(str(value)).variants]
                case "load":
                    bench.load(str(message["run"]), str(value))
                case "add":
                    bench.add_to_experiment(str(value))
        except RagLabError as error:
            bench.say(str(error), is_bad=True)
        self.heard += 1  # so that a control is set back also where nothing has changed

    def refresh(self) -> None:
        """Send how the bench stands; while something runs, the result at most a few times a second."""
        with self._lock:
            now = time.monotonic()
            self.state = _state(self._bench)
            if self._bench.is_running and now - self._drawn_at < _LIVE_EVERY_S:
                if self._timer is None or not self._timer.is_alive() or self._timer is current_thread():
                    self._timer = Timer(_LIVE_EVERY_S, self.refresh)  # draws what a long step would leave undrawn
                    self._timer.daemon = True
                    self._timer.start()
                return
            self.html, self._drawn_at = self._drawn(styled=False), now
            if self._handle and not self._bench.is_running and self.html != self._in_file:
                self._handle.update(self.still())

    def page(self) -> str:
        """Return the last result with its rules."""
        self._in_file = self.html
        return self._drawn(styled=True)

    def _drawn(self, styled: bool) -> str:
        bench = self._bench
        return result_html(bench.result, bench.compared, is_running=bench.is_running, styled=styled)


def _state(bench: BenchWork) -> dict[str, Any]:
    values, job, result = bench.config.flat(), bench.job, bench.result
    sent = dict(values)
    for key, value in values.items():
        if fields()[key].kind == "yaml":
            sent[key] = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True).strip() if value else ""
    done: dict[str, Any] = {}  # of each box that the newest setting has passed: seconds, and what was not as planned
    for record in bench.trace.stages if bench.trace else ():
        if box := box_of_stage(record.stage):
            before = done.setdefault(box.name, {"seconds": 0.0, "bad": "", "remembered": False})
            before["seconds"] += record.seconds
            before["remembered"] |= record.remembered
            before["bad"] = before["bad"] or (record.status if record.status != "ok" else "")
    return {
        "values": sent,
        "changed": sorted(bench.toggles.changes),
        "off": [box.name for box in BOXES if is_off(box, values)],
        "done": done,
        "box": box.name if job and (box := box_of_stage(job.step_now.partition(": ")[2])) else "",
        "question": safe(bench.question),
        "said": safe(bench.said),
        "bad": bench.is_bad,
        "running": bench.is_running,
        "stopping": bool(job and job.is_stopping),
        "step": safe(job.step_now) if job else "",
        "share": job.share if job else 0,
        "columns": [[one.letter, one.is_pinned] for one in result.columns] if result else [],
        "yaml": bench.as_yaml(),
        "python": bench.as_python(),
        "experiment": EXPERIMENT,
        "metrics": ", ".join(bench.metrics),
        "try_s": bench.seconds_to_try,
    }


class Bench(BenchWork):
    """Toggles for every stage, one question under several settings, and a quick comparison of them.

    The setting that was run last stays beside the new one, and both answer the same question. A bench goes on where
    the last one of its name stood in this kernel, so running its cell again undoes nothing.

    Args:
        documents: a data set's name, its folder, a folder of files, a `Dataset`, LangChain's documents, or a
            `Pipeline`.
        config: where the toggles start; the pipeline's, or the defaults, where None.
        question: text or id of the question in the box; where empty, the last bench's, or the data set's first.
        metrics: what `try_on` measures, the one that decides first; what the labels allow where none is given.
        name: of the bench; give a second bench of a notebook another one.
        home: where indexes and results are remembered; the workbench's folder where None.

    Example:
        >>> bench = Bench("plant_docs")
        >>> bench.set("rerank.name", "query_likelihood")
        >>> bench.config.rerank.name
        'query_likelihood'
    """

    def _ipython_display_(self) -> None:
        BenchWidget(self).show()
