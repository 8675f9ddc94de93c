"""A panel of switches for the pipeline's modules, bound to a `PipelineConfig`.

The widgets are made from the configuration's fields, so a new choice of a field appears here by itself. Their values
can be read and set without a browser. A panel lives as long as the kernel: the cell that makes it may run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from pydantic.fields import FieldInfo

from rag_lab.config import PipelineConfig, dotted_keys
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.notebook.switches import boxes, observe, said, set_value, switch, value_of

MODULE_SWITCHES = (
    "query.rewrite",
    "query.hyde",
    "query.class_to_hyde",
    "retrieval.mode",
    "retrieval.base_k",
    "retrieval.hyde_k",
    "rerank.name",
    "rerank.input_limit",
    "rerank.final_k",
    "select.cut",
    "select.diversity",
)
_PANELS: dict[str, TogglePanel] = {}  # the last of each name in this kernel


class TogglePanel:
    """Widgets that change a configuration; show the panel by writing it on a cell's last line.

    A panel goes on where the last one of its name stood in this kernel, so running its cell again undoes nothing.
    Where `config` itself has changed since, its new value counts, and the panel says which toggle that replaced.

    Args:
        config: where the widgets start, and where the button leads back to.
        keys: the dotted keys to offer, in order.
        name: of the panel; give a second panel of a notebook another one.

    Raises:
        ConfigError: if a key is unknown.

    Example:
        >>> panel = TogglePanel(PipelineConfig())
        >>> panel.widgets["rerank.name"].value = "query_likelihood"
        >>> panel.config.rerank.name
        'query_likelihood'
    """

    def __init__(self, config: PipelineConfig, keys: Sequence[str] = MODULE_SWITCHES, name: str = "modules") -> None:
        unknown = [unknown_name("parameter", key, dotted_keys()) for key in keys if key not in dotted_keys()]
        if unknown:
            raise ConfigError("; ".join(unknown))
        self._start = config
        values = config.flat()
        self.widgets: dict[str, Any] = {key: switch(key, _field(key), values[key]) for key in keys}
        self._replaced = self._go_on(_PANELS[name]) if name in _PANELS else []
        self._bind_classes()
        _PANELS[name] = self

    @property
    def config(self) -> PipelineConfig:
        """The configuration as the widgets stand now.

        Raises:
            ConfigError: if the values do not go together.
        """
        return self._start.override({key: value_of(widget) for key, widget in self.widgets.items()})

    @property
    def changes(self) -> dict[str, Any]:
        """The dotted keys whose value differs from where the panel started."""
        before = self._start.flat()
        now = {key: value_of(widget) for key, widget in self.widgets.items()}
        return {key: value for key, value in now.items() if value != before[key]}

    def reset(self) -> None:
        """Let all widgets stand where the panel starts."""
        values = self._start.flat()
        for key, widget in self.widgets.items():
            set_value(widget, values[key])

    def _go_on(self, last: TogglePanel) -> list[str]:
        """Take over what was toggled in `last`; return a sentence for each toggle that a new start replaces."""
        before, now, replaced = last._start.flat(), self._start.flat(), []
        for key, toggled in last.changes.items():
            if key in self.widgets and before[key] == now[key]:
                set_value(self.widgets[key], toggled)
            elif key in self.widgets and toggled != now[key]:
                replaced.append(f"{key} starts as {said(now[key])} now, which replaces {said(toggled)}.")
        return replaced

    def _status(self) -> str:
        """Return which toggles stand elsewhere than at the start, as HTML."""
        before = self._start.flat()
        told = [f"{key} = {said(value)} (starts as {said(before[key])})" for key, value in self.changes.items()]
        changed = f"Changed here: {'; '.join(told)}. This stays while the kernel runs." if told else "Nothing changed."
        return "".join(f"<div>{escape(sentence)}</div>" for sentence in [*self._replaced, changed])

    def _bind_classes(self) -> None:
        """Grey out the choice of classes while `query.hyde` does not ask for it."""
        mode, classes = self.widgets.get("query.hyde"), self.widgets.get("query.class_to_hyde")
        if mode is None or classes is None:
            return

        def follow(_: Any = None) -> None:
            for box in boxes(classes):
                box.disabled = mode.value != "classified"

        mode.observe(follow, "value")
        follow()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        import ipywidgets

        status = ipywidgets.HTML(self._status())
        button = ipywidgets.Button(description="Reset", tooltip="back to where the panel starts")
        button.on_click(lambda _: self.reset())

        def follow(_: Any = None) -> None:
            status.value, button.disabled = self._status(), not self.changes

        for widget in self.widgets.values():
            observe(widget, follow)
        follow()
        return ipywidgets.VBox([*self.widgets.values(), status, button])._repr_mimebundle_(**options)


def _field(key: str) -> FieldInfo:
    """Return the pydantic field of a dotted key."""
    model: Any = PipelineConfig
    *sections, name = key.split(".")
    for section in sections:
        model = model.model_fields[section].annotation
    info: FieldInfo = model.model_fields[name]
    return info
