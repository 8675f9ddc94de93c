"""What variants change, in plain words; and what to do where no label says which of them is better."""

from rag_lab._kit.wording import counted, listing, number, plain, seconds
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.caveats import FEW
from rag_lab.comparison.tables.changes import Changes, VariantChange

WRITTEN_OUT = 5  # variants with a sentence of their own
DOLLARS = 0.0001


def no_labels(comparison: Comparison) -> str:
    """Return why nothing is called better; "" where a question has a label."""
    if not comparison.is_unlabelled:
        return ""
    asked = counted(comparison.changes.asked, "question")
    return (
        f"None of the {asked} has a label (where the answer stands, or what it is), so no variant is called better. "
        "What can be said is what each changes against the baseline: different is not better."
    )


def is_measured(comparison: Comparison) -> bool:
    """Tell whether the main metric has a score of any variant, as one of a judge has without labels."""
    metric = comparison.main_metric
    return metric is not None and any(
        (cell := comparison.cell(plan.variant_id, metric)) and cell["scored"] for plan in comparison.variants
    )


def changes_sentences(comparison: Comparison) -> list[str]:
    """Return a sentence a variant, the largest change first, and one for those that change nothing."""
    changes = comparison.changes
    others = [one for one in changes.variants if one.variant_id != comparison.run.baseline]
    if len(others) == len(changes.variants):
        return ["The baseline was not run to its end, so nothing can be compared with it."]
    if not others:
        notices = [str(notice) for notice in comparison.manifest.get("notices", [])]
        return [*notices, "No other variant was run to its end, so there is nothing to compare the baseline with."]
    baseline = next(one for one in changes.variants if one.variant_id == comparison.run.baseline)
    moved = sorted((one for one in others if not one.is_nothing), key=_size, reverse=True)
    told = [
        f"{comparison.called(one.variant_id)} changes {_changed(changes, one)}.{_price(one, baseline)}"
        for one in moved[:WRITTEN_OUT]
    ]
    if len(moved) > WRITTEN_OUT:
        rest = [comparison.called(one.variant_id) for one in moved[WRITTEN_OUT:]]
        told.append(f"Less is changed by {listing(rest)}.")
    if still := [one for one in others if one.is_nothing]:
        names = listing([comparison.called(one.variant_id) for one in still])
        what = "ranking or answer" if any(one.answers for one in still) else "ranking"
        verb, price = ("changes", _price(still[0], baseline)) if len(still) == 1 else ("change", "")
        told.append(f"{names} {verb} no {what} of any question.{price}")
    return told


def next_steps(comparison: Comparison) -> list[str]:
    """Return what leads from a difference to a finding."""
    steps = []
    if comparison.changes.most:
        steps.append(
            "Read the questions that changed most, then say which answer is better without seeing whose it is: "
            f'in a notebook, `rag_lab.prefer("{comparison.run.path}")`.'
        )
    return [*steps, *labels_wanted(comparison)]


def labels_wanted(comparison: Comparison) -> list[str]:
    """Count down to the labelled questions from which on variants can be told apart; none where so many were asked."""
    labelled = sum(question.is_labelled for question in comparison.asked.values())
    if labelled >= FEW or not comparison.asked or comparison.run.left_out:
        return []
    return [
        f"{labelled} of about {FEW} questions are labelled. Label more: `rag-lab ask QUESTION --dataset "
        f"{comparison.run.dataset} --label`, or `rag_lab.label(pipeline, question)` in a notebook."
    ]


def _changed(changes: Changes, one: VariantChange) -> str:
    parts = []
    if one.rankings:
        what, seen = "the order of pages" if one.by_page else "the ranking", ""
        if one.rankings_changed:
            top = f", {(one.shared or 0) * changes.k:.1f} of the first {changes.k} shared"
            seen = f" (overlap RBO {plain(one.overlap)}{top if one.shared is not None else ''})"
        parts.append(f"{what} of {one.rankings_changed} of {counted(one.rankings, 'question')}{seen}")
    if one.answers:
        words = f" ({one.words:.0%} of their words)" if one.words is not None else ""
        parts.append(f"{one.answers_changed} of {counted(one.answers, 'answer')}{words}")
    return " and ".join(parts)


def _price(one: VariantChange, before: VariantChange) -> str:
    parts = []
    mine, base = seconds(one.seconds), seconds(before.seconds)
    if mine != base:
        parts.append(f"takes {mine} s, with the baseline {base} s (medians)")
    dollars = number(one.cost_usd) or 0.0, number(before.cost_usd) or 0.0
    if abs(dollars[0] - dollars[1]) >= DOLLARS:
        parts.append(f"costs {dollars[0]:.4f} dollars, with the baseline {dollars[1]:.4f}")
    return f" A question {' and '.join(parts)}." if parts else ""


def _size(one: VariantChange) -> float:
    ranking = 1 - one.overlap if one.overlap is not None else 0.0
    return ranking + (one.answers_changed / one.answers if one.answers else 0.0)
