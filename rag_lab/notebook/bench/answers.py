"""What settings made of a question: asked in a thread of their own, stage by stage, kept while the kernel lives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Event, Lock, Thread

from rag_lab._kit.wording import letters
from rag_lab.config import PipelineConfig
from rag_lab.errors import RagLabError
from rag_lab.notebook.bench.side_by_side import Column, SideBySide
from rag_lab.notebook.bench.toggles import Toggles
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question, StageRecord, Trace
from rag_lab.redaction import redact_sentence
from rag_lab.stages.run_stage import run_stage

_ONE_AT_A_TIME = Lock()  # two benches of a kernel share its models


class Stopped(Exception):  # noqa: N818 - it is no error
    """Somebody asked for an end."""


class Job:
    """Work that has been started.

    Args:
        work: is given the job, and calls `step` where it may end.
        ended: called at the very end, in the same thread.
    """

    def __init__(self, work: Callable[[Job], None], ended: Callable[[Job], None]) -> None:
        self.step_now, self.share = "", 0.0
        self.error: RagLabError | None = None
        self.is_running, self.is_stopped = True, False
        self._work, self._ended = work, ended
        self._stop = Event()
        self._thread = Thread(target=self._run, name="bench", daemon=True)

    @property
    def is_stopping(self) -> bool:
        """Whether an end was asked for; what is being computed is finished first."""
        return self._stop.is_set()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end; an interrupt of the kernel stops the work."""
        try:
            self._thread.join()
        except KeyboardInterrupt:
            self.stop()
            raise

    def stop(self) -> None:
        """End at the next step: a call of a model that runs is waited for, and remembered."""
        self._stop.set()

    def step(self, name: str, share: float) -> None:
        """Enter a step, when this `share` of the work is done, from 0 to 1.

        Raises:
            Stopped: if somebody asked for an end.
        """
        self.step_now, self.share = name, share
        if self._stop.is_set():
            raise Stopped

    def _run(self) -> None:
        try:
            with _ONE_AT_A_TIME:
                self._work(self)
        except Stopped:
            self.is_stopped = True
        except RagLabError as error:
            self.error = error
        except Exception as error:  # of a library, or of a module of somebody's own: the bench goes on
            self.error = RagLabError(f"{type(error).__name__}: {redact_sentence(' '.join(str(error).split()))[:400]}")
            self.error.__cause__ = error
        finally:
            self.is_running = False
            self._ended(self)


OPENING = "documents"  # the step before all stages
Enter = Callable[[str, int, int], None]  # a step that begins, its number, and how many there are


def ask_in_steps(pipeline: Pipeline, question: Question, enter: Enter) -> Iterator[Trace]:
    """Yield the trace after each stage, as `Pipeline.run` makes it: what was remembered is not computed again.

    Args:
        pipeline: what is asked; its index is opened, and built where it is missing.
        question: one of the data set's, or one's own.
        enter: called before each step; what it raises ends the walk.
    """
    enter(OPENING, 0, 1)
    pipeline.prepare([question])
    (located,), _ = pipeline.locate([question])
    trace = Trace(located)
    stages = [stage for stage, _ in pipeline.steps([located])]
    for n, stage in enumerate(stages):
        enter(stage.name, n, len(stages))
        (trace,) = run_stage(stage, [trace], pipeline.memory, replayed=pipeline.parts.replayed)
        yield trace


WAITING = "its first step"  # of a setting whose turn has not come


class Answers:
    """The settings that were asked last, and every trace that came to its end.

    Args:
        pipeline: of any setting; its open indexes are shared by all.
    """

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
        """Go on with another pipeline on the same documents, which tells somebody else what it embeds."""
        self.pipeline = pipeline
        self._pipelines.clear()

    def begin(self, asked: Question, settings: Sequence[PipelineConfig]) -> None:
        """Choose what `run` asks."""
        self._asked, self._settings = asked, tuple(settings)
        self._live, self._steps, self._problems = {}, {}, {}

    def run(self, job: Job, changed: Callable[[], None]) -> None:
        """Answer by every setting, the newest first: the others are remembered mostly.

        What keeps one from going on keeps none of the others.

        Args:
            job: is told each step, and may end it.
            changed: called after each step.
        """
        asked, settings = self._asked, self._settings
        if asked is None:
            return
        todo = [setting for setting in reversed(settings) if (setting.identity, asked) not in self._traces]
        self._steps = {setting.identity: WAITING for setting in todo}
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

    def side_by_side(self, toggles: Toggles) -> SideBySide | None:
        """Return the settings that were asked last, as far as they came; None before the first run."""
        if self._asked is None:
            return None
        columns = (self._column(n, setting, self._asked, toggles) for n, setting in enumerate(self._settings))
        return SideBySide(self._asked, tuple(columns))

    def records(self, setting: PipelineConfig) -> Sequence[StageRecord]:
        """Return what each stage cost on a question that the setting was run on to its end; none where it was not."""
        return next((trace.stages for (name, _), trace in self._traces.items() if name == setting.identity), ())

    def _answer(self, asked: Question, setting: PipelineConfig, enter: Callable[[str, float], None]) -> None:
        for trace in ask_in_steps(self.of(setting), asked, lambda step, done, steps: enter(step, done / steps)):
            self._live[setting.identity] = trace
        del self._steps[setting.identity]
        if not trace.curable:
            self._traces[setting.identity, asked] = trace

    def _column(self, n: int, setting: PipelineConfig, asked: Question, toggles: Toggles) -> Column:
        name = setting.identity
        return Column(
            letter=letters(n),
            label=toggles.label(setting),
            config=setting,
            trace=self._traces.get((name, asked), self._live.get(name)),
            text_of=lambda hit: self.of(setting).index.text(hit),
            is_pinned=setting in toggles.pinned,
            unfinished=self._steps.get(name, ""),
            problem=str(self._problems.get(name, "")),
        )
