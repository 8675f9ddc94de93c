"""A chat in a file: Jinja, with a line `[system]`, `[user]` or `[assistant]` before each message; where one may stand.

The file is cut into messages before anything is filled in, so that no text of a document or of a question can begin a
message of its own. Templates run in Jinja's sandbox: they see the variables of their place and nothing else.

A JSON object in a reply is read by rules, in order; nothing is guessed beyond them: text around the object and code
fences are dropped; a comma before a closing bracket is dropped; an object cut off in the middle (the model ran out of
tokens) has its open string and brackets closed, without a member of which there is only the name, or half a value that
is no text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from string import Formatter
from typing import TYPE_CHECKING, Any

from rag_lab._kit.config_file import read_shipped
from rag_lab._kit.digest import digest
from rag_lab._kit.registry import Kind, modules_folder
from rag_lab._kit.wording import listing
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.models.protocols import Message
from rag_lab.records import Passage, Turn

if TYPE_CHECKING:
    from jinja2 import Template

_HEAD = re.compile(r"^\[(system|user|assistant)\][ \t]*$", re.MULTILINE)
BUILT_IN = "builtin"
_LANGCHAIN = Kind("prompt", "rag_lab.prompts")
_NAMED = re.compile(r"[\w.]+:\w+")
_ROLES = {"system": "system", "human": "user", "ai": "assistant"}
SUFFIX = ".j2"
MAX_BYTES = 100_000
_TURNS = (Turn("user", "At which pressure does P-1 run?"), Turn("assistant", "At 40 bar."))
_PASSAGE = Passage(1, "press.md#1", "press.md", None, 0, 11, "P-2: 60 bar")
_SECTION = {"topic": "presses", "section": "P-2", "passages": (_PASSAGE,), "context": "[1] (press.md)\nP-2: 60 bar"}


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
        """Check that it is a chat that ends with the user, and uses only `variables`, at least one of `needed`."""
        from jinja2 import Environment, nodes
        from jinja2.meta import find_undeclared_variables

        used: set[str] = set()
        parser = Environment(autoescape=False)  # noqa: S701 - read, never rendered
        assert self._templates  # noqa: S101 - refuses what does not parse, in a sentence
        for _, text in self._parts:
            parsed = parser.parse(text)
            if next(parsed.find_all((nodes.Include, nodes.Extends, nodes.Import, nodes.FromImport)), None):
                raise ConfigError(f"{self.name} reads another file, which a prompt cannot; put its text in its place.")
            used |= find_undeclared_variables(parsed)
        if strangers := sorted(used - set(variables)):
            raise ConfigError(f"{self.name}: {unknown_name('variable', strangers[0], sorted(variables))}")
        if not used & set(needed):
            raise ConfigError(f"{self.name} uses none of {listing(list(needed))}, and asks the same of all; use it.")
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


# What systems of the presets ask; a file beside the experiment goes first.
_SHIPPED = Path(__file__).with_name("shipped")
# What the built-in prompts say, by name; files that take their place are beside it.
SHIPPED_PROMPTS: Mapping[str, Any] = read_shipped(_SHIPPED / "prompts.yaml")


@dataclass(frozen=True)
class PromptPlace:
    """Where a prompt stands: an example of every variable that is filled in, and those of which it must use one."""

    name: str
    example: Mapping[str, Any]
    needed: tuple[str, ...]

    def problem(self, file: str) -> str:
        """Return why `file` cannot be used here, in one sentence, or ''."""
        try:
            self.read(file)
        except ConfigError as error:
            return str(error)
        return ""

    def read(self, file: str) -> ChatTemplate | None:
        """Return the prompt in a file beside the experiment, or one that is shipped; None for what is built in."""
        if file == BUILT_IN:
            return None
        if ":" in file:
            return self._checked(ChatTemplate(f"The prompt {file}", _langchain_text(file, _LANGCHAIN.load(file))))
        path = Path(modules_folder(), *PurePosixPath(file).parts)
        if not path.exists() and (shipped := _SHIPPED / file).is_file():
            path = shipped
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ConfigError(
                f"Cannot read the prompt {path} ({error.strerror}); put the file there, or set builtin."
            ) from None
        if len(data) > MAX_BYTES:
            size = f"{len(data):,} bytes, and at most {MAX_BYTES:,} are read"
            raise ConfigError(f"The prompt {file} has {size}; shorten it.")
        try:
            template = ChatTemplate(f"The prompt {file}", data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise ConfigError(f"The prompt {file} is not UTF-8; save it as that.") from None
        return self._checked(template)

    def _checked(self, template: ChatTemplate) -> ChatTemplate:
        template.check(self.example, self.needed)
        nothing = {name: value[:0] if isinstance(value, tuple) else value for name, value in self.example.items()}
        for values in (self.example, nothing):  # a question may have no earlier turn and find no passage
            template.messages(values)
        return template


def _langchain_text(name: str, found: Any) -> str:
    """Return a `ChatPromptTemplate` of LangChain's as the text of a file.

    What stands for messages (`MessagesPlaceholder`) is turns: lines `role: text` before the next message.
    """
    if not hasattr(found, "messages") or getattr(found, "partial_variables", None):
        what = "has partial variables" if hasattr(found, "messages") else f"is a {type(found).__name__}"
        raise ConfigError(f"The prompt {name} {what}; name a ChatPromptTemplate that has all of its text.")
    text = turns = ""
    for message in found.messages:
        if variable := getattr(message, "variable_name", ""):
            turns += f"{{% for turn in {variable} %}}{{{{ turn.role }}}}: {{{{ turn.content }}}}\n{{% endfor %}}"
            continue
        prompt = getattr(message, "prompt", None)  # none: a message as it stands
        kind = (type(message).__name__ if prompt else message.type).lower()
        role = next((role for mark, role in _ROLES.items() if kind.startswith(mark)), "")
        form = getattr(prompt, "template_format", "text")
        body = prompt.template if prompt else message.content
        parts = [*Formatter().parse(body)] if form == "f-string" else [(body, None, "", None)]
        if not role or form == "mustache" or any(spec or conversion for *_, spec, conversion in parts):
            raise ConfigError(
                f"The prompt {name} has a message ({kind}, {form}) that cannot be read; system, human and ai can, as "
                "text, Jinja, or an f-string without formats."
            )
        filled = "".join(  # what could be taken for a template stands as a text in one
            (f"{{{{ {json.dumps(plain, ensure_ascii=False)} }}}}" if "{" in plain or _HEAD.search(plain) else plain)
            + (f"{{{{ {field} }}}}" if field else "")
            for plain, field, *_ in parts
        )
        text += f"[{role}]\n{turns}{body if form == 'jinja2' else filled}\n"
        turns = ""
    return text


# By key of the section `prompts`.
PLACES = {
    place.name: place
    for place in (
        PromptPlace(
            "understanding", {"question": "And P-2?", "history": _TURNS, "summary": "", "classes": ("fuzzy",)},
            ("question",),
        ),
        PromptPlace("phrasings", {"question": "At which pressure does P-2 run?", "n": 2}, ("question",)),
        PromptPlace("hyde", {"question": "At which pressure does P-2 run?", "query_class": "specific"}, ("question",)),
        PromptPlace("summary", {"summary": "", "turns": _TURNS}, ("turns",)),
        PromptPlace(
            "answer",
            {
                "question": "And P-2?", "history": _TURNS, "summary": "", "passages": (_PASSAGE,),
                "context": "[1] (press.md)\nP-2: 60 bar", "not_found": "The documents do not say.",
            },
            ("question",),
        ),
        PromptPlace(
            "outline",
            {"topic": "presses", "parts": 2, "passages": (_PASSAGE,), "context": "[1] (press.md)\nP-2: 60 bar"},
            ("topic",),
        ),
        *(PromptPlace(f"section_{style}", _SECTION, ("section",)) for style in ("technical", "general")),
        PromptPlace("review", {"topic": "presses", "section": "P-2", "draft": "P-2 runs at 60 bar [1]."}, ("draft",)),
    )
}  # fmt: skip


def prompt_name(text: str) -> str:
    """Return `text` if it can name a prompt; nothing is read."""
    path = PurePosixPath(text)
    if (
        text != BUILT_IN
        and not _NAMED.fullmatch(text)
        and (path.suffix != SUFFIX or path.is_absolute() or ".." in path.parts or "\\" in text)
    ):
        raise ValueError(
            f"must be {BUILT_IN}, a {SUFFIX} file beside the experiment, by its path from there, or module:NAME"
        )
    return text


_HALF_ESCAPE = re.compile(r"((?<!\\)(?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?\Z")


class RepairError(ValueError):
    """No rule makes an object of the text."""


def read_json(text: str) -> tuple[dict[str, Any], str]:
    """Return the object and the rule that was needed ('' for plain JSON)."""
    start = text.find("{")
    if start < 0:
        raise RepairError("there is no JSON object in the reply")
    inner = text[start : text.rfind("}") + 1] or text[start:]
    commas = [at for at, character, in_string in _walk(text[start:]) if character == "," and not in_string]
    without_last_member = text[start : start + commas[-1]] if commas else ""
    attempts = [
        (text.strip(), ""),
        (inner, "dropped the text around the object"),
        (re.sub(r",(\s*[}\]])", r"\1", inner), "dropped a trailing comma"),
        (_closed(text[start:].rstrip()), "closed an object that was cut off"),
        (_closed(without_last_member), "closed an object that was cut off"),
    ]
    for attempt, rule in attempts:
        try:
            value = json.loads(attempt, strict=False)
        except (json.JSONDecodeError, RecursionError):
            continue
        if isinstance(value, dict):
            # without lone surrogates (an escaped emoji cut in two), which no file could be written with
            return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "ignore")), rule
    raise RepairError("the reply is not JSON and no rule repairs it")


def _closed(text: str) -> str:
    """Close the string and the brackets that are open at the end of `text`."""
    closers: list[str] = []
    in_string = False
    for _, character, in_string in _walk(text):
        if in_string:
            continue
        if character in "{[":
            closers.append("}" if character == "{" else "]")
        elif character in "}]" and closers:
            closers.pop()
    body = _HALF_ESCAPE.sub(r"\1", text) + '"' if in_string else re.sub(r"[,:]\s*$", "", text)
    return body + "".join(reversed(closers))


def _walk(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield position, character and whether a string is open after it."""
    in_string = escaped = False
    for position, character in enumerate(text):
        if escaped:
            escaped = False
        elif in_string:
            escaped = character == "\\"
            in_string = character != '"'
        else:
            in_string = character == '"'
        yield position, character, in_string
