"""A configuration: what differs from where it came from; the whole stands folded."""

from __future__ import annotations

from rag_lab.config import PipelineConfig
from rag_lab.notebook.views.view import View
from rag_lab.report.page.templates import setting
from rag_lab.report.tables.table import Table


def to_html(config: PipelineConfig) -> str:
    """Return what differs, and the whole as YAML, folded."""
    return _view(config).to_html()


def to_text(config: PipelineConfig) -> str:
    """Return what differs, as a table."""
    return _view(config).to_text()


def came_from(config: PipelineConfig) -> str:
    """Return what the configuration was made from."""
    return config.origin.name or "the defaults"


def _view(config: PipelineConfig) -> View:
    origin, changes = came_from(config), config.changes()
    differs = f"differs in {len(changes)}" if changes else "nothing differs"
    rows = tuple((one.key, setting(one.value), setting(one.before)) for one in changes)
    table = Table("", ("key", "here", f"in {origin}"), rows, names=3)
    return View(
        title=f"PipelineConfig from {origin}: {differs}",
        tables=(table,) if rows else (),
        folded=(("The whole, as YAML", config.to_yaml()),),
    )
