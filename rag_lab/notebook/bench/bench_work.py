"""What a bench does, without showing it: toggles are set, questions asked, settings kept side by side and compared."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from rag_lab._kit.wording import counted, letters
from rag_lab.config import PipelineConfig, config_of, nested
from rag_lab.data.dataset import list_datasets
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.evaluation.registry import default_metrics, problems
from rag_lab.experiment.run.compare_pipelines import compare
from rag_lab.experiment.stage_identities import model_problem, models_used
from rag_lab.notebook.bench.answers import Answers, Job, SideBySide
from rag_lab.notebook.bench.toggles import Toggles, add_variants
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question, Trace
from rag_lab.report.shown_comparison import ShownComparison
from rag_lab.runs.run_folder import RunFolder

EXPERIMENT = "experiments/bench.yaml"
_BENCHES: "dict[str, BenchWork]" = {}  # the last of each name in this kernel


@dataclass(frozen=True)
class QuickComparison:
    """What `rag_lab.compare` found, under a title that says what the letters stood for then."""

    title: str
    comparison: ShownComparison

    @cached_property
    def html(self) -> str:
        """The comparison as it shows itself."""
        return self.comparison._repr_html_()


class BenchWork:
    """All that a bench does; see `Bench`."""

    def __init__(
        self,
        documents: Any,
        config: PipelineConfig | None = None,
        *,
        question: str = "",
        metrics: Sequence[str] = (),
        name: str = "bench",
        home: Path | str | None = None,
    ) -> None:
        pipeline = documents if isinstance(documents, Pipeline) else Pipeline(documents, home=home)
        pipeline = pipeline if config is None else pipeline.set(config.flat())
        self.questions = pipeline.dataset.questions
        self.metrics = tuple(metrics) or default_metrics(self.questions)
        self.toggles = Toggles(pipeline.config)
        self.question = question
        self.said, self.is_bad = "", False  # a sentence for whoever uses the bench, and whether something is wrong
        self.job: Job | None = None
        self.listeners: list[Callable[[], None]] = []  # called whenever something has changed, from any thread
        self.compared: QuickComparison | None = None
        self._documents = documents if isinstance(documents, str | Path) else None
        self._default = config_of(self._documents)
        self._answers = Answers(pipeline.watched(self._embedded))
        replaced = list[str]()
        if (last := _BENCHES.get(name)) is not None:  # it goes on where the last bench stood
            last.stop()
            self.question = self.question or last.question
            mine, others = pipeline, last._answers.pipeline
            parts = ([one.dataset.digest, one.overrides, one.home] for one in (mine, others))
            if next(parts) == next(parts):
                self._answers, self.compared = last._answers, last.compared
                self._answers.watched(others.set(mine.config.flat()).watched(self._embedded))
            replaced = self.toggles.go_on(last.toggles)
        self.ask(self.question or (self.questions[0].text if self.questions else ""))
        self.say(" ".join(replaced))
        _BENCHES[name] = self

    @property
    def config(self) -> PipelineConfig:
        """The configuration as the toggles stand."""
        return self.toggles.now

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline as the toggles stand; indexes that are open are shared."""
        return self._answers.of(self.config)

    @property
    def is_running(self) -> bool:
        """Whether something is being computed."""
        return self.job is not None and self.job.is_running

    @property
    def result(self) -> SideBySide | None:
        """The settings side by side, on the question that was run last; None before the first run."""
        return self._answers.side_by_side(self.toggles)

    @property
    def trace(self) -> Trace | None:
        """What the newest setting made of the question; None before the first run."""
        return self.result.columns[-1].trace if self.result else None

    def set(self, key: str | Mapping[str, Any], value: Any = None) -> None:
        """Change a toggle by its dotted key, or several: `{"rerank.name": "none"}`.

        Every unknown key and impossible value is named in a ConfigError, and nothing has changed. A model that cannot
        be used on this machine is said, and stays: the setting may be meant for another one.
        """
        before = models_used(self.config)
        self.toggles.set({key: value} if isinstance(key, str) else key)
        new = [(role, name) for role, name in models_used(self.config).items() if before.get(role) != name]
        replaced = self._answers.pipeline.overrides
        faults = [model_problem(role, name) for role, name in new if f"{role}_model" not in replaced]
        self.say(" ".join(filter(None, faults)), is_bad=any(faults))

    def reset(self) -> None:
        """Let all toggles stand where the bench started."""
        self.toggles.now = self.toggles.start
        self.say("")

    def load(self, run: Path | str, variant: str) -> None:
        """Let the toggles stand as in a variant of a run folder."""
        folder = RunFolder.open(run)
        names = [plan.variant_id for plan in folder.variants]
        if variant not in names:
            raise ConfigError(unknown_name("variant", variant, names))
        config = folder.config(variant)
        if config is None:
            raise ConfigError(f"The variant {variant} of {run} has not run yet, so nobody wrote down how it is set.")
        self.toggles.now = config
        self.say(f"The toggles stand as in {variant} of {folder.name}.")

    def ask(self, question: str) -> None:
        """Put a question into the box: a text of one's own, or the text or id of one of the data set's."""
        known = self._known(question)
        self.question = known.text if known else question
        self.say("")

    def run(self, *, wait: bool = True) -> None:
        """Answer the question by the toggles as they stand, beside the setting that was run before, and what is pinned.

        Where the question is a new one, these answer it, too. What is remembered is not computed again. Without `wait`
        it returns at once, and `is_running` tells.
        """
        text, settings = self.question.strip(), self.toggles.side_by_side
        if not text:
            raise ConfigError("The question is empty: choose one of the data set's, or type your own.")
        asked = self._known(text) or Question("asked", text)

        def work(job: Job) -> None:
            self._answers.run(asked, settings, job, self.changed)
            self.toggles.ran(settings[-1])

        self._begin(work, wait)

    def stop(self) -> None:
        """End what runs at its next step; what was computed stays."""
        if self.job and self.is_running:
            self.job.is_stopping = True
            self.changed()

    def pin(self, letter: str) -> None:
        """Keep a column beside all that is run later; let it go where it is pinned."""
        if not self.result:
            raise ConfigError("There is no column yet: run first.")
        columns = {column.letter: column.config for column in self.result.columns}
        if letter not in columns:
            raise ConfigError(unknown_name("column", letter, columns))
        self.toggles.pin(columns[letter])
        self.changed()

    def try_on(self, n: int = 20, metrics: Sequence[str] = (), *, wait: bool = True) -> None:
        """Compare the settings side by side on a stratified sample of the data set's questions; see `rag_lab.compare`.

        Args:
            n: how many questions are asked; all where there are fewer. Where none has a label, no setting is called
                better, and what each changes is told.
            metrics: what is measured, the one that decides first; those of the bench where none is given.
            wait: for the end; else return at once, and `is_running` tells.
        """
        settings, metrics = self.toggles.side_by_side, tuple(metrics) or self.metrics
        if len(settings) < 2:
            raise ConfigError("There is one setting only: change a toggle, and it is compared with what it was.")
        if faults := problems(metrics, False):
            raise ConfigError(" ".join(faults))

        def work(job: Job) -> None:
            def progress(step: str, share: float) -> None:
                job.step(step, share)
                self.changed()

            pipelines = {letters(n): self._answers.of(setting) for n, setting in enumerate(settings)}
            found = compare(pipelines, metrics, questions=n, progress=progress)
            labels = [f"{letters(n)} {self.toggles.label(setting)}" for n, setting in enumerate(settings)]
            self.compared = QuickComparison(
                f"On {counted(len(found.questions), 'question')}: {', '.join(labels)}", found
            )

        self._begin(work, wait)

    @property
    def seconds_to_try(self) -> float:
        """About how many seconds `try_on` takes for each question by the bench's metrics; 0 for one setting."""
        settings = self.toggles.side_by_side
        return self._answers.seconds_a_question(settings, self.metrics) if len(settings) > 1 else 0.0

    def add_to_experiment(self, path: Path | str = EXPERIMENT) -> list[str]:
        """Write the settings side by side into an experiment file as variants; return the names of those added."""
        if slots := list(self._answers.pipeline.overrides):
            raise ConfigError(
                f"An experiment names its modules, and {', '.join(slots)} is an object of this kernel: put its class "
                "into a file beside the experiment and set it as module:Class."
            )
        if self._documents is None:
            raise ConfigError("These documents live in this kernel alone; an experiment needs a data set or a folder.")
        question = "Which of the settings that were tried on the bench serves best?"
        file = Path(path).expanduser().resolve()  # a terminal is seldom in the folder of the notebook
        name = str(self._documents)
        found = dict(list_datasets()).get(name.rpartition("/")[0] if name.endswith(".jsonl") else name)
        if found is None or not found.is_absolute():  # a name that is not known everywhere
            name = os.path.relpath(self._answers.pipeline.dataset.location.resolve(), file.parent)
        added = add_variants(file, self.toggles.side_by_side, name, self.metrics, question)
        result = f"Added to {file}: {', '.join(added)}." if added else f"{file} holds these settings already."
        self.say(f"{result} Look before you leap: rag-lab sweep {shlex.quote(str(file))} --dry-run")
        return added

    def as_yaml(self) -> str:
        """Return the toggles as a YAML file that `PipelineConfig.load` reads: what differs from the defaults."""
        written = yaml.safe_dump(nested(self.config.differing()), sort_keys=False, allow_unicode=True)
        return f"# what differs from the defaults\n{written}"

    def as_python(self) -> str:
        """Return the toggles as a line of Python."""
        documents = "documents" if self._documents is None else repr(str(self._documents))
        changes = self.config.differing(self._default)  # of what `rl.Pipeline` of these documents has by itself
        lines = "".join(f"    {key!r}: {value!r},\n" for key, value in changes.items())
        slots = ", ".join(f"{slot}=..." for slot in self._answers.pipeline.overrides)  # objects, which no text can hold
        replaced = f".replace({slots})" if slots else ""
        return f"rl.Pipeline({documents})" + (f".set({{\n{lines}}})" if lines else "") + replaced

    def say(self, sentence: str, *, is_bad: bool = False) -> None:
        """Show a sentence below the toggles, in place of the last one."""
        self.said, self.is_bad = sentence, is_bad
        self.changed()

    def changed(self) -> None:
        """Tell all that show the bench that something has changed."""
        for listener in list(self.listeners):
            listener()

    def _known(self, text: str) -> Question | None:
        """Return the question of the data set that has this text or id."""
        return next((one for one in self.questions if text.strip() in (one.question_id, one.text.strip())), None)

    def _begin(self, work: Callable[[Job], None], wait: bool) -> None:
        if self.is_running:
            raise ConfigError("Something runs already: wait for its end, or stop it.")
        self.job = Job(work, self._ended)
        self.say("")
        self.job.start()
        if wait:
            try:
                self.job.join()
            except KeyboardInterrupt:
                self.job.is_stopping = True
                raise
            if self.job.error:
                raise self.job.error

    def _ended(self, job: Job) -> None:
        if job.is_stopped:
            self.say(f"Stopped before {job.step_now}; what was computed until then is remembered.")
        elif job.error:
            self.say(str(job.error), is_bad=True)
        self.changed()

    def _embedded(self, done: int, total: int) -> None:
        """Tell how far the documents are embedded; what is done is kept where this ends it."""
        if self.job and self.job.is_running:
            self.job.step(f"embedding {done:,} of {total:,} texts", self.job.share)
            self.changed()
