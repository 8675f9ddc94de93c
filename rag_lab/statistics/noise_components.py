"""How much of a score is noise: its variance split into question, generation and judge, and the floor that follows.

The model is score = mean + question + generation (a repeat of one question) + judge (a judgement of one generation),
each a random effect nested in the one before. Variances are estimated by the method of moments from the nested analysis
of variance (Searle, Casella and McCulloch 1992, "Variance Components", section 5.3, Henderson's method 1), which allows
missing scores; a negative estimate is zero.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtri

from rag_lab._kit.wording import counted

NOT_MEASURED = "not measured: no question has two scores under one variant"


@dataclass(frozen=True, slots=True)
class NoiseComponents:
    """Variances of single scores. None where the layout cannot tell.

    Without repeated judgements of one generation, `generation` holds the noise of both and `judge` is None; with
    repeated judgements of a single generation, `judge` is known and `generation` is part of `question`.
    """

    question: float | None
    generation: float | None
    judge: float | None
    n_questions: int
    repeats: float  # generations a question, on average
    judgements: float  # a generation, on average

    @property
    def per_question(self) -> float | None:
        """The noise variance of one question's score, as averaged over its repeats and judgements."""
        if self.generation is None and self.judge is None:
            return None
        return ((self.generation or 0.0) + (self.judge or 0.0) / self.judgements) / self.repeats


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """The difference between two variants that noise alone stays below 95% of the time; None where not measured."""

    value: float | None
    reason: str


def components(values: Sequence[float], questions: Sequence[Hashable], repeats: Sequence[Hashable]) -> NoiseComponents:
    """Return the components of finite scores of one variant and metric; several of one repeat are its judgements."""
    if not len(values):
        return NoiseComponents(None, None, None, 0, 0.0, 0.0)
    rows = pd.DataFrame({"value": values, "question": questions, "repeat": repeats})
    rows = rows.sort_values("value", kind="stable")  # sums must not depend on the order given
    scores, outer = rows["value"].to_numpy(dtype=float), rows.groupby("question", sort=False).ngroup().to_numpy()
    inner = rows.groupby(["question", "repeat"], sort=False).ngroup().to_numpy()
    # The three sums of squares are equated to their expectations, from the innermost out.
    n, n_inner, n_outer = len(scores), int(inner.max()) + 1, int(outer.max()) + 1
    size_inner, size_outer = np.bincount(inner), np.bincount(outer)
    parent = np.zeros(n_inner, dtype=np.int64)
    parent[inner] = outer
    mean_inner = np.bincount(inner, scores) / size_inner
    mean_outer = np.bincount(outer, scores) / size_outer
    ss_judge = float(((scores - mean_inner[inner]) ** 2).sum())
    ss_generation = float((size_inner * (mean_inner - mean_outer[parent]) ** 2).sum())
    ss_question = float((size_outer * (mean_outer - scores.mean()) ** 2).sum())
    within = float((size_inner**2 / size_outer[parent]).sum())
    overall = float((size_inner**2).sum()) / n
    judge = ss_judge / (n - n_inner) if n > n_inner else None
    generation = question = None
    if n_inner > n_outer:
        generation = max(0.0, (ss_generation - (judge or 0.0) * (n_inner - n_outer)) / (n - within))
    if n_outer > 1:
        noise = (judge or 0.0) * (n_outer - 1) + (generation or 0.0) * (within - overall)
        question = max(0.0, (ss_question - noise) / (n - float((size_outer**2).sum()) / n))
    # Exactly zero is what is rounding.
    question, generation, judge = (
        0.0 if one is not None and one < 1e-18 else one for one in (question, generation, judge)
    )
    return NoiseComponents(question, generation, judge, n_outer, n_inner / n_outer, n / n_inner)


def noise(scores: pd.DataFrame, metric: str) -> NoiseComponents:
    """Return the components of `metric`, averaged over the variants by how much each can tell.

    `scores` is as for `summary`; several rows of one (variant, question, repeat) are judgements of one generation.
    """
    rows = scores[(scores["metric"] == metric) & (scores["status"] == "scored")]
    rows = rows.assign(value=pd.to_numeric(rows["value"]).astype(float))
    rows = rows[np.isfinite(rows["value"])]
    found = []
    for _, part in sorted(rows.groupby("variant_id"), key=lambda item: str(item[0])):
        found.append(components(list(part["value"]), list(part["question_id"]), list(part["repeat"])))
    average: dict[str, float | None] = {}
    for name in ("question", "generation", "judge", "repeats", "judgements"):
        weighed = [(getattr(one, name), one.n_questions) for one in found if one.n_questions]
        known = [(value, weight) for value, weight in weighed if value is not None]
        average[name] = sum(v * w for v, w in known) / sum(w for _, w in known) if known else None
    parts = (average["question"], average["generation"], average["judge"])
    n_questions = max((one.n_questions for one in found), default=0)
    return NoiseComponents(*parts, n_questions, average["repeats"] or 0.0, average["judgements"] or 0.0)


def noise_floor(found: NoiseComponents, n_questions: int | None = None, squares: float = 2.0) -> NoiseFloor:
    """Return the noise floor of a difference between the means of two variants over the same questions.

    1.96 * sqrt(2 * noise variance of one question's score / n), the repeats and judgements being those of `found`.
    `squares` is the sum of the squared weights that variants have in the effect; 2 for a difference of two. A main
    effect averages over variants, so it has less noise.
    """
    n = found.n_questions if n_questions is None else n_questions
    variance = found.per_question
    if n == 0:
        return NoiseFloor(None, "not measured: no question was scored")
    if variance is None:
        return NoiseFloor(None, NOT_MEASURED)
    if variance == 0:
        return NoiseFloor(0.0, "repeats of a question have identical scores")
    floor = float(ndtri(0.975)) * math.sqrt(squares * variance / n)
    source = "generation and judge" if found.generation is not None else "the judge"
    return NoiseFloor(floor, f"noise of {source}, over {n:,} questions")


def noise_sentence(found: NoiseComponents, metric: str) -> str:
    """Return what the components say, in plain words."""
    floor = noise_floor(found)
    if floor.value is None:
        return f"The noise of {metric} was {floor.reason}."
    if floor.value == 0:
        return f"{metric} has no noise: {floor.reason}."
    parts = {"questions": found.question, "generation": found.generation, "the judge": found.judge}
    if found.judge is None:
        parts = {"questions": found.question, "generation and judge together": found.generation}
    total = sum(value or 0.0 for value in parts.values())
    shares = ", ".join(f"{100 * (v or 0.0) / total:.0f}% {name}" for name, v in parts.items() if v is not None)
    return (
        f"The variance of {metric} is {shares}; noise alone makes a difference of up to {floor.value:.3f} between two "
        f"variants 95% of the time ({counted(found.n_questions, 'question')}, {found.repeats:.3g} repeats)."
    )
