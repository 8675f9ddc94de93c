"""A section of the report is one entry, which page, notebook, Markdown and terminal all show."""

import pytest

from rag_lab.comparison.comparison import Comparison
from rag_lab.report import sections
from rag_lab.report.compare_text import compare_text
from rag_lab.report.page.report_page import overview_html, to_html
from rag_lab.report.table import Table


def test_an_entry_is_a_section_everywhere(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table("Moons by planet", ("planet", "moons"), (("Mars", "2"),))
    added = sections.Section(
        "moons", "How many moons", "Method", sentences=lambda c: ["Few."], tables=lambda c: {"moons": [table]}
    )
    monkeypatch.setattr(sections, "SECTIONS", (*sections.SECTIONS, added))
    page = to_html(comparison)
    assert '<h2 id="h-moons">How many moons</h2>' in page and "<td>Mars</td>" in page
    assert "<summary>How many moons</summary>" in overview_html(comparison)
    assert "## How many moons\n\n- Few.\n\n**Moons by planet**" in comparison.to_markdown()
    assert compare_text(comparison.run.path, only=["moons"]).startswith("Moons by planet")
    monkeypatch.setattr(sections, "SECTIONS", sections.SECTIONS[:-1])
    assert "moons" not in to_html(comparison)
