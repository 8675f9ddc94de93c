"""File readers by name, and which of them reads which suffix where no configuration says otherwise."""

from __future__ import annotations

from rag_lab._kit.registry import BuiltIn, Kind

_ROOM = "rag_lab.corpus.load"

FILE_READERS = Kind(
    "file reader",
    "rag_lab.file_readers",
    {
        "text": BuiltIn(f"{_ROOM}.text:load_text", "text as it is"),
        "markdown": BuiltIn(f"{_ROOM}.text:load_markdown", "Markdown as it is"),
        "html": BuiltIn(f"{_ROOM}.html:load_html", "HTML as Markdown"),
        "docx": BuiltIn(f"{_ROOM}.docx:load_docx", "Word files as Markdown"),
        "spreadsheet": BuiltIn(f"{_ROOM}.spreadsheet:load_spreadsheet", "sheets as tables"),
        "delimited": BuiltIn(f"{_ROOM}.delimited:load_delimited", "values between separators as a table"),
        "pdf_text": BuiltIn(f"{_ROOM}.pdf.text:load_pdf", "PDF pages as text", "pymupdf", "pymupdf"),
        "pdf_tables": BuiltIn(
            f"{_ROOM}.pdf.tables:load_pdf_tables", "PDF pages with ruled tables", "pymupdf", "pymupdf"
        ),
        "pdfium": BuiltIn(f"{_ROOM}.pdf.pdfium:load_pdfium", "PDF pages as text", "pypdfium2", "pypdfium2"),
    },
    call="__call__(self, path)",
)

BY_SUFFIX = {
    ".txt": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".docx": "docx",
    ".xlsx": "spreadsheet",
    ".xlsm": "spreadsheet",
    ".xls": "spreadsheet",
    ".ods": "spreadsheet",
    ".csv": "delimited",
    ".tsv": "delimited",
    ".html": "html",
    ".htm": "html",
}
