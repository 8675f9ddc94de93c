"""An experiment that nobody wrote: a folder for somebody's documents, with one that fits them, or one asked in a line.

Nothing that is there is written over, and documents are linked unless they are to be copied.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from rag_lab._kit.config_file import read_mapping, read_shipped
from rag_lab._kit.digest import short_name, whole_file
from rag_lab._kit.wording import listing
from rag_lab.config import PIPELINE_FILE, PipelineConfig, config_of, nested
from rag_lab.corpus.folder import NO_DOCUMENTS, list_files
from rag_lab.corpus.rules import CORPUS_FOLDER
from rag_lab.corpus_profile.corpus_profile import CorpusProfile, profile
from rag_lab.data.dataset import METADATA_FILE, Dataset, is_dataset
from rag_lab.data.questions_file import QUESTIONS_FILE, write_questions
from rag_lab.data.synthetic import drafted_questions
from rag_lab.errors import ConfigError, DatasetError
from rag_lab.evaluation.registry import parse_name
from rag_lab.experiment.config import ExperimentConfig, read_experiment
from rag_lab.experiment.design import variant_id
from rag_lab.pipeline import Pipeline

EXPERIMENT_FILE, README_FILE = "experiment.yaml", "README.md"
N_QUESTIONS = 8
_MOST_FACTORS = 2
_TEMPLATES = Path(__file__).with_name("templates")  # of the files that are made, by their names


@dataclass(frozen=True)
class NewProject:
    """What was made: the folder, its files in order, and the profile of its documents."""

    folder: Path
    files: tuple[Path, ...]
    profile: CorpusProfile
    n_questions: int  # drafted; 0 where the documents came with questions


def new_project(folder: Path, documents: Path, *, copy: bool = False, home: Path | None = None) -> NewProject:
    """Make `folder` a data set of the `documents`, with questions and an experiment; all of it, or nothing.

    The documents are linked, unless they are to be copied. What was read is remembered in `home`.

    Raises:
        RagLabError: if there are no documents that can be read, or one of the files is there already.
    """
    _refuse(folder, documents)
    if not copy and (rules := [name for name in ("attributes.yaml", "removed.txt") if (documents / name).exists()]):
        raise ConfigError(
            f"{documents} has {' and '.join(rules)}, which a data set keeps beside its documents: give --copy, to put "
            "them there."
        )
    pipeline = Pipeline(documents, PipelineConfig(), home=home)
    found = profile(pipeline)
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch)
        n_questions = _write(made, folder, documents, pipeline, found, copied=copy)
        files = sorted(made.iterdir())
        _refuse(folder, documents, [file.name for file in files])
        _put_whole(files, documents, folder, copy)
    paths = tuple(folder / name for name in (CORPUS_FOLDER, *(file.name for file in files)))
    return NewProject(folder, paths, found, n_questions)


def _refuse(folder: Path, documents: Path, names: list[str] | None = None) -> None:
    if not documents.is_dir():
        raise ConfigError(f"There is no folder {documents}; give the folder of your documents.")
    if is_dataset(documents):
        raise ConfigError(f"{documents} is a data set already: name it in an experiment.")
    inner, outer = folder.resolve(), documents.resolve()
    if inner == outer or outer in inner.parents:
        raise ConfigError(
            f"{folder} lies in {documents}, where its files would be taken for documents; choose a folder beside it."
        )
    if taken := [name for name in [CORPUS_FOLDER, *(names or [])] if os.path.lexists(folder / name)]:
        raise ConfigError(f"{folder} has {', '.join(taken)} already, which is not written over; choose another folder.")


def _put_whole(files: list[Path], documents: Path, folder: Path, copy: bool) -> None:
    """Put the documents and `files` into the folder; where that fails nothing of them is left."""
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        corpus = folder / CORPUS_FOLDER
        if not copy:
            corpus.symlink_to(documents.resolve(), target_is_directory=True)
        for source, path in list_files(documents).files.items() if copy else ():
            (corpus / source).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, corpus / source)
        for file in files:
            shutil.copyfile(file, folder / file.name)
    except OSError as error:
        for path in [folder / name for name in (CORPUS_FOLDER, *(file.name for file in files))]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        if is_new and folder.exists():
            folder.rmdir()
        hint = "mend that or choose another folder" if copy else "mend that, choose another folder, or give --copy"
        raise ConfigError(f"Cannot write {folder}: {error.strerror}; {hint}.") from None


def _write(made: Path, folder: Path, documents: Path, pipeline: Pipeline, found: CorpusProfile, *, copied: bool) -> int:
    """Write the files of a project into `made`; return how many questions were drafted."""
    for name in NO_DOCUMENTS:  # rules that the folder of documents brings hold here, too
        if (documents / name).is_file():
            shutil.copyfile(documents / name, made / name)
    drafted: list[Any] = []
    if not (made / QUESTIONS_FILE).exists():
        pages: dict[str, list[str]] = {}
        for page in pipeline.index.chunks.documents():
            pages.setdefault(page.source, []).append(page.text)
        (made / QUESTIONS_FILE).touch()
        if drafted := drafted_questions(pages, found.language, N_QUESTIONS):
            write_questions(made / QUESTIONS_FILE, drafted)
    title = " ".join(folder.resolve().name.split())
    name = re.sub(r"[^a-z0-9_-]+", "_", title.lower()).strip("_-")[:64] or "mine"
    metadata = yaml.safe_dump({"name": title}, allow_unicode=True)
    metadata += f"language: {found.language}   # detected; correct it\n" if found.language else ""
    (made / METADATA_FILE).write_text(metadata, encoding="utf-8")
    now, to_try = pipeline.config.override(found.settings).flat(), list(found.to_try.items())[:_MOST_FACTORS]
    factors = {key: [now[key], *(value for value in values if value != now[key])] for key, values in to_try}
    texts = {
        "title": title,
        "name": name,
        "path": " ".join(str(folder).split()),
        "settings": yaml.safe_dump(nested(found.settings), sort_keys=False) if found.settings else "",
        "question": what_changes([f"{key} ({', '.join(map(str, values))})" for key, values in factors.items()]),
        "pipeline": PIPELINE_FILE,
        "factors": yaml.safe_dump({"factors": factors}, sort_keys=False, default_flow_style=None),
        "docs": documents.resolve(),
        "kept": "copied" if copied else "linked, not copied",
        "questions": f"{len(drafted)} drafted questions" if drafted else "your questions",
    }
    for file in (PIPELINE_FILE, EXPERIMENT_FILE, README_FILE):
        text = (_TEMPLATES / file).read_text(encoding="utf-8").format(**texts)
        (made / file).write_text(text, encoding="utf-8")
    return len(drafted)


FOLDER = "experiments"  # where a file is written, if there is such a folder here
METRICS = ("retrieval.ndcg@10", "retrieval.evidence_recall@5", "cost.seconds")
_LONGEST = 56  # of a name, which may get a number
_COMMENTS = read_shipped(Path(__file__).with_name("comments.yaml"))


@dataclass(frozen=True)
class Asked:
    """What a command line asks for; `base` is a preset or a YAML file, `settings` and `factors` are by dotted key.

    `n` is how many variants a design that counts them makes.
    """

    dataset: str
    base: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    factors: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    metrics: Sequence[str] = METRICS
    design: str = "one_factor"
    n: int | None = None
    questions: int | None = None
    answers: int | None = None
    judge: str | None = None

    @property
    def leaves_out_answers(self) -> bool:
        """Whether answers are switched off: no metric reads them, and nothing that is set or varied is about them."""
        about = any(key.startswith("answer.") or key == "models.generation" for key in (*self.settings, *self.factors))
        if about or self.answers or not self.metrics:
            return False
        for metric in self.metrics:
            with suppress(ConfigError):  # which the plan says
                if parse_name(metric).info.reads_answers:
                    return False
        return True

    def experiment(self) -> dict[str, Any]:
        """Return the experiment, without a name."""
        settings = {**self.settings, **({"answer.name": "none"} if self.leaves_out_answers else {})}
        if twice := sorted(set(settings) & set(self.factors)):
            raise ConfigError(f"{listing(twice)} cannot be set and varied at once; take one of the two out.")
        base: Any = self.base
        if not self.base:
            base = nested(config_of(self.dataset).override(settings).differing())
        elif settings:  # then all that differs from the defaults
            draft = read_experiment({"name": "x", "question": "x", "dataset": "x", "base": self.base})
            if draft.problems:
                raise ConfigError("; ".join(draft.problems))
            base = nested(draft.config.base.override(settings).differing())
        limits = {"questions": self.questions, "answers": self.answers}
        built: dict[str, Any] = {
            "question": f"How good is this pipeline on {Path(self.dataset).name}?",
            "dataset": self.dataset,
            "base": base or None,
            "metrics": list(self.metrics) or None,
            "judge": self.judge or None,
            "limits": {name: n for name, n in limits.items() if n is not None} or None,
        }
        if self.factors:
            built |= {"question": what_changes(list(self.factors)), "design": self.design, "n": self.n}
            built["factors"] = {key: list(values) for key, values in self.factors.items()}
        order = (key for key in ExperimentConfig.model_fields if built.get(key) is not None)
        return {key: built[key] for key in order}

    @property
    def name(self) -> str:
        """What it is called: the factors, or for one variant the data set and what is set."""
        short = variant_id(dict.fromkeys(self.factors, ""), among=self.factors).replace("-empty", "")
        parts = [short.replace("__", "_and_")] if short else ["run", Path(self.dataset).expanduser().resolve().name]
        if self.settings and not self.factors:
            parts.append(variant_id(self.settings, among=self.settings))
        text = re.sub(r"[^a-z0-9_-]+", "-", "_".join(parts).lower()).strip("-")
        return short_name(text, _LONGEST, parts)


def what_changes(factors: Sequence[str]) -> str:
    """Return the question that an experiment on these factors asks."""
    return f"What {'does' if len(factors) == 1 else 'do'} {listing(factors)} change?"


def usual_metrics(dataset: str) -> tuple[str, ...]:
    """Return what is measured where nobody says what: nothing where no question of the data set has a label."""
    with suppress(DatasetError):  # which the plan tells
        return METRICS if any(question.is_labelled for question in Dataset.load(dataset).questions) else ()
    return METRICS


def numbered(name: str, fits: Callable[[str], bool]) -> str:
    """Return the first of `name`, `name_2`, … that fits: nothing that is there is written over."""
    return next(one for n in count(1) if fits(one := name if n == 1 else f"{name}_{n}"))


def run_name(name: str, experiment: dict[str, Any]) -> str:
    """Return the name under which `results/` has this experiment already, or none."""
    return numbered(name, lambda one: _is_same_run(Path("results") / one, experiment | {"name": one}))


def file_for(name: str, experiment: dict[str, Any]) -> Path:
    """Return the path of the file that says this experiment already, or of one that can be written."""
    folder = Path(FOLDER) if Path(FOLDER).is_dir() else Path()

    def fits(one: str) -> bool:
        path, whole = folder / f"{one}.yaml", experiment | {"name": one}
        if path.exists():
            return path.is_file() and _content(path) == whole
        return _is_same_run(Path("results") / one, whole)

    return folder / f"{numbered(name, fits)}.yaml"


def write_file(path: Path, experiment: Mapping[str, Any], command: str) -> None:
    """Write an experiment as a file with a comment on each key, which `rag-lab sweep` takes."""
    lines = [f"# Written by `{command}`; change it as you like.\n"]
    for key, value in experiment.items():
        comment = f"  # {_COMMENTS[key]}" if key in _COMMENTS else ""
        if isinstance(value, Mapping):
            lines += [f"{key}:{comment}\n", *(f"  {inner}: {_in_one_line(each)}\n" for inner, each in value.items())]
        else:
            lines.append(f"{key}: {_in_one_line(value)}{comment}\n")
    try:
        with whole_file(path) as partial:
            partial.write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror}; change to a folder that may be written.") from None


def _in_one_line(value: Any) -> str:
    written: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=True, width=10_000)
    return written.strip().removesuffix("\n...")


def _content(path: Path) -> Any:
    with suppress(ConfigError):
        return read_mapping(path)
    return None


def _is_same_run(run: Path, experiment: Mapping[str, Any]) -> bool:
    """Tell whether a folder is free, or holds a run of this experiment."""
    if not run.exists():
        return True
    kept = run / "experiment.yaml"
    return kept.is_file() and _content(kept) == yaml.safe_load(read_experiment(experiment).config.to_yaml())
