"""Office files made for tests: small, of the parts that a loader reads."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
STYLES = f"""<w:styles {_W}>
<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
<w:style w:styleId="Mine"><w:name w:val="My heading"/><w:basedOn w:val="berschrift1"/></w:style>
<w:style w:styleId="Second"><w:name w:val="Second"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
<w:style w:styleId="A"><w:name w:val="a"/><w:basedOn w:val="B"/></w:style>
<w:style w:styleId="B"><w:name w:val="b"/><w:basedOn w:val="A"/></w:style>
</w:styles>"""
CORE = """<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{}</dc:title></cp:coreProperties>"""


def paragraph(text: str, style: str = "", listed: bool = False) -> str:
    """A Word paragraph."""
    style = f'<w:pStyle w:val="{style}"/>' if style else ""
    numbering = "<w:numPr/>" if listed else ""
    return f"<w:p><w:pPr>{style}{numbering}</w:pPr><w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def table(*rows: tuple[str, ...]) -> str:
    """A Word table."""
    cells = ["".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows]
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def write_docx(path: Path, *blocks: str, title: str = "", parts: Mapping[str, str] | None = None) -> Path:
    """A Word file of these blocks."""
    body = f"<w:document {_W} {_MC}><w:body>{''.join(blocks)}</w:body></w:document>"
    own = {"word/document.xml": body, "word/styles.xml": STYLES, "docProps/core.xml": CORE.format(escape(title))}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {**own, **(parts or {})}.items():
            archive.writestr(name, text)
    return path
