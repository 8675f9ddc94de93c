"""A small folder of documents without labels to try things on, and clicks of nobody, for a notebook that runs alone."""

from __future__ import annotations

import shutil
from pathlib import Path

from rag_lab._kit.home import usable_home
from rag_lab._kit.wording import counted
from rag_lab.data.dataset import Dataset
from rag_lab.notebook.label import Labelling
from rag_lab.notebook.prefer import Preferring
from rag_lab.runs.preferences import Choice

DEMO = "plant_docs"
PARTS = ("change_notices", "general", "maintenance", "minutes", "safety")
QUESTIONS = ("pd-012", "pd-034", "pd-039", "pd-045", "pd-049", "pd-097")
_CHOICES: tuple[Choice, ...] = ("left", "same", "right")


def practice_folder() -> tuple[Path, list[str]]:
    """Return a folder with some documents of the demo, made anew without labels, and questions as texts."""
    demo, folder = Dataset.load(DEMO), usable_home() / "practice"
    shutil.rmtree(folder, ignore_errors=True)
    for part in PARTS:
        shutil.copytree(demo.corpus_dir / part, folder / part)
    texts = {question.question_id: question.text for question in demo.questions}
    return folder, [texts[name] for name in QUESTIONS]


def play_preferences(preferring: Preferring) -> str:
    """Choose in turn what is left, as good and right, as nobody would; return that it was so."""
    n = 0
    while preferring.now is not None:
        preferring.choose(_CHOICES[n % len(_CHOICES)])
        n += 1
    return f"{counted(n, 'choice')} played, not judged: what follows shows the form of a result, and says nothing."


def play_labels(labelling: Labelling) -> str:
    """Click what the demo's own labels say, where it was found; return how many were."""
    known = {question.text: question for question in Dataset.load(DEMO).questions}
    for _ in labelling.questions:
        evidence = known[labelling.question.text].evidence if labelling.question.text in known else ()
        for number, found in enumerate(labelling.passages, start=1):
            for one in evidence:
                if (
                    one.source.endswith(found.hit.source)
                    and one.quote
                    and _squeezed(one.quote) in _squeezed(found.text)
                ):
                    labelling.take(number, one.quote)
        labelling.go(1)
    labelling.go(-len(labelling.questions))
    return (
        f"{labelling.labelled} of {counted(len(labelling.questions), 'question')} labelled as in the demo's own labels."
    )


def _squeezed(text: str) -> str:
    return " ".join(text.split())
