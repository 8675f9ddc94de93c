"""The runs whose report, screens and page are compared with stored text: one a kind of report."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import synthetic_run
from run_folder_fixture import build_run, build_unlabelled
from synthetic_run import GRID, HYDE, MAIN

from rag_lab.runs.run_folder import write_json
from rag_lab.runs.run_manifest import RACE_FILE, Cost, RaceRecord, RoundRecord, Standing

CLASSES = ("specific", "fuzzy")


def labelled(path: Path) -> None:
    """40 questions under six variants: reliable differences, fallbacks, failed scores, answers, a failed variant."""
    build_run(path, 40, 6)


def unlabelled(path: Path) -> None:
    build_unlabelled(path)


def few(path: Path) -> None:
    """Five questions, too few for any verdict; a card of each question, with hostile text."""
    build_run(path, 5, 3)


def failed(path: Path) -> None:
    """One of four variants failed; each question was asked twice."""
    build_run(path, 12, 4, repeats=2)


def judged(path: Path) -> None:
    """Scores of a judge that was not checked, with failures."""
    random = np.random.default_rng(4)
    base = random.uniform(0.3, 0.7, 30)
    values = {"none": base, "always": base + random.normal(0.06, 0.04, 30)}
    faithful = {name: np.where(np.arange(30) % 10 == 0, np.nan, row) for name, row in values.items()}
    plans = {name: {HYDE: name} for name in values}
    synthetic_run.write_run(path, plans, {MAIN: values, "ragas.faithfulness": faithful}, judge="llamacpp:smollm2")


def factorial(path: Path) -> None:
    """A full grid in which HyDE helps alone and adds nothing beside the reranker."""
    synthetic_run.write_run(path, GRID, {MAIN: synthetic_run.factorial()})


def routed(path: Path) -> None:
    """HyDE helps fuzzy questions and hurts specific ones; each fifth is taken for the other class."""
    random = np.random.default_rng(0)
    classes = [CLASSES[index % 2] for index in range(80)]
    predicted = [CLASSES[1 - index % 2] if index % 5 == 0 else classes[index] for index in range(80)]
    none = random.uniform(0.3, 0.6, 80)
    always = none + np.where(np.array(classes) == "fuzzy", 0.1, -0.1) + random.normal(0, 0.02, 80)
    values = {"none": none, "always": always, "classified": np.where(np.array(predicted) == "fuzzy", always, none)}
    synthetic_run.write_run(path, {name: {HYDE: name} for name in values}, {MAIN: values}, classes, predicted)


def priced(path: Path) -> None:
    """A is cheap, B better and dearer, C dearer and worse, in seconds, tokens and dollars."""
    synthetic_run.certain(path)


def raced(path: Path) -> None:
    """The winner of a race against its baseline, with the rounds that led there."""
    base = np.random.default_rng(5).uniform(0.2, 0.5, 50)
    values = {"baseline": base, "a": base + 0.1}
    plans = {"baseline": {}, "a": {HYDE: "always"}}
    run = synthetic_run.write_run(path, plans, {MAIN: values}, design="racing")
    left = Standing("baseline", "baseline", 2, 0.4, 20, 20, stays=True)
    standings = (
        Standing("a", "hyde = always", 1, 0.6, 20, 20, stays=True),
        left,
        Standing("c", "k = 3", 3, 0.3, 19, 20, behind="a", least=0.02),
    )
    rounds = (RoundRecord("rounds/1", 20, standings, Cost(100, 2_000, 0.5, 1.0, 60.0)),)
    full = Cost(4_000, 80_000, 12.0, None, None)
    record = RaceRecord("p", MAIN, (20,), 3, 50, 1, full, rounds, winner="a", baseline="baseline", error=0.05)
    write_json(run.path / RACE_FILE, record)


RUNS: dict[str, Callable[[Path], None]] = {
    one.__name__: one for one in (labelled, unlabelled, few, failed, judged, factorial, routed, priced, raced)
}
