"""A panel of switches for the pipeline's modules, bound to a `PipelineConfig`.

The widgets are made from the configuration's fields, so a new choice of a field appears here by itself. Their values
can be read and set without a browser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from rag_lab.config import PipelineConfig, dotted_keys
from rag_lab.errors import ConfigError, unknown_name

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


class TogglePanel:
    """Widgets that change a configuration; show the panel by writing it on a cell's last line.

    Args:
        config: where the widgets start.
        keys: the dotted keys to offer, in order.

    Raises:
        ConfigError: if a key is unknown.

    Example:
        >>> panel = TogglePanel(PipelineConfig())
        >>> panel.widgets["rerank.name"].value = "query_likelihood"
        >>> panel.config.rerank.name
        'query_likelihood'
    """

    def __init__(self, config: PipelineConfig, keys: Sequence[str] = MODULE_SWITCHES) -> None:
        unknown = [unknown_name("parameter", key, dotted_keys()) for key in keys if key not in dotted_keys()]
        if unknown:
            raise ConfigError("; ".join(unknown))
        self._start = config
        values = config.flat()
        self.widgets: dict[str, Any] = {key: _widget(key, _field(key), values[key]) for key in keys}
        self._bind_classes()

    @property
    def config(self) -> PipelineConfig:
        """The configuration as the widgets stand now.

        Raises:
            ConfigError: if the values do not go together.
        """
        return self._start.override({key: _value(widget) for key, widget in self.widgets.items()})

    @property
    def changes(self) -> dict[str, Any]:
        """The dotted keys whose value differs from where the panel started."""
        before = self._start.flat()
        now = {key: _value(widget) for key, widget in self.widgets.items()}
        return {key: value for key, value in now.items() if value != before[key]}

    def _bind_classes(self) -> None:
        """Grey out the choice of classes while `query.hyde` does not ask for it."""
        mode, classes = self.widgets.get("query.hyde"), self.widgets.get("query.class_to_hyde")
        if mode is None or classes is None:
            return

        def follow(_: Any = None) -> None:
            for box in _boxes(classes):
                box.disabled = mode.value != "classified"

        mode.observe(follow, "value")
        follow()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        import ipywidgets

        return ipywidgets.VBox(list(self.widgets.values()))._repr_mimebundle_(**options)


def _field(key: str) -> FieldInfo:
    """Return the pydantic field of a dotted key."""
    model: Any = PipelineConfig
    *sections, name = key.split(".")
    for section in sections:
        model = model.model_fields[section].annotation
    info: FieldInfo = model.model_fields[name]
    return info


def _widget(key: str, info: FieldInfo, value: Any) -> Any:
    """Return the widget that fits the field's type, with the field's description as its tooltip."""
    import ipywidgets

    look: dict[str, Any] = {
        "description": key,
        "tooltip": info.description or key,
        "style": {"description_width": "11em"},
        "layout": {"width": "30em"},
    }
    if get_origin(info.annotation) is Literal:
        return ipywidgets.Dropdown(options=list(get_args(info.annotation)), value=value, **look)
    if isinstance(value, Mapping):
        return _checkboxes(key, info, value)
    if isinstance(value, bool):
        return ipywidgets.Checkbox(value=value, **look)
    if isinstance(value, int):
        return ipywidgets.BoundedIntText(value=value, **_bounds(info, int), **look)
    if isinstance(value, float):
        return ipywidgets.BoundedFloatText(value=value, **_bounds(info, float), **look)
    return ipywidgets.Text(value=str(value), continuous_update=False, **look)


def _checkboxes(key: str, info: FieldInfo, value: Mapping[str, bool]) -> Any:
    import ipywidgets

    tip = info.description or key
    boxes = [
        ipywidgets.Checkbox(value=on, description=name, tooltip=tip, indent=False, layout={"width": "auto"})
        for name, on in value.items()
    ]
    label = ipywidgets.Label(key, layout={"width": "11em", "justify_content": "flex-end"})
    return ipywidgets.HBox([label, *boxes])


def _bounds(info: FieldInfo, kind: type[int] | type[float]) -> dict[str, float]:
    """Return the field's limits; where it has none, those that the widget cannot do without."""
    found = {name: getattr(rule, name) for rule in info.metadata for name in ("ge", "le") if hasattr(rule, name)}
    return {"min": kind(found.get("ge", -1_000_000_000)), "max": kind(found.get("le", 1_000_000_000))}


def _boxes(group: Any) -> list[Any]:
    return [child for child in group.children if hasattr(child, "value") and hasattr(child, "indent")]


def _value(widget: Any) -> Any:
    """Return a widget's value; of a group of check boxes, by name."""
    if hasattr(widget, "children"):
        return {box.description: box.value for box in _boxes(widget)}
    return widget.value
