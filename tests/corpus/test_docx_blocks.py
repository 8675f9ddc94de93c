from __future__ import annotations

from pathlib import Path

from office_files import cell, paragraph, raw_table, table, write_docx

from rag_lab.corpus.docx import load_docx

RUN = "<w:r><w:t xml:space='preserve'>{}</w:t></w:r>"


def text_of(path: Path) -> str:
    return load_docx(path, path.name).documents[0].text


def test_lists_are_found_by_their_style_too(tmp_path: Path) -> None:
    out = "<w:p><w:pPr><w:pStyle w:val='ListBullet'/><w:numPr><w:numId w:val='0'/></w:numPr></w:pPr>{}</w:p>"
    path = write_docx(
        tmp_path / "a.docx",
        paragraph("oil", "ListBullet"),
        paragraph("belt", "Tight"),
        out.format(RUN.format("no item")),
    )
    assert text_of(path).split("\n\n") == ["- oil", "- belt", "no item"]


def test_rows_and_cells_in_content_controls_are_read(tmp_path: Path) -> None:
    control = "<w:sdt><w:sdtContent>{}</w:sdtContent></w:sdt>"
    path = write_docx(
        tmp_path / "a.docx",
        raw_table(cell(paragraph("Part")) + cell(paragraph("Nm"))).replace(
            "</w:tbl>", control.format(f"<w:tr>{cell(paragraph('M6'))}{cell(paragraph('9'))}</w:tr>")
        )
        + f"<w:customXml><w:tr>{cell(paragraph('M8'))}{control.format(cell(paragraph('22')))}</w:tr></w:customXml>"
        + "</w:tbl>",
    )
    assert text_of(path) == "| Part | Nm |\n| --- | --- |\n| M6 | 9 |\n| M8 | 22 |"


def test_a_text_box_is_read_once_after_its_paragraph(tmp_path: Path) -> None:
    box = f"<w:txbxContent>{paragraph('Box one')}{paragraph('Box two')}</w:txbxContent>"
    choice = f"<mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>"
    boxed = f"<w:p>{RUN.format('Before ')}<w:r>{choice}</w:r>{RUN.format('and after')}</w:p>"
    path = write_docx(tmp_path / "a.docx", boxed, raw_table(cell(boxed) + cell(paragraph("y"))))
    assert text_of(path).split("\n\n") == [
        "Before and after",
        "Box one",
        "Box two",
        "| Before and after Box one Box two | y |\n| --- | --- |",
    ]


def test_merged_cells_leave_the_others_under_their_headers(tmp_path: Path) -> None:
    path = write_docx(
        tmp_path / "a.docx",
        raw_table(
            cell(paragraph("Part")) + cell(paragraph("Torque"), "<w:gridSpan w:val='2'/>") + cell(paragraph("Note")),
            cell(paragraph("M6"), "<w:vMerge w:val='restart'/>")
            + "".join(cell(paragraph(t)) for t in ("9", "10", "dry")),
            cell("<w:p/>", "<w:vMerge/>") + "".join(cell(paragraph(t)) for t in ("7", "8", "oiled")),
            "<w:trPr><w:gridBefore w:val='3'/></w:trPr>" + cell(paragraph("late")),
        ),
    )
    assert text_of(path).split("\n") == [
        "| Part | Torque |  | Note |",
        "| --- | --- | --- | --- |",
        "| M6 | 9 | 10 | dry |",
        "|  | 7 | 8 | oiled |",
        "|  |  |  | late |",
    ]


def test_a_table_in_a_cell_is_a_part_of_its_line(tmp_path: Path) -> None:
    inner = cell(paragraph("a") + table(("in", "side"), ("two", "rows")))
    path = write_docx(
        tmp_path / "a.docx", raw_table(cell(paragraph("H")) + cell(paragraph("K")), inner + cell("<w:p/>"))
    )
    assert text_of(path).endswith("| a in, side; two, rows |  |")


def test_a_row_too_long_for_a_line_is_read_as_text(tmp_path: Path) -> None:
    words = ("word " * 5_000).strip()
    content = paragraph("Manual", "berschrift1") + paragraph(words)
    path = write_docx(tmp_path / "a.docx", raw_table(cell(paragraph("Menu")) + cell(content)))
    assert text_of(path).split("\n\n") == ["Menu", "# Manual", words]
