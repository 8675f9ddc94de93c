"""The one command that would settle the comparison which is nearest to being settled, with its price."""

import math
import shlex

from rag_lab._kit.wording import counted, listing, number
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.verdict_sentences import Verdict, module_rows
from rag_lab.statistics.verdict import resolution

MOST = 20_000  # questions: beyond that nobody has them


def next_command(comparison: Comparison) -> str:
    """Return a sentence with the command, or how many questions are missing; "" where nothing can be settled so.

    The difference that was seen, and a margin where there is one, say how many questions that takes (power 0.8).
    """
    run = comparison.run
    open_ones = [(n, one) for one in module_rows(comparison) if one.variant_id and (n := _needed(comparison, one))]
    if not open_ones or comparison.race or comparison.clusters is not None:
        return ""
    needed, one = min(open_ones, key=lambda pair: pair[0])
    asked, more = len(run.questions), math.ceil(needed * len(run.questions) / one.n) - len(run.questions)
    unasked = sum(n for reason, n in run.left_out.items() if reason.startswith("beyond limits.questions"))
    if more <= 0 or needed > MOST:
        return ""
    if more > unasked:
        return (
            f"To settle {one.called} takes about {asked + more:,} questions, if it differs by as much as was seen, and "
            f"{run.dataset} has {asked + unasked:,}: write {more - unasked:,} more, and run the sweep again."
        )
    names = [name for name in (one.variant_id, one.against_id) if name != run.baseline]
    path = run.file or f"results/{run.name}/experiment.yaml"
    command = [
        "rag-lab",
        "sweep",
        path,
        *(part for name in names for part in ("--only", name)),
        "--questions",
        f"+{more}",
    ]
    prices = [comparison.prices[name] for name in {one.variant_id, one.against_id} if name in comparison.prices]
    seconds, usd = (math.fsum(getattr(price, name) or 0.0 for price in prices) * more for name in ("seconds", "usd"))
    cost = listing([f"about {max(1, round(seconds / 60)):,} minutes", *([f"${usd:,.2f}"] if usd else [])])
    return f"To settle {one.called}, with {counted(more, 'more question')}: `{shlex.join(command)}` ({cost})."


def _needed(comparison: Comparison, one: Verdict) -> float | None:
    """Return how many questions with a score would settle a comparison that is open."""
    if one.word != "cannot tell" or not one.n or one.effect is None:
        return None
    resolved = resolution(one.effect, number(one.row["smallest_difference"]))
    by_margin = comparison.questions_for_margin.get((one.metric, one.variant_id, one.against_id))
    found = [one.n / resolved if resolved else None, float(by_margin) if by_margin else None]
    return min((n for n in found if n is not None), default=None)
