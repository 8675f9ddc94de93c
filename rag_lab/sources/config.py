"""connectors.yaml: which sources are ingested, how a record becomes a document, and whose it is.

A secret stands in the environment: `${NAME}` in an option is replaced by the variable NAME when the source is opened.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from rag_lab._kit.config_file import read_mapping
from rag_lab._kit.digest import digest
from rag_lab._kit.registry import construct
from rag_lab._kit.section import Section, faults
from rag_lab.corpus.rules import Attributes
from rag_lab.errors import ConfigError, RagLabError
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.shared import chat_model
from rag_lab.redaction import holds_secret, names_secret, one_line
from rag_lab.sources.source import SOURCES, Content, Entry, Source, UnusableItem

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_MARKUP = 2  # raised when the same settings make another document of a record
SUFFIX = ".md"
_SUFFIXES = re.compile(r"\.(?!documents$)[A-Za-z0-9]{1,12}")  # a .documents file would name itself
_ASKED = (
    "Write each of these records as a short text with all that it says, for people who search it. Keep names, numbers "
    'and codes as they are. Reply with JSON alone: {"items": [{"id": "...", "text": "..."}]}, an item a record.\n\n'
)
_AT_ONCE = 5  # records in one call
_TOKENS = 400  # of each reply, for a record
_ITEM = {
    "type": "object",
    "required": ["id", "text"],
    "properties": {"id": {"type": "string"}, "text": {"type": "string"}},
}
_REPLY = {"type": "object", "required": ["items"], "properties": {"items": {"type": "array", "items": _ITEM}}}


class Connector(Section):
    """One source and what becomes of its items."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,59}$")
    kind: Annotated[str, SOURCES, AfterValidator(SOURCES.check)]
    options: Mapping[str, Any] = Field(default_factory=dict)
    namespace: str | None = None  # the name where left out; '' for none
    permission: str | None = None  # likewise; '' where everybody may see
    # The columns of a record that say whose its document is; permissions are a list, or text with commas.
    attributes: Mapping[Literal["namespace", "permissions"], str] = Field(default_factory=dict)
    template: str = ""  # Jinja; the columns are its variables
    formatter: str = ""  # a chat model that writes the documents, in place of a template
    max_mb: float = Field(20, gt=0)  # of one item
    every_s: float = Field(60, ge=0.1)  # between two listings, where no event says more

    @model_validator(mode="after")
    def _check(self) -> "Connector":
        if self.template and self.formatter:
            raise ValueError("has a template and a formatter; give one of them")
        _ = self.compiled
        return self

    @cached_property
    def compiled(self) -> Any:
        """The template, None where there is none; a ValueError where it is no Jinja."""
        from jinja2 import StrictUndefined, TemplateSyntaxError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
        try:
            return environment.from_string(self.template) if self.template else None
        except TemplateSyntaxError as error:
            raise ValueError(f"the template is not Jinja ({error.message})") from None

    @cached_property
    def digest(self) -> str:
        """The digest of whatever makes another document of the same record; it is part of each fingerprint."""
        kept = self.model_dump(exclude={"every_s"}, mode="json")
        asks = {"model": dict(chat_model(self.formatter).identity()), "prompt": _ASKED} if self.formatter else {}
        return digest([_MARKUP, kept, {"template": self.template, **asks}])[:16]

    def label(self, record: Mapping[str, Any]) -> Attributes:
        """Return whose the document of a record is, and who may see it."""
        missing = [name for name in self.attributes.values() if name and record.get(name) in (None, "")]
        if missing:  # what nobody is named for must not become public
            raise ConfigError(f"the column {missing[0]!r}, which says whose it is, is empty or missing; fill it.")
        namespace, given = (self.attributes.get(name) for name in ("namespace", "permissions"))
        namespace = str(record[namespace]) if namespace else self.namespace
        given = record[given] if given else self.permission
        namespace, given = (self.name if one is None else one for one in (namespace, given))
        names = given.split(",") if isinstance(given, str) else given
        permissions = (str(name).strip() for name in names)
        return Attributes(namespace.strip(), tuple(sorted(filter(None, permissions))))

    def too_large(self, n_bytes: int) -> str:
        """Return why an item of this size is no document, or ''."""
        too_large = f"it has {n_bytes / 2**20:,.0f} MiB, more than max_mb ({self.max_mb:g}); split it or raise that."
        return too_large if n_bytes > self.max_mb * 2**20 else ""

    def open(self) -> Source:
        """Return the source, its options filled in from the environment."""
        what = f"source {self.name!r} ({self.kind})"
        options = {name: _filled(value, f"{self.name}: {name}") for name, value in self.options.items()}
        if "?" in self.kind:
            raise ConfigError(f"The {what} takes its parameters from `options`, not from its name.")
        found = SOURCES.find(self.kind).value if self.kind in SOURCES.built_in else SOURCES.load(self.kind)
        source: Source = construct(found, options, what, SOURCES.call)
        return source

    def texts(
        self, items: Sequence[tuple[Entry, Content | RagLabError]]
    ) -> Iterator[tuple[Entry, str | Path | RagLabError]]:
        """Yield each document: a text, a file as it is, or why there is none."""
        records = [(entry, content) for entry, content in items if self.formatter and isinstance(content, Mapping)]
        written: dict[str, str | UnusableItem] = {}
        for start in range(0, len(records), _AT_ONCE):
            written |= self._written(records[start : start + _AT_ONCE])
        for entry, content in items:
            found: str | Content | RagLabError = written.get(entry.key, content)
            if isinstance(found, Mapping) and self.compiled is None:
                found = "\n\n".join(f"{name}: {value}" for name, value in found.items() if value not in (None, ""))
            elif isinstance(found, Mapping):
                try:
                    found = str(self.compiled.render(found))
                except Exception as error:  # whatever a template does with a value that it was not written for
                    found = UnusableItem(f"the template fails ({one_line(str(error), 120)}); mend it or the record.")
            n_bytes = found.stat().st_size if isinstance(found, Path) else len(str(found).encode(errors="replace"))
            if isinstance(found, Path) and not _SUFFIXES.fullmatch(found.suffix):
                found = UnusableItem(f"its suffix is {found.suffix!r}; a document has one of letters and digits.")
            elif said := self.too_large(n_bytes):
                found = UnusableItem(said)
            yield entry, found

    def _written(self, records: Sequence[tuple[Entry, Any]]) -> dict[str, str | UnusableItem]:
        """Return the text that the model wrote of each record, or why there is none."""
        asked = [{"id": entry.key, **content} for entry, content in records]
        text = _ASKED + json.dumps(asked, ensure_ascii=False, default=str)
        request = ChatRequest((Message("user", text),), _TOKENS * len(records), json_schema=_REPLY)
        (reply,) = chat_model(self.formatter, "formatter").generate([request])
        if reply.transient:
            raise ConfigError(f"the formatter {self.formatter} does not answer: {reply.error}")
        try:
            items = json.loads(reply.text[reply.text.index("{") : reply.text.rindex("}") + 1])["items"]
            found = [(str(item["id"]), str(item["text"])) for item in items]
        except (ValueError, LookupError, TypeError):
            found = []
        wanted, got = {entry.key for entry, _ in records}, [key for key, _ in found]
        why = (
            f"came to no end in {request.max_tokens:,} tokens" if reply.truncated else "wrote no text with its id alone"
        )
        if strangers := set(got) - wanted:
            got, why = [], f"wrote of {min(strangers)!r}, unasked"
        bad = UnusableItem(f"the formatter {self.formatter} {why}; name another model, or use a template.")
        return {key: dict(found)[key] if got.count(key) == 1 else bad for key in wanted}


