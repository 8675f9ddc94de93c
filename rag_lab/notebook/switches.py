"""The widget that fits a field of the configuration: a list of choices, check boxes, a bounded number or text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo


def switch(key: str, info: FieldInfo, value: Any) -> Any:
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
    if named := [rule for rule in info.metadata if hasattr(rule, "names")]:  # a kind of module: others can be named
        return ipywidgets.Combobox(options=named[0].names(), value=value, continuous_update=False, **look)
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


def boxes(group: Any) -> list[Any]:
    """Return the check boxes of a group, without its label."""
    return [child for child in group.children if hasattr(child, "value") and hasattr(child, "indent")]


def value_of(widget: Any) -> Any:
    """Return a widget's value; of a group of check boxes, by name."""
    if hasattr(widget, "children"):
        return {box.description: box.value for box in boxes(widget)}
    return widget.value


def set_value(widget: Any, value: Any) -> None:
    """Give a widget, or each of a group of check boxes, the value that `value_of` returned."""
    if hasattr(widget, "children"):
        for box in boxes(widget):
            box.value = value[box.description]
    else:
        widget.value = value


def observe(widget: Any, call: Callable[[Any], None]) -> None:
    """Call `call` whenever the value of a widget changes."""
    for part in boxes(widget) if hasattr(widget, "children") else [widget]:
        part.observe(call, "value")


def said(value: Any) -> str:
    """Write a value for people; of a group of check boxes, the names that are checked."""
    if isinstance(value, Mapping):
        return ", ".join(name for name, on in value.items() if on) or "none"
    return str(value)
