"""Office files and turned PDF pages made for tests: small, of the parts that a loader reads."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

import pymupdf

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
_M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
STYLES = f"""<w:styles {_W}>
<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Mine"><w:name w:val="My heading"/><w:basedOn w:val="berschrift1"/></w:style>
<w:style w:type="paragraph" w:styleId="Second"><w:name w:val="Second"/>
<w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="ListBullet"><w:name w:val="List Bullet"/>
<w:pPr><w:numPr><w:numId w:val="3"/></w:numPr></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="A"><w:name w:val="a"/><w:basedOn w:val="B"/></w:style>
<w:style w:type="paragraph" w:styleId="B"><w:name w:val="b"/><w:basedOn w:val="A"/></w:style>
</w:styles>"""
NUMBERING = f"""<w:numbering {_W}><w:abstractNum w:abstractNumId="7">
<w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:pStyle w:val="ListBullet"/></w:lvl>
<w:lvl w:ilvl="1"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>
<w:num w:numId="3"><w:abstractNumId w:val="7"/></w:num></w:numbering>"""
CORE = """<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{}</dc:title></cp:coreProperties>"""


def paragraph(text: str, style: str = "", listed: bool = False) -> str:
    """A Word paragraph."""
    style = f'<w:pStyle w:val="{style}"/>' if style else ""
    numbering = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="3"/></w:numPr>' if listed else ""
    return f"<w:p><w:pPr>{style}{numbering}</w:pPr><w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def table(*rows: tuple[str, ...]) -> str:
    """A Word table."""
    cells = ["".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows]
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def raw_table(*rows: str) -> str:
    """A Word table of rows of cells, both as they are in the file."""
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"


def cell(content: str, properties: str = "") -> str:
    """A cell of a Word table."""
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{content}</w:tc>"


def write_docx(path: Path, *blocks: str, title: str = "", parts: Mapping[str, str] | None = None) -> Path:
    """A Word file of these blocks; `parts` are added, or replace what would be there."""
    body = f"<w:document {_W} {_MC} {_M}><w:body>{''.join(blocks)}</w:body></w:document>"
    own = {
        "word/document.xml": body,
        "word/styles.xml": STYLES,
        "word/numbering.xml": NUMBERING,
        "docProps/core.xml": CORE.format(escape(title)),
    }
    named = {**own, **(parts or {})}
    own["_rels/.rels"] = relationships({"word/document.xml": "officeDocument", "docProps/core.xml": "core-properties"})
    kinds = {name.removeprefix("word/"): Path(name).stem.rstrip("0123456789") for name in named if "word/" in name}
    own["word/_rels/document.xml.rels"] = relationships(kinds)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {**own, **(parts or {})}.items():
            archive.writestr(name, text)
    return path


def relationships(kinds: Mapping[str, str]) -> str:
    """The part that names others, each as something."""
    usual = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    named = [
        f'<Relationship Id="rId{number}" Type="{usual}/{kind}" Target="{target}"/>'
        for number, (target, kind) in enumerate(kinds.items(), start=1)
    ]
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{space}">{"".join(named)}</Relationships>'


def turned(pdf: pymupdf.Document, degrees: int) -> pymupdf.Document:
    """Return the pages drawn against `degrees`, with `/Rotate`, so that they look as before."""
    result = pymupdf.open()
    for number, page in enumerate(pdf):
        width, height = page.rect.br if degrees == 180 else (page.rect.height, page.rect.width)
        new = result.new_page(width=width, height=height)
        new.show_pdf_page(new.rect, pdf, number, rotate=degrees)
        new.set_rotation(degrees)
    return result