class Connectors(Section):
    """What connectors.yaml holds."""

    dataset: str = "."  # whose corpus is written, from the file's folder
    connectors: list[Connector] = Field(min_length=1)


def read_connectors(path: Path) -> tuple[Path, list[Connector]]:
    """Return the folder of the data set that a connectors.yaml names, and its connectors."""
    try:
        found = Connectors.model_validate(read_mapping(path))
    except ValidationError as error:
        keys = {*Connectors.model_fields, *Connector.model_fields}
        raise ConfigError(f"{path}: {faults(error, 'key', keys)}") from None
    names = [connector.name for connector in found.connectors]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ConfigError(f"{path}: has two connectors named {twice!r}; give each its own name.")
    for connector in found.connectors:
        for name, value in connector.options.items():
            _refuse_secret(f"{path}: {connector.name}: {name}", name, value)
    return path.parent / Path(found.dataset).expanduser(), found.connectors


def _refuse_secret(where: str, name: str, value: Any) -> None:
    """Refuse a secret that stands in the file itself."""
    if isinstance(value, Mapping):
        for inner, text in value.items():
            _refuse_secret(f"{where}.{inner}", inner, text)
    elif (
        isinstance(value, str)
        and value
        and not _VARIABLE.search(value)
        and (holds_secret(value) or (names_secret(name) and name != "key"))
    ):
        raise ConfigError(f"{where} may hold a secret; put it into the environment and write ${{NAME}} here.")


def _filled(value: Any, where: str) -> Any:
    """Return an option with the variables of the environment that it names."""
    if isinstance(value, Mapping):
        return {name: _filled(inner, f"{where}.{name}") for name, inner in value.items()}
    if not isinstance(value, str):
        return value
    if missing := next((name for name in _VARIABLE.findall(value) if name not in os.environ), ""):
        raise ConfigError(f"{where} names the variable {missing}, which is not set; set it in the environment or .env.")
    return _VARIABLE.sub(lambda found: os.environ[found[1]], value)
