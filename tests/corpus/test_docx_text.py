from __future__ import annotations

import re
from pathlib import Path

import pytest
from office_files import paragraph, table, write_docx

from rag_lab.corpus.docx import load_docx

RUN = "<w:r><w:t xml:space='preserve'>{}</w:t></w:r>"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def text_of(path: Path) -> str:
    return load_docx(path, path.name).documents[0].text


def test_notes_headers_and_footers_follow_the_text(tmp_path: Path) -> None:
    def referring(kind: str, number: int) -> str:
        return f"<w:p>{RUN.format('Close the valve')}<w:r><w:{kind}Reference w:id='{number}'/></w:r></w:p>"

    notes = "".join(f"<w:footnote w:id='{n}'>{paragraph(f'Note {n}')}</w:footnote>" for n in (0, 1, 2, 3))
    path = write_docx(
        tmp_path / "a.docx",
        referring("footnote", 3),
        referring("footnote", 1),
        table(("a", "b")).replace("</w:p>", "<w:r><w:endnoteReference w:id='2'/></w:r></w:p>", 1),
        parts={
            "word/footnotes.xml": f"<w:footnotes {W}>{notes}</w:footnotes>",
            "word/endnotes.xml": f"<w:endnotes {W}><w:endnote w:id='2'>{paragraph('Last')}</w:endnote></w:endnotes>",
            "word/header1.xml": f"<w:hdr {W}>{paragraph('Press P-11')}</w:hdr>",
            "word/header2.xml": f"<w:hdr {W}>{paragraph('Press P-11')}</w:hdr>",
            "word/footer1.xml": f"<w:ftr {W}>{paragraph('17')}{paragraph('Revision 3')}</w:ftr>",
        },
    )
    assert text_of(path).split("\n\n") == [
        "Close the valve[^1]",
        "Close the valve[^2]",
        "| a[^e1] | b |\n| --- | --- |",
        "[^1]: Note 3",
        "[^2]: Note 1",
        "[^e1]: Last",
        "Press P-11",
        "Revision 3",
    ]


@pytest.mark.parametrize(
    ("font", "char", "shown"),
    [
        *(("Symbol", "F0B0", "°"), ("Symbol", "F06D", "μ"), ("Symbol", "F032", "2"), ("Wingdings", "F0FC", "✓")),
        *(
            ("Arial", "20AC", "€"),
            ("Logos", "F041", "\ufffd"),
            ("Symbol", "junk", "\ufffd"),
            ("Arial", "D800", "\ufffd"),
        ),
    ],
)
def test_characters_of_symbol_fonts_are_read(tmp_path: Path, font: str, char: str, shown: str) -> None:
    sign = f"<w:r><w:sym w:font='{font}' w:char='{char}'/></w:r>"
    path = write_docx(tmp_path / "a.docx", f"<w:p>{RUN.format('5')}{sign}{RUN.format('C')}</w:p>")
    assert text_of(path) == f"5{shown}C"


@pytest.mark.parametrize(
    ("equation", "line"),
    [
        ("<m:sSup><m:e>x</m:e><m:sup>2</m:sup></m:sSup>y", "x^2y"),
        ("<m:f><m:num>a+b</m:num><m:den>12</m:den></m:f>", "(a+b)/12"),
        ("<m:rad><m:deg/><m:e>2gh</m:e></m:rad>", "√(2gh)"),
        ("<m:sSup><m:e><m:d><m:e>a+b</m:e></m:d></m:e><m:sup>n</m:sup></m:sSup>", "(a+b)^n"),
        (
            "<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub>i=1</m:sub><m:sup>n</m:sup><m:e>i</m:e></m:nary>",
            "∑_(i=1)^ni",
        ),
        ("<m:func><m:fName>sin</m:fName><m:e>x</m:e></m:func>", "sin x"),
    ],
)
def test_equations_are_a_line_of_text(tmp_path: Path, equation: str, line: str) -> None:
    typed = re.sub(r">([^<]+)<", r"><m:r><m:t>\1</m:t></m:r><", f"<m:oMath>{equation}</m:oMath>")
    path = write_docx(
        tmp_path / "a.docx", f"<w:p>{RUN.format('so ')}{typed}</w:p>", f"<m:oMathPara>{typed}</m:oMathPara>"
    )
    assert text_of(path).split("\n\n") == [f"so {line}", line]


def test_roots_within_roots_are_read_once_each(tmp_path: Path) -> None:
    roots = "<m:rad><m:e>" * 60 + "<m:r><m:t>x</m:t></m:r>" + "</m:e></m:rad>" * 60
    path = write_docx(tmp_path / "a.docx", f"<w:p><m:oMath>{roots}</m:oMath></w:p>")
    assert text_of(path).count("√") == 60
