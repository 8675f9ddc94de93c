"""Measures by ir_measures' own names, checked before anything runs: `nDCG(dcg='exp-log2')@10`, `Bpref`, `IPrec@0.5`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_lab.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from ir_measures.measures import Measure

MAX_K = 1000
# These need what our labels do not hold: aspects of a question, to which each hit is relevant or not.
_DIVERSITY = "pyndeval"


def ir_measure(name: str, text: str) -> Measure:
    """Return the measure `text` of the metric called `name`."""
    import ir_measures

    known = ir_measures.measures.registry
    head = text.partition("(")[0].partition("@")[0]
    if head not in known:
        raise ConfigError(unknown_name("measure of ir_measures", head, sorted(known)))
    try:
        measure = ir_measures.parse_measure(text)
        measure.validate_params()
    except (ValueError, TypeError, KeyError, AssertionError) as error:
        raise ConfigError(f"Metric {name!r}: {error}; write {_example(known[head])}, for instance.") from None
    if not 1 <= measure.params.get("cutoff", 1) <= MAX_K:
        raise ConfigError(f"Metric {name!r} has an impossible cut-off: allowed is a number from 1 to {MAX_K}.")
    _check_provider(name, measure)
    return measure


def ir_cutoff(text: str) -> int | None:
    """Return the cut-off of the measure `text`; None where it looks at the whole ranking."""
    import ir_measures

    k = ir_measures.parse_measure(text).params.get("cutoff")
    return None if k is None else int(k)


def _check_provider(name: str, measure: Measure) -> None:
    import ir_measures

    able = [provider for provider in ir_measures.DefaultPipeline.providers if provider.supports(measure)]
    if any(provider.NAME == _DIVERSITY for provider in able):
        raise ConfigError(f"Metric {name!r} needs labels of a question's aspects, which datasets here do not have.")
    if any(provider.is_available() for provider in able):
        return
    installs = [text for provider in able if (text := provider.install_instructions())]
    if not installs:  # the missing parameters without which no package computes the measure
        forms = [form for p in ir_measures.DefaultPipeline.providers for form in p.SUPPORTED_MEASURES]
        params = [item for form in forms if form.NAME == measure.NAME for item in form.params.items()]
        required = {name for name, allowed in params if getattr(allowed, "required", False)}
        wanted = sorted(required - measure.params.keys())
        advice = f"give {' and '.join(wanted)} too" if wanted else "leave some out"
        raise ConfigError(f"Metric {name!r}: nothing computes this measure with these parameters; {advice}.")
    raise ConfigError(f"Metric {name!r} needs a package that is not installed: {' or '.join(installs)}.")


def _example(measure: Measure) -> str:
    """Return a name with a value for each parameter that must be given."""
    required = {key: info for key, info in measure.SUPPORTED_PARAMS.items() if info.required}
    at = required.pop(measure.AT_PARAM, None)
    cutoff = "" if at is None else "@0.5" if at.dtype is float else "@10"
    inside = ", ".join(f"{key}=1" for key in required)
    return f"retrieval.{measure.NAME}{f'({inside})' if inside else ''}{cutoff}"
