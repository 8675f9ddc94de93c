"""A chat in a file: Jinja, with a line `[system]`, `[user]` or `[assistant]` before each message.

The file is cut into messages before anything is filled in, so that no text of a document or of a question can begin a
message of its own. Templates run in Jinja's sandbox: they see the variables of their place and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rag_lab._kit.digest import digest
from rag_lab._kit.wording import listing
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.models.protocols import Message

if TYPE_CHECKING:
    from jinja2 import Template

_HEAD = re.compile(r"^\[(system|user|assistant)\][ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class ChatTemplate:
    """What a model is asked in the words of a file. `name` is what sentences call it; `text` is the file's."""

    name: str
    text: str

    @property
    def digest(self) -> str:
        """Whatever of it can change what is asked."""
        return digest(self.text)

    def messages(self, values: Mapping[str, Any]) -> tuple[Message, ...]:
        """Return the chat with `values` filled in; a message that is blank then is left out."""
        from jinja2 import TemplateError

        try:
            filled = [(role, template.render(values).strip()) for role, template in self._templates]
        except (
            TemplateError,
            ArithmeticError,
            AttributeError,
            LookupError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            reason = " ".join(str(error).split())[:200]
            raise ConfigError(f"{self.name} cannot be filled in ({reason}); mend the file.") from None
        return tuple(Message(role, text) for role, text in filled if text)  # type: ignore[arg-type]

    def check(self, variables: Collection[str], needed: Collection[str]) -> None:
        """Check that it is a chat that ends with the user, and asks by variables that there are.

        Args:
            variables: the names that are filled in.
            needed: names of which it must use at least one: without, it would ask the same of every question.
        """
        used = self._variables()
        if strangers := sorted(used - set(variables)):
            raise ConfigError(f"{self.name}: {unknown_name('variable', strangers[0], sorted(variables))}")
        if not used & set(needed):
            raise ConfigError(
                f"{self.name} uses none of {listing(list(needed))}, and would ask the same of all; use it."
            )
        if self._templates[-1][0] != "user":
            raise ConfigError(f"{self.name} ends with [{self._templates[-1][0]}]; the last message is the user's.")

    @cached_property
    def _parts(self) -> list[tuple[str, str]]:
        """The messages as they stand, with their roles; a file without a head line is one message of the user."""
        heads = list(_HEAD.finditer(self.text))
        if not heads:
            return [("user", self.text)]
        if self.text[: heads[0].start()].strip():
            raise ConfigError(f"{self.name} has text before its first [{heads[0][1]}]; put a [system] line above it.")
        ends = [*(head.start() for head in heads[1:]), len(self.text)]
        return [(head[1], self.text[head.end() : end]) for head, end in zip(heads, ends, strict=True)]

    @cached_property
    def _templates(self) -> list[tuple[str, Template]]:
        from jinja2 import StrictUndefined, TemplateSyntaxError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
        try:
            return [(role, environment.from_string(text)) for role, text in self._parts]
        except TemplateSyntaxError as error:
            raise ConfigError(f"{self.name} is no Jinja template ({error.message}); mend the file.") from None

    def _variables(self) -> set[str]:
        from jinja2 import Environment, nodes
        from jinja2.meta import find_undeclared_variables

        found: set[str] = set()
        parser = Environment(autoescape=False)  # noqa: S701 - read, never rendered
        assert self._templates  # noqa: S101 - refuses what does not parse, in a sentence
        for _, text in self._parts:
            parsed = parser.parse(text)
            if next(parsed.find_all((nodes.Include, nodes.Extends, nodes.Import, nodes.FromImport)), None):
                raise ConfigError(f"{self.name} reads another file, which a prompt cannot; put its text in its place.")
            found |= find_undeclared_variables(parsed)
        return found
