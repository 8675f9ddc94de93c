"""A model's name as people write it: `provider:name?option=value&option=value`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rag_lab._kit.registry import Kind
from rag_lab.errors import ModelError, unknown_name
from rag_lab.models.options import Value, parse_options
from rag_lab.models.providers import CHAT_MODELS, Provider, providers_of
from rag_lab.redaction import redact_value


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The parsed name of a model that a built-in provider gives. `options` holds only what was given."""

    provider: str
    name: str  # may hold colons and slashes
    options: Mapping[str, Value]

    @classmethod
    def parse(cls, text: str, kind: Kind = CHAT_MODELS) -> ModelSpec:
        """Parse `text` as a model of this `kind`.

        Example:
            >>> ModelSpec.parse("openai:llama3.2:3b?concurrency=2").name
            'llama3.2:3b'

        Raises:
            ModelError: for a missing provider or name, an unknown provider or option, or an impossible value.
        """
        provider, name, options = split_name(text, kind)
        known = providers_of(kind)
        if provider not in known:
            raise ModelError(unknown_name(f"{kind.name} provider", provider, kind.names()))
        return cls(provider, name, parse_options(options, known[provider].options))

    def arguments(self, provider: Provider) -> dict[str, Value]:
        """Return the options as arguments of the provider's class."""
        return {provider.options[key].argument or key: value for key, value in self.options.items()}


def split_name(text: str, kind: Kind) -> tuple[str, str, str]:
    """Return provider, name and options of `provider:name?options`.

    Raises:
        ModelError: for a missing provider or name.
    """
    provider, colon, rest = text.strip().partition(":")
    name, _, options = rest.partition("?")
    if not colon or not provider or not name:
        example = next(iter(providers_of(kind).values())).example
        raise ModelError(f"A model is named provider:name, for example {example}; got {redact_value(text)!r}.")
    return provider, name, options
