"""What an experiment file says of its design: its keys, the rounds of a race, the pairs that are compared."""

from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Annotated, Any

from pydantic import Field, field_validator

from rag_lab._kit.config_file import Section
from rag_lab._kit.wording import listing
from rag_lab.errors import unknown_name
from rag_lab.experiment.designs.combinations import OPTUNA, STAGED

_COUNTED = {"random": "variants the design random draws", OPTUNA: "trials the design optuna makes"}
RESOLUTIONS = (3, 10)  # that can be asked for
MIN_ROUND = 10  # questions of the first round; fewer drop at random

DESIGNS_OF: Mapping[str, tuple[str, ...]] = {
    "n": ("fractional", "random", OPTUNA),
    "resolution": ("fractional",),
    "choose": (STAGED, OPTUNA),
    "objectives": (OPTUNA,),
    "sampler": (OPTUNA,),
}
Pairs = tuple[tuple[str, str], ...]  # (variant, against)
PAIRS_RULE = "must be `all`, `baseline`, or a list of pairs of variants, as [[b, a]]"


def key_problems(design: str, given: Mapping[str, Any], *, runs_pipelines: bool) -> list[str]:
    """Return a sentence for each key that says nothing to this design; `given` has `DESIGNS_OF` and `only_if`."""
    found = [
        f"{key}: belongs to the design {listing(list(designs)).replace(' and ', ' or ')}, got {design}; take it out."
        for key, designs in DESIGNS_OF.items()
        if given.get(key) not in (None, []) and design not in designs
    ]
    if given.get("only_if") and runs_pipelines:
        found.append("only_if: holds between factors, and the pipelines under `variants` are run as they are.")
    if design in _COUNTED and given.get("n") is None:
        found.append(f"n: missing; say how many {_COUNTED[design]}, the baseline included.")
    return found


class RaceConfig(Section):
    """How many questions the rounds of the design `racing` have, and how surely a variant is worse that they drop."""

    rounds: list[Annotated[int, Field(ge=MIN_ROUND, le=10_000_000)]] = Field(
        default_factory=list,
        max_length=5,
        description="questions of each round, the earlier ones among them; by the number of questions where empty",
    )
    error: float = Field(
        0.05, gt=0, le=0.5, description="the chance that the best variant of all is ever dropped, over all rounds"
    )

    @field_validator("rounds")
    @classmethod
    def _rounds_grow(cls, value: list[int]) -> list[int]:
        if any(later <= earlier for earlier, later in pairwise(value)):
            raise ValueError("must grow from round to round, as in [40, 100]")
        return value


def read_pairs(given: Any) -> str | Pairs | None:
    """Return `pairs` of an experiment file."""
    if given is None or given in ("all", "baseline"):
        return None if given is None else str(given)
    pairs = given if isinstance(given, list | tuple) else ()
    is_pair = [isinstance(one, list | tuple) and [type(name) for name in one] == [str, str] for one in pairs]
    if not pairs or not all(is_pair):
        raise ValueError(PAIRS_RULE)
    return tuple((variant, against) for variant, against in pairs)


def pair_problems(pairs: str | Pairs | None, design: str, variants: Collection[str]) -> list[str]:
    """Return a sentence for each thing that is wrong with `pairs` in an experiment of this design and variants."""
    if pairs is None:
        return []
    if design != "list":
        return [f"pairs: names variants of the design list, got the design {design}; take it out."]
    if isinstance(pairs, str):
        return []
    names = dict.fromkeys(name for pair in pairs for name in pair)
    problems = [f"pairs: {unknown_name('variant', name, variants)}" for name in names if name not in variants]
    seen: set[frozenset[str]] = set()
    for variant, against in pairs:
        pair = frozenset((variant, against))
        if len(pair) == 1:
            problems.append(f"pairs: {variant} is paired with itself; name two variants.")
        elif pair in seen:
            problems.append(f"pairs: {variant} and {against} are named twice; name each pair once.")
        seen.add(pair)
    return problems


def primary_pairs(
    variants: Collection[str], design: str, pairs: str | Pairs | None = None, same: Mapping[str, str] | None = None
) -> Pairs:
    """Return the comparisons of two variants (ids, the baseline first) that a design declares, as (variant, against).

    Of named pairs those are left of which both are run. `same` has the names of variants that are not run, since
    another one is the same pipeline, with the id of that.
    """
    names = list(variants)
    if design != "list" or pairs == "baseline":
        return tuple((name, names[0]) for name in names[1:])
    if isinstance(pairs, tuple):
        run_as = {**{name: run for name, run in (same or {}).items() if run in names}, **{name: name for name in names}}
        found = [(run_as[a], run_as[b]) for a, b in pairs if a in run_as and b in run_as]
        if different := dict.fromkeys((a, b) for a, b in found if a != b):
            return tuple(different)
    return tuple((later, earlier) for place, later in enumerate(names) for earlier in names[:place])
