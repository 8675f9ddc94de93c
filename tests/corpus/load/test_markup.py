from pathlib import Path
from typing import Any

import pytest
from office_files import cell, paragraph, raw_table, relationships, table, write_docx

from rag_lab.corpus.load.loader import Loaded, LoadError
from rag_lab.corpus.load.markup import load_docx, load_html
from rag_lab.corpus.spans import headings

PAGE = """<!DOCTYPE html><html><head><title> Press
manual </title><style>p {color: red}</style></head><body>
<nav><a href="/">Home</a></nav>
<h1>Press <em>P-11</em></h1><p>The hy<b>drau</b>lic oil<br>is changed.</p>
<script>alert("no")</script>
<ul><li>one</li><li>two &amp; three</li></ul>
<table><caption>Torques</caption><thead><tr><th>Bolt</th><th>Nm</th></tr></thead>
<tr><td>M6</td><td>9<p>or 10</p></td></tr><tr><td>M8</td><td><table><tr><td>a</td><td>b</td></tr></table></td></tr>
</table>
<pre>keep
  this</pre><!-- not this -->after</body></html>"""


def load(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "a.html"
    path.write_bytes(data)
    return load_html(path, "a.html").documents[0].text


def test_a_page_becomes_markdown(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(PAGE)
    (document,) = load_html(tmp_path / "a.html", "a.html").documents
    assert document.title == "Press manual"
    assert document.text.split("\n\n") == [
        "# Press P-11",
        "The hydraulic oil is changed.",
        "- one",
        "- two & three",
        "Torques",
        "| Bolt | Nm |\n| --- | --- |\n| M6 | 9 or 10 |\n| M8 | a, b |",
        "```\nkeep\n  this\n```",
        "after",
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "shift_jis", "utf-16"])
def test_the_declared_encoding_is_used(tmp_path: Path, encoding: str) -> None:
    text = "取扱説明書" if encoding == "shift_jis" else "Schläuche für Öl"
    page = f'<html><head><meta charset="{encoding}"></head><body><p>{text}</p></body></html>'
    assert load(tmp_path, page.encode(encoding)) == text


def test_an_encoding_declared_wrongly_is_found_out(tmp_path: Path) -> None:
    page = '<meta http-equiv="Content-Type" content="text/html; charset=utf-8"><p>Schläuche</p>'
    assert load(tmp_path, page.encode("cp1252")) == "Schläuche"


@pytest.mark.parametrize("declared", ["iso-8859-1", "us-ascii", "latin1"])
def test_latin_1_means_windows_1252_as_in_browsers(tmp_path: Path, declared: str) -> None:
    page = f'<meta charset="{declared}"><p>5 € for 10–20 “units”</p>'
    assert load(tmp_path, page.encode("cp1252")) == "5 € for 10–20 “units”"


def test_gb2312_means_its_larger_successor(tmp_path: Path) -> None:
    assert load(tmp_path, '<meta charset="gb2312"><p>朱镕基</p>'.encode("gb18030")) == "朱镕基"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("declared", ["iso-8859-1", "shift_jis", "utf-16"])
def test_what_is_utf_8_is_read_so_whatever_is_declared(tmp_path: Path, mark: str, declared: str) -> None:
    page = f'{mark}<html><head><meta charset="{declared}"></head><body><p>Größe über Maß</p></body></html>'
    assert load(tmp_path, page.encode()) == "Größe über Maß"


@pytest.mark.parametrize("declared", ["utf-16", "utf-16le", "utf-32", "rot13", "punycode", "no-such"])
def test_an_encoding_that_no_ascii_file_has_is_not_believed(tmp_path: Path, declared: str) -> None:
    assert load(tmp_path, f'<meta charset="{declared}"><p>Change the oil!</p>'.encode()) == "Change the oil!"


@pytest.mark.parametrize(
    ("label", "codec"), [("x-sjis", "cp932"), ("ISO_8859-2:1987", "iso-8859-2"), ("dos-874", "cp874")]
)
def test_a_name_that_only_the_standard_of_the_web_knows_is_understood(tmp_path: Path, label: str, codec: str) -> None:
    text = {"cp932": "①機械を止める", "iso-8859-2": "Zażółć", "cp874": "เครื่องจักร"}[codec]
    (tmp_path / "a.html").write_bytes(f'<meta charset="{label}"><p>{text}</p>'.encode(codec))
    loaded = load_html(tmp_path / "a.html", "a.html")
    assert (loaded.documents[0].text, loaded.warnings) == (text, ())


def test_the_declaration_of_xml_counts_and_one_in_a_comment_does_not(tmp_path: Path) -> None:
    page = '<?xml version="1.0" encoding="iso-8859-2"?><!-- <meta charset="cp1251"> --><p>Zażółć</p>'
    assert load(tmp_path, page.encode("iso-8859-2")) == "Zażółć"


def test_a_mark_of_utf_16_needs_no_guess(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes("<p>Öl</p>".encode("utf-16"))
    loaded = load_html(tmp_path / "a.html", "a.html")
    assert (loaded.documents[0].text, loaded.warnings) == ("Öl", ())


def test_a_frame_of_one_column_is_no_table(tmp_path: Path) -> None:
    page = b"<table><tr><td><h2>All of it</h2></td></tr><tr><td>and more</td></tr></table>"
    assert load(tmp_path, page) == "## All of it\n\nand more"


def test_merged_cells_leave_the_others_under_their_headers(tmp_path: Path) -> None:
    page = (
        b"<table><tr><th>Part<th colspan=2>Torque<th>Note<tr><td rowspan=2>M6<td>9<td>10<td>dry"
        b"<tr><td>7<td>8<td>oiled<tr><td>M8<td colspan=junk>22<td>23<td>dry</table>"
    )
    assert load(tmp_path, page).split("\n") == [
        "| Part | Torque |  | Note |",
        "| --- | --- | --- | --- |",
        "| M6 | 9 | 10 | dry |",
        "|  | 7 | 8 | oiled |",
        "| M8 | 22 | 23 | dry |",
    ]


def test_cells_that_claim_to_take_everything_cost_no_more_than_the_budget(tmp_path: Path) -> None:
    title = b"<tr><td colspan=99999>Torques"
    assert load(tmp_path, b"<table>" + title * 1_000 + b"<tr><td>M6<td>9</table>").endswith("| M6 | 9 |")
    with pytest.raises(LoadError, match="more than 3,333,333 cells"):
        load(tmp_path, b"<table>" + b"<tr><td colspan=99999 rowspan=99999>a<td>b" * 1_000 + b"</table>")


def test_a_page_laid_out_as_a_table_is_read_as_text(tmp_path: Path) -> None:
    words = "word " * 5_000
    table = "<table><tr><td>M6<td>9</table>"
    page = f"<table><tr><td>Home<td>Help<tr><td>Menu<td><h1>Manual</h1><p>{words}</p>{table}<tr><td>c<td>d</table>"
    assert load(tmp_path, page.encode()).split("\n\n") == [
        "| Home | Help |\n| --- | --- |",
        "Menu",
        "# Manual",
        words.strip(),
        "| M6 | 9 |\n| --- | --- |",
        "| c | d |\n| --- | --- |",
    ]


def test_comments_in_code_are_no_headings(tmp_path: Path) -> None:
    text = load(tmp_path, b"<h1>Install</h1><pre># become root\nsudo su</pre><pre>```\n# no</pre>")
    assert text == "# Install\n\n```\n# become root\nsudo su\n```\n\n~~~\n```\n# no\n~~~"
    assert [heading.title for heading in headings(text)] == ["Install"]


def test_a_page_that_begins_with_code_is_named_by_its_first_line(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(b"<pre>make all</pre>")
    assert load_html(tmp_path / "a.html", "a.html").documents[0].title == "make all"


def test_deep_nesting_is_read_as_far_as_it_can_be_and_said(tmp_path: Path) -> None:
    assert "deep" in load(tmp_path, b"<div>" * 200 + b"deep" + b"</div>" * 200)
    (tmp_path / "a.html").write_bytes(b"<p>top</p>" + b"<div>" * 50_000 + b"deep")
    loaded = load_html(tmp_path / "a.html", "a.html")
    assert loaded.documents[0].text == "top"
    assert "nests elements too deeply" in loaded.warnings[0]
    with pytest.raises(LoadError, match="nests elements too deeply"):
        load(tmp_path, b"<pre>" * 1_000 + b"deep")


@pytest.mark.parametrize("data", [b"<html><body></body></html>", b"<script>x</script>", b"<!-- x -->"])
def test_a_page_without_text_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(LoadError, match="empty|damaged"):
        load(tmp_path, data)


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'

RUN = "<w:r><w:t xml:space='preserve'>{}</w:t></w:r>"


def read(folder: Path, *contents: str, **options: Any) -> Loaded:
    return load_docx(write_docx(folder / "a.docx", *contents, **options), "a.docx")


def test_headings_lists_and_tables_become_markdown(tmp_path: Path) -> None:
    loaded = read(
        tmp_path,
        paragraph("Press P-11", "berschrift1"),
        paragraph("Check daily:"),
        paragraph("the oil", listed=True),
        paragraph("Own style", "Mine"),
        paragraph("By outline", "Second"),
        table(("Bolt", "Torque"), ("M6", "9 Nm"), ("", "")),
        paragraph("In a loop of styles", "A"),
    )
    (document,) = loaded.documents
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
    assert read(tmp_path, paragraph("x"), title="Manual").documents[0].title == "Manual"


def test_content_controls_and_insertions_are_read_and_deletions_are_not(tmp_path: Path) -> None:
    loaded = read(
        tmp_path,
        f"<w:sdt><w:sdtContent>{paragraph('In a control')}</w:sdtContent></w:sdt>",
        f"<w:p>{RUN.format('kept ')}<w:ins>{RUN.format('new')}</w:ins>"
        f"<w:del><w:r><w:delText>gone</w:delText></w:r>{RUN.format('gone too')}</w:del></w:p>",
        f"<w:p><mc:AlternateContent><mc:Choice>{RUN.format('once')}</mc:Choice>"
        f"<mc:Fallback>{RUN.format('once')}</mc:Fallback></mc:AlternateContent></w:p>",
        "<w:p><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t><w:br/><w:t>three</w:t></w:r></w:p>",
    )
    text = loaded.documents[0].text
    assert text.split("\n\n") == ["In a control", "kept new", "once", "one two three"]


def test_entities_are_not_expanded(tmp_path: Path) -> None:
    laughs = '<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = f"{laughs}<w:document {space}><w:body><w:p><w:r><w:t>x&b;</w:t></w:r></w:p></w:body></w:document>"
    with pytest.raises(LoadError, match="damaged"):
        read(tmp_path, parts={"word/document.xml": body})


def test_the_main_part_is_found_by_its_relation(tmp_path: Path) -> None:
    body = f"<w:document {W}><w:body>{paragraph('Press', 'Big')}</w:body></w:document>"
    style = "<w:style w:type='paragraph' w:styleId='Big'><w:name w:val='heading 2'/></w:style>"
    loaded = read(
        tmp_path,
        parts={
            "_rels/.rels": relationships({"/word/document2.xml": "officeDocument"}),
            "word/document2.xml": body,
            "word/_rels/document2.xml.rels": relationships({"styles2.xml": "styles"}),
            "word/styles2.xml": f"<w:styles {W}>{style}</w:styles>",
        },
    )
    assert loaded.documents[0].text == "## Press"


def test_the_strict_form_of_the_format_is_read(tmp_path: Path) -> None:
    space = 'xmlns:w="http://purl.oclc.org/ooxml/wordprocessingml/main"'
    body = f"<w:document {space}><w:body>{paragraph('Strict', 'berschrift1')}</w:body></w:document>"
    assert read(tmp_path, parts={"word/document.xml": body}).documents[0].text == "# Strict"


def test_a_file_without_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no text"):
        read(tmp_path, paragraph(" "))


def test_lists_are_found_by_their_style_too(tmp_path: Path) -> None:
    assert read(tmp_path, paragraph("oil", "ListBullet"), paragraph("no item")).documents[0].text.split("\n\n") == [
        "- oil",
        "no item",
    ]


def test_a_text_box_is_read_once_after_its_paragraph(tmp_path: Path) -> None:
    box = f"<w:txbxContent>{paragraph('Box one')}{paragraph('Box two')}</w:txbxContent>"
    boxed = f"<w:p>{RUN.format('Before ')}<w:r><w:pict>{box}</w:pict></w:r>{RUN.format('and after')}</w:p>"
    assert read(tmp_path, boxed, raw_table(cell(boxed) + cell(paragraph("y")))).documents[0].text.split("\n\n") == [
        "Before and after",
        "Box one",
        "Box two",
        "| Before and after Box one Box two | y |\n| --- | --- |",
    ]


def test_merged_cells_of_word_leave_the_others_under_their_headers(tmp_path: Path) -> None:
    loaded = read(
        tmp_path,
        raw_table(
            cell(paragraph("Part")) + cell(paragraph("Torque"), "<w:gridSpan w:val='2'/>") + cell(paragraph("Note")),
            cell(paragraph("M6"), "<w:vMerge w:val='restart'/>")
            + "".join(cell(paragraph(t)) for t in ("9", "10", "dry")),
            cell("<w:p/>", "<w:vMerge/>") + "".join(cell(paragraph(t)) for t in ("7", "8", "oiled")),
        ),
    )
    assert loaded.documents[0].text.split("\n") == [
        "| Part | Torque |  | Note |",
        "| --- | --- | --- | --- |",
        "| M6 | 9 | 10 | dry |",
        "|  | 7 | 8 | oiled |",
    ]


def test_a_table_in_a_cell_is_a_part_of_its_line(tmp_path: Path) -> None:
    inner = cell(paragraph("a") + table(("in", "side"), ("two", "rows")))
    loaded = read(tmp_path, raw_table(cell(paragraph("H")) + cell(paragraph("K")), inner + cell("<w:p/>")))
    assert loaded.documents[0].text.endswith("| a in, side; two, rows |  |")


def test_a_row_too_long_for_a_line_is_read_as_text(tmp_path: Path) -> None:
    words = ("word " * 5_000).strip()
    content = paragraph("Manual", "berschrift1") + paragraph(words)
    assert read(tmp_path, raw_table(cell(paragraph("Menu")) + cell(content))).documents[0].text.split("\n\n") == [
        "Menu",
        "# Manual",
        words,
    ]


def test_foot_and_endnotes_follow_the_text(tmp_path: Path) -> None:
    def referring(kind: str, number: int) -> str:
        return f"<w:p>{RUN.format('Close the valve')}<w:r><w:{kind}Reference w:id='{number}'/></w:r></w:p>"

    notes = "".join(f"<w:footnote w:id='{n}'>{paragraph(f'Note {n}')}</w:footnote>" for n in (0, 1, 2, 3))
    loaded = read(
        tmp_path,
        referring("footnote", 3),
        table(("a", "b")).replace("</w:p>", "<w:r><w:endnoteReference w:id='2'/></w:r></w:p>", 1),
        parts={
            "word/footnotes.xml": f"<w:footnotes {W}>{notes}</w:footnotes>",
            "word/endnotes.xml": f"<w:endnotes {W}><w:endnote w:id='2'>{paragraph('Last')}</w:endnote></w:endnotes>",
        },
    )
    assert loaded.documents[0].text.split("\n\n") == [
        "Close the valve[^1]",
        "| a[^2] | b |\n| --- | --- |",
        "[^1]: Note 3",
        "[^2]: Last",
    ]


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    loaded = read(
        tmp_path,
        f"<w:p>{RUN.format('so ')}<m:oMath><m:r><m:t>a+b</m:t></m:r></m:oMath>"
        "<w:r><w:sym w:font='Logos' w:char='F041'/></w:r></w:p>",
        paragraph("Plain", "Nowhere"),
        parts={
            "word/header1.xml": f"<w:hdr {W}>{paragraph('Press P-11')}</w:hdr>",
            "word/footer1.xml": f"<w:ftr {W}><w:p/></w:ftr>",
        },
    )
    assert loaded.documents[0].text == "so\n\nPlain"
    first, second = loaded.warnings
    assert first == "equations, headers left out; write what matters of them as text."
    assert "char F041 in font Logos" in second


def test_fields_and_hyphens_keep_their_text_and_pictures_leave_none(tmp_path: Path) -> None:
    space = "xmlns:a='http://schemas.openxmlformats.org/drawingml/2006/main'"
    loaded = read(
        tmp_path,
        f"<w:p>{RUN.format('Figure ')}<w:fldSimple w:instr='SEQ Figure'>{RUN.format('7')}</w:fldSimple>"
        f"<w:r><w:t>: P</w:t><w:noBreakHyphen/><w:t>11</w:t></w:r></w:p>",
        f"<w:p><w:r><w:pict><v:imagedata xmlns:v='urn:schemas-microsoft-com:vml' {space} r:id='rId1' "
        "xmlns:r='http://schemas.openxmlformats.org/officeDocument/2006/relationships'/></w:pict></w:r></w:p>",
    )
    assert (loaded.documents[0].text, loaded.warnings) == ("Figure 7: P-11", ())


def test_a_part_that_is_not_there_is_damage_and_not_a_file_without_permission(tmp_path: Path) -> None:
    body = f"<w:document {W}><w:body>{paragraph('Press')}</w:body></w:document>"
    other = {"word/other.xml": body, "_rels/.rels": relationships({}), "word/document.xml": ""}
    with pytest.raises(LoadError, match="damaged"):
        read(tmp_path, parts=other)


def test_a_link_keeps_its_text_without_its_target(tmp_path: Path) -> None:
    space = "xmlns:r='http://schemas.openxmlformats.org/officeDocument/2006/relationships'"
    link = f"<w:p><w:hyperlink {space} r:id='rId99'>{RUN.format('link')}</w:hyperlink></w:p>"
    assert read(tmp_path, paragraph("before"), link, paragraph("after")).documents[0].text == "before\n\nlink\n\nafter"


def test_a_file_that_refers_to_what_is_not_there_is_damaged(tmp_path: Path) -> None:
    reference = "<w:p><w:r><w:footnoteReference w:id='9'/></w:r></w:p>"
    with pytest.raises(LoadError, match="the Word document is damaged"):
        read(tmp_path, paragraph("before"), reference, paragraph("after"))


def test_a_style_without_a_type_is_one_of_paragraphs(tmp_path: Path) -> None:
    style = "<w:style w:styleId='Big'><w:name w:val='heading 2'/></w:style>"
    parts = {"word/styles.xml": f"<w:styles {W}>{style}</w:styles>"}
    loaded = read(tmp_path, paragraph("Press", "Big"), parts=parts)
    assert (loaded.documents[0].text, loaded.warnings) == ("## Press", ())


def test_a_row_that_begins_in_a_later_column_stays_there(tmp_path: Path) -> None:
    late = "<w:trPr><w:gridBefore w:val='2'/></w:trPr>" + cell(paragraph("dry"))
    loaded = read(tmp_path, table(("Part", "Torque", "Note")).replace("</w:tbl>", f"<w:tr>{late}</w:tr></w:tbl>"))
    assert loaded.documents[0].text.endswith("|  |  | dry |")
