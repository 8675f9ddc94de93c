"""What each module adds, alone and beside the others: main effects, interactions, conditional effects, toggles.

Every effect is a contrast of variants (see `contrasts`), so it is one number a question, with the question as its own
block; its interval and its test are those of a paired difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rag_lab.errors import ConfigError
from rag_lab.statistics.corrections import ANSWER, Correction, answers, corrected
from rag_lab.statistics.effects.contrasts import Contrast, contrasts
from rag_lab.statistics.effects.factors import Factors, read_factors
from rag_lab.statistics.intervals import PairedDifference, paired_differences
from rag_lab.statistics.noise_components import NoiseComponents, floor_over
from rag_lab.statistics.per_question import Clusters, cluster_labels, frame, per_question
from rag_lab.statistics.randomization import n_flips
from rag_lab.statistics.scales import SHARE, Scale
from rag_lab.statistics.verdict import doubt, verdict

EFFECT_COLUMNS = (
    *("metric", "kind", "factor", "level", "first", "other", "other_level", "other_first"),
    *("n", "effect", "low", "high", "p_value", "p_corrected", "effect_size", "verdict", "doubt"),
)


def effects(
    scores: pd.DataFrame,
    values: Mapping[Any, Mapping[str, Any]],
    baseline: Any,
    confidence: float = 0.95,
    seed: int = 0,
    *,
    correction: Correction = "holm",
    clusters: Clusters | None = None,
    noise: Mapping[str, NoiseComponents] | None = None,
    scales: Mapping[Any, Scale] | None = None,
    compared: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return one row an effect and metric.

    Columns:
        metric
        kind: main, interaction, conditional (of a full grid), or toggle
        factor, level, first: the effect is that of `level` against `first`
        other, other_level, other_first: of an interaction, the factor beside which the effect changes, from
            `other_first` to `other_level`; of a conditional effect, the level that the other factor has; else empty
        n: questions that all variants of the design have a score for (of a toggle: variant and baseline)
        effect, low, high: mean over questions, with its bootstrap interval
        p_value, p_corrected: sign-flip test; corrected over all main effects, interactions and toggles of the table,
            and in a family of their own over the conditional effects, which follow up on interactions
        effect_size: Cohen's d_z
        verdict, doubt: as in `comparisons`

    Args:
        scores: as for `summary`.
        values: variant_id to {factor: level}; see `factor_values`.
        baseline: the variant with the first level of every factor.
        confidence: of the intervals.
        seed: of the resamples and flips.
        correction: `holm`, `bh` or `none`.
        clusters: question_id to cluster.
        noise: by metric (see `noise.noise`); no effect below its floor is called one.
        scales: by metric; see `comparisons`.
        compared: what `comparisons` returns for the same scores and options. An effect that is one of these
            comparisons, on as many questions, has its answer and counts in its family alone.

    Raises:
        ConfigError: if the design cannot be read, or a column of the table is missing.
    """
    questions = per_question(scores)
    found = design(scores, values, baseline)
    keys: list[tuple[Any, Contrast]] = []
    samples: list[list[float]] = []
    groups = []
    for metric in dict.fromkeys(scores["metric"]):
        wide = questions[questions["metric"] == metric].pivot(index="question_id", columns="variant_id", values="mean")
        for contrast in contrasts(found):
            ours = wide.reindex(columns=list(contrast.weights)).dropna()
            samples.append([float(value) for value in ours.to_numpy() @ list(contrast.weights.values())])
            groups.append(cluster_labels(list(ours.index), clusters or {}))
            keys.append((metric, contrast))
    zeros = [[0.0] * len(sample) for sample in samples]
    pairs = list(zip(samples, zeros, strict=True))
    differences = paired_differences(pairs, confidence, seed, n_flips(len(keys)), groups if clusters else None)
    known = answers(compared)
    quoted = [
        known.get((metric, *contrast.pair, d.n)) if contrast.pair else None
        for (metric, contrast), d in zip(keys, differences, strict=True)
    ]
    return _table(keys, differences, quoted, correction, noise or {}, scales or {})


def design(scores: pd.DataFrame, values: Mapping[Any, Mapping[str, Any]], baseline: Any) -> Factors:
    """Return the design made by the variants that have any score.

    Raises:
        ConfigError: if it cannot be read; the reason is said.
    """
    present = set(scores.loc[scores["status"] == "scored", "variant_id"]) | {baseline}
    try:
        return read_factors({variant: one for variant, one in values.items() if variant in present}, baseline)
    except ValueError as error:
        raise ConfigError(f"No effects can be computed: {error}.") from None


def _table(
    keys: list[tuple[Any, Contrast]],
    differences: list[PairedDifference],
    quoted: list[Mapping[Any, Any] | None],
    correction: Correction,
    noise: Mapping[str, NoiseComponents],
    scales: Mapping[Any, Scale],
) -> pd.DataFrame:
    follow_up = [contrast.kind == "conditional" for _, contrast in keys]
    p_values: list[float | None] = [None] * len(keys)
    sizes = {}
    for family in (False, True):
        members = [index for index, one in enumerate(follow_up) if one is family and quoted[index] is None]
        sizes[family] = sum(differences[index].p_value is not None for index in members)
        adjusted = corrected([differences[index].p_value for index in members], correction)
        for index, p_value in zip(members, adjusted, strict=True):
            p_values[index] = p_value
    rows = []
    for (metric, c), d, p, later, known in zip(keys, differences, p_values, follow_up, quoted, strict=True):
        what = (metric, c.kind, c.factor, c.level, c.first, c.other, c.other_level, c.other_first)
        if known is not None:
            rows.append((*what, *(known[name] for name in ANSWER)))
            continue
        tested, more = sizes[later] if correction != "none" else 1, scales.get(metric, SHARE).higher_is_better
        floor = floor_over(noise.get(metric), d.n, sum(weight**2 for weight in c.weights.values()))
        said = verdict(d, p, tested, floor, more)
        told = (said, doubt(d, p, tested, floor))
        rows.append((*what, d.n, d.mean, d.low, d.high, d.p_value, p, d.effect_size, *told))
    return frame(rows, EFFECT_COLUMNS)
