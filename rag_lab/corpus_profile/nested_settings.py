"""Dotted keys as a configuration file has them."""

from __future__ import annotations

from typing import Any


def nested(settings: dict[str, Any]) -> dict[str, Any]:
    """Return dotted keys as the sections of a configuration: `{"corpus": {"chunk_size": 400}}`."""
    sections: dict[str, Any] = {}
    for key, value in settings.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, {})[name] = value
    return sections
