"""What settings made of a question: asked in a thread of their own, stage by stage, kept while the kernel lives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock, Thread

from rag_lab._kit.wording import letters
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError, RagLabError
from rag_lab.evaluation.registry import parse_name
from rag_lab.experiment.forecast.cost_estimate import ASSUMED_S
from rag_lab.notebook.bench.side_by_side import Column, SideBySide
from rag_lab.notebook.bench.toggles import Toggles
from rag_lab.pipeline import Pipeline
from rag_lab.records import Hit, Question, Trace
from rag_lab.redaction import redact_sentence
from rag_lab.stages.run_stage import run_stage

_ONE_AT_A_TIME = Lock()  # two benches of a kernel share its models
_WAITING = "its first step"  # of a setting whose turn has not come
_ANSWERS = ("generate", "parse")
_SEARCH_S = 0.5  # the first search of a kernel waits for the embedding model, the others do not


class Stopped(Exception):  # noqa: N818 - it is no error
    """Somebody asked for an end."""


class Job(Thread):
    """Work in its own thread: `work` calls `step` where it may end; `ended` is called at the end, in that thread."""

    def __init__(self, work: Callable[[Job], None], ended: Callable[[Job], None]) -> None:
        super().__init__(name="bench", daemon=True)
        self.step_now, self.share = "", 0.0
        self.error: RagLabError | None = None
        self.is_running, self.is_stopped = True, False
        self.is_stopping = False  # an end was asked for; what is being computed is finished first
        self._work, self._ended = work, ended

    def wait(self) -> None:
        """Wait for the end; an interrupt of the kernel stops the work."""
        try:
            self.join()
        except KeyboardInterrupt:
            self.stop()
            raise

    def stop(self) -> None:
        """End at the next step: a call of a model that runs is waited for, and remembered."""
        self.is_stopping = True

    def step(self, name: str, share: float) -> None:
        """Enter a step, when this `share` of the work is done, from 0 to 1; raise `Stopped` if an end was asked for."""
        self.step_now, self.share = name, share
        if self.is_stopping:
            raise Stopped

    def run(self) -> None:
        """Do the work; whatever it raises ends it, and the bench goes on."""
        try:
            with _ONE_AT_A_TIME:
                self._work(self)
        except Stopped:
            self.is_stopped = True
        except RagLabError as error:
            self.error = error
        except Exception as error:  # of a library, or of a custom module
            self.error = RagLabError(f"{type(error).__name__}: {redact_sentence(' '.join(str(error).split()))[:400]}")
            self.error.__cause__ = error
        finally:
            self.is_running = False
            self._ended(self)


class Answers:
    """The settings that were asked last, and every trace that came to its end; all share open indexes."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self._asked: Question | None = None
        self._settings: tuple[PipelineConfig, ...] = ()
        self._pipelines: dict[str, Pipeline] = {}  # by setting
        self._traces: dict[tuple[str, Question], Trace] = {}  # by setting and question
        self._live: dict[str, Trace] = {}  # what settings made that have not come to their end, or may do better
        self._steps: dict[str, str] = {}  # where these are, or were stopped
        self._problems: dict[str, RagLabError] = {}  # what kept these from going on

    def of(self, setting: PipelineConfig) -> Pipeline:
        """Return the pipeline of a setting."""
        if setting.identity not in self._pipelines:
            self._pipelines[setting.identity] = self.pipeline.set(setting.flat())
        return self._pipelines[setting.identity]

    def watched(self, pipeline: Pipeline) -> None:
        """Go on with another pipeline on the same documents, which reports what it embeds to another bench."""
        self.pipeline = pipeline
        self._pipelines.clear()

    def run(self, asked: Question, settings: Sequence[PipelineConfig], job: Job, changed: Callable[[], None]) -> None:
        """Answer by every setting, the newest (the last) first: the others are remembered mostly.

        What keeps one from going on keeps none of the others. `changed` is called after each step.
        """
        self._asked, self._settings = asked, tuple(settings)
        self._live, self._problems = {}, {}
        todo = [setting for setting in reversed(settings) if (setting.identity, asked) not in self._traces]
        self._steps = {setting.identity: _WAITING for setting in todo}
        for n, setting in enumerate(todo):

            def enter(step: str, share: float, setting: PipelineConfig = setting, n: int = n) -> None:
                self._steps[setting.identity] = step
                job.step(f"{letters(settings.index(setting))}: {step}", (n + share) / len(todo))
                changed()

            try:
                self._answer(asked, setting, enter)
            except RagLabError as error:
                self._problems[setting.identity] = error
        if settings[-1].identity in self._problems:
            raise self._problems[settings[-1].identity]

    def _answer(self, asked: Question, setting: PipelineConfig, enter: Callable[[str, float], None]) -> None:
        """Keep the trace after each stage, as `Pipeline.run` makes it: what was remembered is not computed again."""
        pipeline = self.of(setting)
        enter("documents", 0.0)
        pipeline.prepare([asked])
        (located,), _ = pipeline.locate([asked])
        trace = Trace(located)
        stages = [stage for stage, _ in pipeline.steps([located])]
        for n, stage in enumerate(stages):
            enter(stage.name, n / len(stages))
            (trace,) = run_stage(stage, [trace], pipeline.memory, replayed=pipeline.parts.replayed)
            self._live[setting.identity] = trace
        del self._steps[setting.identity]
        if not trace.curable:
            self._traces[setting.identity, asked] = trace

    def side_by_side(self, toggles: Toggles) -> SideBySide | None:
        """Return the settings that were asked last, as far as they came; None before the first run."""
        if self._asked is None:
            return None
        columns = []
        for n, setting in enumerate(self._settings):
            name = setting.identity

            def text_of(hit: Hit, setting: PipelineConfig = setting) -> str:  # an index is opened where a text is shown
                return self.of(setting).index.text(hit)

            column = Column(
                letter=letters(n),
                label=toggles.label(setting),
                config=setting,
                trace=self._traces.get((name, self._asked), self._live.get(name)),
                text_of=text_of,
                is_pinned=setting in toggles.pinned,
                unfinished=self._steps.get(name, ""),
                problem=str(self._problems.get(name, "")),
            )
            columns.append(column)
        return SideBySide(self._asked, tuple(columns))

    def seconds_a_question(self, settings: Sequence[PipelineConfig], metrics: Sequence[str]) -> float:
        """Return about how many seconds a comparison takes for each question, work that settings share counted once.

        What was replayed has the seconds of the first time, to the last digit, so equal records are one computation. A
        setting that has not been run is taken to be as slow as a packaged model on two cores.
        """

        def reads_answers(metric: str) -> bool:
            try:
                return parse_name(metric).info.reads_answers
            except ConfigError:  # which is said where it is asked for
                return True

        answers = not metrics or any(map(reads_answers, metrics))
        known, assumed_s = set(), 0.0
        for setting in settings:
            stages = next((trace.stages for (name, _), trace in self._traces.items() if name == setting.identity), ())
            for one in stages:
                is_search = one.stage.startswith("search_")
                known.add((one.stage, min(one.seconds, _SEARCH_S) if is_search else one.seconds))
            if not stages:
                query, is_reranked = setting.query, setting.rerank.name in ("cross_encoder", "query_likelihood")
                calls = query.understands + (query.hyde != "none") * query.hyde_n + (query.phrasings > 0)
                calls += answers and setting.answer.name == "llm"
                assumed_s += calls * ASSUMED_S["call"] + is_reranked * setting.rerank.input_limit * ASSUMED_S["pair"]
        return assumed_s + sum(seconds for stage, seconds in known if answers or stage not in _ANSWERS)
