"""Which providers there are (providers.yaml), and names of models: `provider:name?option=value`.

Options (`?context=8192&device=cpu`) are typed; a secret is never an option.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from rag_lab._kit.registry import BuiltIn, Kind, kinds_of
from rag_lab.errors import ModelError, unknown_name
from rag_lab.models.local import gguf
from rag_lab.models.requirements import check_url
from rag_lab.redaction import names_secret, redact_value

Value = str | int | float | bool
_SHOWN_CHARS = 40
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its type, its smallest and its largest value, its allowed values, and the argument it sets."""

    kind: type[str] | type[int] | type[float] | type[bool]
    minimum: int = 1
    maximum: int = 10_000_000
    choices: tuple[str, ...] = ()
    argument: str = ""  # the constructor's argument, where it cannot have the option's name


def parse_options(text: str, allowed: Mapping[str, Option]) -> dict[str, Value]:
    """Return the options written in `text` (`key=value&key=value`), typed, in the order given."""
    values: dict[str, Value] = {}
    for part in filter(None, text.split("&")):
        key, equals, raw = part.partition("=")
        if key not in allowed:
            if not equals:
                raise ModelError("An option of a model is written name=value, and one of them is not.")
            if names_secret(key):
                raise ModelError(
                    f"A model name must not hold secrets ({key!r}); set the provider's environment variable instead."
                )
            unknown = unknown_name("option of this model", key, allowed) if allowed else ""
            raise ModelError(unknown or f"This model has no option {key!r}.")
        if key in values:
            raise ModelError(f"The option {key!r} of a model is given twice; give it once.")
        values[key] = _typed(key, unquote(raw), allowed[key])
    return values


def _typed(key: str, raw: str, option: Option) -> Value:
    if option.kind is bool:
        if (value := _TRUTH.get(raw.lower())) is None:
            raise ModelError(f"The option {key} must be true or false, got {raw!r}.")
        return value
    if option.kind is str:
        if option.choices and raw not in option.choices:
            raise ModelError(unknown_name(f"value of the option {key}", raw, option.choices))
        if not raw:
            raise ModelError(f"The option {key} is empty; give it a value or leave it out.")
        if key == "base_url":
            check_url(raw, "The option base_url")
        return raw
    is_whole = option.kind is int
    try:
        number = int(raw) if is_whole else float(raw)
    except ValueError:
        number = -1
    if not option.minimum <= number <= option.maximum or number <= 0:
        noun = "whole number" if is_whole else "number"
        bound = f"of at least {option.minimum}" if option.minimum else "above 0"
        shown = raw if len(raw) <= _SHOWN_CHARS else f"{raw[:_SHOWN_CHARS]}…"
        raise ModelError(f"The option {key} must be a {noun} {bound} and at most {option.maximum:,}, got {shown!r}.")
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider(BuiltIn):
    """One way to get one kind of model; `target` takes a model's name and its options."""

    example: str
    options: Mapping[str, Option] = field(default_factory=dict)
    env: tuple[str, ...] = ()  # environment variables of which one must be set
    is_server: bool = False  # its weights are elsewhere
    problem: str = ""  # `module:function` that returns what keeps it from answering now, where it can be asked at once
    check: str = ""  # `module:function` that returns why weights of this name cannot be used, where they are here
    needs_cuda: bool = False
    packaged: str = ""  # the short name whose weights arrive as a package
    sees_images: bool = False  # passes images on; whether the model can see them is the model's own


def _provider(options: Mapping[str, Any], env: Sequence[str] = (), **rest: Any) -> Provider:
    types = {one.__name__: one for one in (str, int, float, bool)}
    typed = {}
    for name, one in options.items():
        choices = one.get("choices", ())
        listed = tuple(getattr(gguf, choices) if isinstance(choices, str) else choices)
        typed[name] = Option(**{**one, "kind": types[one["kind"]], "choices": listed})
    return Provider(**rest, options=typed, env=tuple(env))


CHAT_MODELS, EMBEDDERS, CROSS_ENCODERS, QUERY_LIKELIHOODS, LATE_INTERACTIONS, SPARSE_ENCODERS = kinds_of(
    Path(__file__).with_suffix(".yaml"), "rag_lab.models", _provider
)
_ROLES = ("cross_encoder", "likelihood", "late_interaction")
SCORERS = dict(zip(_ROLES, (CROSS_ENCODERS, QUERY_LIKELIHOODS, LATE_INTERACTIONS), strict=True))
ENCODERS = {"late_interaction": LATE_INTERACTIONS, "sparse": SPARSE_ENCODERS}  # by role
MODEL_KINDS = (CHAT_MODELS, EMBEDDERS, *SCORERS.values(), SPARSE_ENCODERS)


def providers_of(kind: Kind) -> Mapping[str, Provider]:
    """Return what is built in of one kind of model, by name, the default first."""
    return cast(Mapping[str, Provider], kind.built_in)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The parsed name of a model that a built-in provider gives. `options` holds only what was given."""

    provider: str
    name: str  # may hold colons and slashes
    options: Mapping[str, Value]

    @classmethod
    def parse(cls, text: str, kind: Kind = CHAT_MODELS) -> "ModelSpec":
        """Parse `text`, such as `openai:llama3.2:3b?concurrency=2`, as a model of this `kind`."""
        provider, name, options = split_name(text, kind)
        known = providers_of(kind)
        if provider not in known:
            raise ModelError(unknown_name(f"{kind.name} provider", provider, kind.names()))
        return cls(provider, name, parse_options(options, known[provider].options))

    def arguments(self, provider: Provider) -> dict[str, Value]:
        """Return the options as arguments of the provider's class."""
        return {provider.options[key].argument or key: value for key, value in self.options.items()}


def split_name(text: str, kind: Kind) -> tuple[str, str, str]:
    """Return provider, name and options of `provider:name?options`."""
    provider, colon, rest = text.strip().partition(":")
    name, _, options = rest.partition("?")
    if not (colon and provider and name):
        example = next(iter(providers_of(kind).values())).example
        raise ModelError(f"A model is named provider:name, for example {example}; got {redact_value(text)!r}.")
    return provider, name, options
