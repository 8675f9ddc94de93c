"""The sections of the calibration page: each study's claims, what was found at worst, and its tables."""

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import interval_coverage
import judge_intervals
import leaving_out
import racing
from simulated_scores import FAMILIES

from simulation import false_winners, family_power, seeds
from simulation.demo_scores import Floats, scored
from simulation.sweeps import KINDS, LIMITS
from simulation.tables import Row, markdown, spread

SIZES = (30, 117, 500)


class Runs:
    """Cells in several processes, with the same number of sweeps."""

    def __init__(self, pool: ProcessPoolExecutor, sweeps: int, seed: int) -> None:
        self._pool, self.sweeps, self.seed = pool, sweeps, seed

    def rows(self, study: Callable[..., list[Row]], cells: Iterable[tuple[object, ...]]) -> list[Row]:
        """Return the rows of all cells, in order."""
        return [row for found in self._pool.map(study, *zip(*cells, strict=True)) for row in found]


def claim(what: str, target: str, found: float, is_held: bool) -> Row:
    return {"claim": what, "target": target, "found at worst": float(found), "held": "yes" if is_held else "NO"}


def at_most(what: str, limit: float, values: Iterable[float]) -> Row:
    worst = max(values)
    return claim(what, f"at most {limit:g}", worst, worst <= limit)


def at_least(what: str, limit: float, values: Iterable[float]) -> Row:
    worst = min(values)
    return claim(what, f"at least {limit:g}", worst, worst >= limit)


def findings(runs: Runs) -> tuple[list[Row], str]:
    asked = [(kind, is_partial) for kind in KINDS for is_partial in (False, True)] + [(kind, False) for kind in LIMITS]
    cells = [(kind, is_partial, n, runs.sweeps, runs.seed) for kind, is_partial in asked for n in SIZES]
    rows = runs.rows(false_winners.surely, cells)
    for row in rows:
        row["scores"] = f"{row['kind']}{', half differ' if row['partial'] else ''}"
    kept, beyond = ([row for row in rows if row["kind"] in group] for group in (KINDS, LIMITS))
    failing = [row for row in kept if row["kind"].startswith("failures")]
    again = len({(row["scores"], row["questions"]) for row in kept if row["sweeps"] > runs.sweeps})
    against = runs.rows(_same_verdicts, [(kind, runs.seed) for kind in KINDS])
    table = partial(spread, by=["scores"], across=["questions", "variants"])
    return (
        [at_most("false winners in the primary family", 0.065, [row["false"] for row in kept])],
        f"""## False winners

{runs.sweeps:,} sweeps of each kind of scores and each number of questions × variants; the share in which a variant is
called better or worse than the baseline and is not. It may be 0.05, and 0.065 in a simulation. Either no variant
differs, or every other one truly does, and the others are those that may be called better by mistake. *Demo*: the
difference vectors of the demo's variants, whole questions with a random sign, or scores dealt at random among its
variants. *Rare changes*: 1.0 on 5% of the questions; those that differ only ever lose. *Clusters*: the largest ten
times the smallest; 13, on 500 questions 41; *lost whole*: a variant has 0 on all questions about a document that it
does not find. Of {len(kept)} cells some lie above 0.065 by chance: those are drawn again from another seed, with ten
times the sweeps, and the table has what they come to then: {again} of {len(kept) // 3} draws. The sign flips are 999.

{markdown(table(kept, value="false"))}

The whole package, with 20,000 flips and more, came to another verdict than these simulations with 19,999 on
{sum(row["other"] for row in against)} of {sum(row["of"] for row in against):,} variants in one sweep of each kind.

**Failures.** *Hard questions*: each variant fails on half of the hardest fifth. *Own zeros*: two of three variants fail
where they would score 0, always (reciprocal ranks) or half of the time (hits). A finding must also stand with failures
at the worst value; without that guard the shares would be these:

{markdown(table(failing, value="unguarded"))}

**Limits.** What the test takes for a difference and is none. Clusters that are not declared: declare them. And gains
of 0.1 on 20% of the questions that losses of 1.0 on 2% balance: the mean is 0, but the test asks whether gains and
losses are alike, and few questions show too few of such losses. "Better" is said of what was seen; only the statement
with a margin reckons with what was not.

{markdown(table(beyond, value="false"))}
""",
    )


def _same_verdicts(kind: str, seed: int) -> list[Row]:
    """Return how often the whole package says otherwise, in one sweep of each kind."""
    found = [false_winners.otherwise(kind, is_partial, 117, 15, seed) for is_partial in (False, True)]
    return [{"other": other, "of": of} for other, of in found]


