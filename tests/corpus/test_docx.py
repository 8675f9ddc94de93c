from __future__ import annotations

from pathlib import Path

import pytest
from office_files import paragraph, relationships, table, write_docx

from rag_lab.corpus.base import LoadError
from rag_lab.corpus.docx import load_docx

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def test_headings_lists_and_tables_become_markdown(tmp_path: Path) -> None:
    path = write_docx(
        tmp_path / "a.docx",
        paragraph("Press P-11", "berschrift1"),
        paragraph("Check daily:"),
        paragraph("the oil", listed=True),
        paragraph("Own style", "Mine"),
        paragraph("By outline", "Second"),
        table(("Bolt", "Torque"), ("M6", "9 Nm"), ("", "")),
        paragraph("In a loop of styles", "A"),
    )
    (document,) = load_docx(path, "a.docx").documents
    assert document.text.split("\n\n") == [
        "# Press P-11",
        "Check daily:",
        "- the oil",
        "# Own style",
        "## By outline",
        "| Bolt | Torque |\n| --- | --- |\n| M6 | 9 Nm |",
        "In a loop of styles",
    ]
    assert (document.title, document.page) == ("Press P-11", None)


def test_the_files_own_title_wins(tmp_path: Path) -> None:
    path = write_docx(tmp_path / "a.docx", paragraph("x"), title="Manual")
    assert load_docx(path, "a.docx").documents[0].title == "Manual"


def test_content_controls_and_insertions_are_read_and_deletions_are_not(tmp_path: Path) -> None:
    run = "<w:r><w:t xml:space='preserve'>{}</w:t></w:r>"
    path = write_docx(
        tmp_path / "a.docx",
        f"<w:sdt><w:sdtContent>{paragraph('In a control')}</w:sdtContent></w:sdt>",
        f"<w:p>{run.format('kept ')}<w:ins>{run.format('new')}</w:ins>"
        f"<w:del><w:r><w:delText>gone</w:delText></w:r>{run.format('gone too')}</w:del></w:p>",
        f"<w:p><mc:AlternateContent><mc:Choice>{run.format('once')}</mc:Choice>"
        f"<mc:Fallback>{run.format('once')}</mc:Fallback></mc:AlternateContent></w:p>",
        "<w:p><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t><w:br/><w:t>three</w:t></w:r></w:p>",
    )
    text = load_docx(path, "a.docx").documents[0].text
    assert text.split("\n\n") == ["In a control", "kept new", "once", "one two\nthree"]


def test_entities_are_not_expanded(tmp_path: Path) -> None:
    laughs = '<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = f"{laughs}<w:document {space}><w:body><w:p><w:r><w:t>x&b;</w:t></w:r></w:p></w:body></w:document>"
    path = write_docx(tmp_path / "a.docx", parts={"word/document.xml": body})
    assert "haha" not in load_docx(path, "a.docx").documents[0].text


def test_the_main_part_is_found_by_its_relation(tmp_path: Path) -> None:
    body = f"<w:document {W}><w:body>{paragraph('Press', 'Big')}</w:body></w:document>"
    style = "<w:style w:styleId='Big'><w:name w:val='heading 2'/></w:style>"
    path = write_docx(
        tmp_path / "a.docx",
        parts={
            "_rels/.rels": relationships({"/word/document2.xml": "officeDocument"}),
            "word/document2.xml": body,
            "word/_rels/document2.xml.rels": relationships({"styles2.xml": "styles"}),
            "word/styles2.xml": f"<w:styles {W}>{style}</w:styles>",
        },
    )
    assert load_docx(path, "a.docx").documents[0].text == "## Press"


def test_the_strict_form_of_the_format_is_read(tmp_path: Path) -> None:
    space = 'xmlns:w="http://purl.oclc.org/ooxml/wordprocessingml/main"'
    body = f"<w:document {space}><w:body>{paragraph('Strict', 'berschrift1')}</w:body></w:document>"
    path = write_docx(tmp_path / "a.docx", parts={"word/document.xml": body})
    assert load_docx(path, "a.docx").documents[0].text == "# Strict"


def test_a_file_without_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no text"):
        load_docx(write_docx(tmp_path / "a.docx", paragraph(" ")), "a.docx")