def power(runs: Runs) -> tuple[list[Row], str]:
    rows = runs.rows(family_power.power, [(n, k, runs.sweeps, runs.seed) for n in SIZES for k in family_power.FAMILIES])
    behind = [row["holm_in_primary"] - row["max_t_in_primary"] for row in rows]
    times = [row["times"] for row in rows if row["questions"] > 30]
    claims = [
        at_least("power with more than 30 questions, times that of Holm over all", 1.4, times),
        at_most("power lost against Holm in the primary family", 0.01, behind),
    ]
    return (
        claims,
        f"""## Power

The share of the true differences in the primary metric that {runs.sweeps:,} sweeps find: by Holm's correction over
eight metrics and all variants, by Holm's in the primary family, and by the step-down maximum in the primary family.
Questions of the demo, drawn whole; of seven variants four truly differ, by as much as the test of the primary family
of seven finds in about 80% of cases (`benchmarks/simulation/family_power.py`). Larger differences are found by any of
the three. A finding needs the interval as well: with 30 questions, most of which do not differ, the interval asks for
more than any of the three tests, and they find alike.

{markdown(rows)}
""",
    )


def other_seeds(runs: Runs) -> tuple[list[Row], str]:
    cells = [(n, k, max(1, runs.sweeps // 50), runs.seed) for n in SIZES for k in family_power.FAMILIES]
    rows = seeds.of_demo(20, runs.seed) + runs.rows(seeds.of_sweeps, cells)
    found = [row["largest move"] for row in rows if row["largest move"] is not None]
    return (
        [at_most("what another seed moves of a p-value near 0.05", 0.006, found)],
        f"""## Another seed

By how much the seed of the random flips moves adjusted p-values between 0.03 and 0.07.

{markdown(rows)}
""",
    )


def margins(runs: Runs) -> tuple[list[Row], str]:
    real = leaving_out.real_vectors()
    ways = [(real, way, rate, n) for way in leaving_out.losers(real, 0.0) for rate in leaving_out.RATES for n in SIZES]
    false = runs.rows(_stated, [(*cell, runs.sweeps, runs.seed) for cell in ways])
    clusters = [leaving_out.lost_clusters(n, runs.sweeps, runs.seed) for n in (13, 40, 100)]
    shown = leaving_out.power(real, 0.15, 117, runs.sweeps, runs.seed)
    n_pilots = max(4, runs.sweeps // 20)
    pilots = {1: n_pilots, 7: n_pilots // 2, 15: n_pilots // 2}
    cells = [(real, size, k, pilots[k], 40, runs.seed) for size in (40, 117) for k in pilots]
    plans = runs.rows(_planned, cells)
    comes = [row["comes"] for row in plans]
    claims = [
        at_most('false "may be left out" in a family', 0.05, [row["family"] for row in false]),
        at_most("the same of any single variant", 0.08, [row["single"] for row in [*false, *clusters]]),
        at_least("its power at margin 0.05, 117 questions, SD 0.15", 0.65, [shown[0]["power"]]),
        at_least("reruns in which the plan's questions show it, lowest", 0.75, comes),
        at_most("the same, highest", 0.9, comes),
    ]
    table = partial(spread, by=["losses", "margin"], across=["questions", "variants"])
    return (
        claims,
        f"""## It may be left out

{runs.sweeps:,} sweeps in which variants lose exactly the margin: the share with a false "not worse by more". *Rare* and
*rare_in_real*: 1.0 on as many questions as the margin says, among ties or among the demo's differences; *even*: the
demo's differences less the margin; *one_rare*: one such variant among others that are nearly equal. What lies above
0.05 is drawn again from another seed with ten times the sweeps.

{markdown(table(false, value="family"))}

With a tenth of clusters of unequal size lost, and a margin of 0.1 (a single variant):

{markdown(clusters)}

How often it is said of variants that lose nothing:

{markdown(shown)}

How often it is said in reruns with as many questions as a pilot named (their median), over pilots:

{markdown(plans)}
""",
    )


def _stated(real: Floats, way: str, rate: float, n: int, n_sweeps: int, seed: int) -> list[Row]:
    """Return the false statements; where a family has more than its 5%, which chance does, drawn ten times anew."""
    rows = leaving_out.false_statements(real, way, rate, n, n_sweeps, seed)
    if all(row["family"] <= 0.05 for row in rows):
        return rows
    return leaving_out.false_statements(real, way, rate, n, 10 * n_sweeps, seed + 1)


def _planned(*cell: object) -> list[Row]:
    return [leaving_out.planned(*cell)]  # type: ignore[arg-type]


def intervals(runs: Runs) -> tuple[list[Row], str]:
    asked = [study.__name__ for study in interval_coverage.STUDIES]
    every = runs.rows(_covered, [(study, runs.sweeps, runs.seed) for study in asked])
    rows = {study: [row for row in every if row["study"] == study] for study in asked}
    kept = [row["coverage"] for row in every if row["study"] != "dense" and row.get("clusters", 8) >= 8]
    by_size = partial(spread, across=["questions"], value="coverage")
    return (
        [at_least("coverage of 95% intervals, sparse, real, and 8 clusters or more", 0.93, kept)],
        f"""## Intervals

How often 95% intervals hold the truth, {runs.sweeps:,} samples a cell, by the number of questions.

{markdown(by_size(rows["sparse"] + rows["dense"], by=["what"]))}

The differences of the demo from its baseline, resampled whole; *apart* are the questions that differ:

{markdown(by_size(rows["real"], by=["what", "apart"]))}

Clusters of equal size, of 1 to 20 and of 1 to 60 questions, or one as large as all others, by their number:

{markdown(spread(rows["clustered"], by=["what", "sizes"], across=["clusters"], value="coverage"))}
""",
    )


def _covered(study: str, repetitions: int, seed: int) -> list[Row]:
    return [{"study": study} | row for row in getattr(interval_coverage, study)(repetitions, seed)]


def judges(runs: Runs) -> tuple[list[Row], str]:
    trials = max(10, runs.sweeps // 2)
    cells = [(name, n, trials) for name in judge_intervals.JUDGES for n in judge_intervals.QUESTIONS]
    rows = runs.rows(_lowest, cells)
    usual = [row["lowest"] for row in rows if row["judge"] != "one_sided"]
    return (
        [at_least("coverage of a judge's area under the curve", 0.93, usual)],
        f"""## A judge's trial

How often the interval of the area under the ROC curve holds the true one: the lowest over areas of 0.5 to 1 and one or
five wrong answers to a question, by the number of questions, {trials:,} trials each. `benchmarks/judge_intervals.py`
says what the judges are; *one_sided* is the hardest kind there is. Of the others, what lies below 0.93 is drawn again
from another seed with ten times the trials.

{markdown(spread(rows, by=["judge"], across=["questions"], value="lowest"))}
""",
    )


def _lowest(name: str, n: int, trials: int) -> list[Row]:
    judge, held = judge_intervals.JUDGES[name], []
    for area in judge_intervals.AREAS:
        for wrong in judge_intervals.N_WRONG:
            share = judge_intervals.covers(judge, area, n, wrong, trials)[0]
            if share < 0.93 and name != "one_sided":
                share = judge_intervals.covers(judge, area, n, wrong, 10 * trials, seed=1)[0]
            held.append(share)
    return [{"judge": name, "questions": n, "lowest": min(held)}]


def races(runs: Runs) -> tuple[list[Row], str]:
    names = [*racing.NAMES, "demo"]
    tried = [(name, n, k) for name in names for n in racing.N_QUESTIONS for k in racing.N_VARIANTS]
    rows = runs.rows(_raced, [(*one, runs.sweeps, runs.seed) for one in tried])
    return (
        [
            at_most("a race whose proof names a false winner", 0.065, [row["false"] for row in rows]),
            at_most("a race that drops the best", 0.05, [row["best_dropped"] for row in rows]),
        ],
        f"""## Racing

{runs.sweeps:,} races of each kind. *false*: how often the proof calls the winner better or worse where all are equal.
Where the variants' lifts are spread evenly (of the demo: the variants as they are), the winner's true mean is at most
0.02 below the best's in the share *good_winner*, and in a full sweep in *of_a_full_sweep*; *dropped* are the variants
that rounds dropped, *best_dropped* is how often the best was among them, and *saved* the share of questions that were
not asked. What lies above 0.065 is drawn again from other seeds, ten times as often.

{markdown(rows)}
""",
    )


def _raced(name: str, n: int, k: int, n_races: int, seed: int) -> list[Row]:
    sizes = racing.sizes_for(n)
    equal, differing = (_cell(name, n, k, n_races, is_equal, seed, sizes) for is_equal in (True, False))
    false = _called(equal)
    if false > 0.065:
        anew = [_called(_cell(name, n, k, n_races, True, seed + number, sizes)) for number in range(1, 11)]
        false = sum(anew) / len(anew)
    return [
        {
            **{"scores": name, "questions": n, "variants": k, "false": false},
            **{"good_winner": differing["good_winner"], "of_a_full_sweep": differing["good_winner_of_a_full_sweep"]},
            **{name: differing[name] for name in ("dropped", "best_dropped", "saved")},
        }
    ]


def _called(cell: Row) -> float:
    return float(cell["called_better"] + cell["called_worse"])


def _cell(name: str, n: int, k: int, n_races: int, is_equal: bool, seed: int, sizes: tuple[int, ...]) -> Row:
    if name == "demo":
        return racing.cell(*racing.resampled(scored(), n, k, n_races, is_equal, seed), sizes, seed)
    top = 0.0 if is_equal else racing.TOP_LIFT
    return racing.cell(*racing.made_up(FAMILIES[name], n, k, n_races, top, seed), sizes, seed)


SECTIONS = (findings, power, other_seeds, margins, intervals, judges, races)
