"""A corpus of broken and hostile files, made afresh, with what must become of each.

`HOSTILE` maps a name to its maker and the words that the reason must hold; "" where the file is read like any other.
"""

import io
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pymupdf
import xlwt
from office_files import STYLES, paragraph, table

Maker = Callable[[Path], None]
_PART = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>{}</w:body></w:document>'
_EMPTY = re.compile(rb"<sheetData */>|<sheetData></sheetData>")
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def _bytes(data: bytes) -> Maker:
    return lambda path: None if path.write_bytes(data) else None


def _pdf(**options) -> bytes:
    pdf = pymupdf.open()
    for number in range(3):
        pdf.new_page().insert_text((72, 72), f"Page {number} of a manual")
    return pdf.tobytes(**options)


def _image_pdf() -> bytes:
    pdf = pymupdf.open()
    pixels = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 8, 8), False)
    pdf.new_page().insert_image(pymupdf.paper_rect("a4"), pixmap=pixels)
    return pdf.tobytes()


def _bomb_pdf(n_bytes: int = 60_000_000) -> bytes:
    """A page whose drawing commands are 60 MB, in 60 KB."""
    pdf = pymupdf.open()
    pdf.new_page().insert_text((72, 72), "A page that can be read")
    page = pdf.new_page()
    page.insert_text((72, 72), "bomb")
    (xref,) = page.get_contents()
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(b"q Q " * 250_000) for _ in range(n_bytes // 1_000_000)) + packer.flush()
    pdf.update_stream(xref, packed, compress=0)
    pdf.xref_set_key(xref, "Filter", "/FlateDecode")
    return pdf.tobytes()


def _looped_pdf() -> bytes:
    """A page tree that contains itself."""
    return (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Count 9999999/Kids[2 0 R 2 0 R]>>endobj\ntrailer<</Root 1 0 R>>\n"
    )


def _docx(*blocks: str, **parts: str) -> bytes:
    buffer = io.BytesIO()
    own = {"word/document.xml": _PART.format("".join(blocks)), "word/styles.xml": STYLES, **parts}
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in own.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def _bomb_docx(path: Path) -> None:
    """A document of 300 MB in 300 KB."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive,
        archive.open("word/document.xml", "w", force_zip64=True) as part,
    ):
        for _ in range(300):
            part.write(b" " * 1_000_000)


def _lying_docx() -> bytes:
    """A part whose declared size is smaller than what it unpacks to."""
    data = bytearray(_docx(paragraph("text " * 200_000)))
    size = len(_PART.format(paragraph("text " * 200_000)).encode())
    while (place := bytes(data).find(struct.pack("<L", size))) >= 0:
        data[place : place + 4] = struct.pack("<L", 1000)
    return bytes(data)


def _many_parts(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(30_000):
            archive.writestr(f"word/{number}.bin", b"")


def _laughs() -> bytes:
    entities = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    body = _PART.format("<w:p><w:r><w:t>&a9;</w:t></w:r></w:p>")
    return _docx(**{"word/document.xml": f"<!DOCTYPE d [{entities}]>{body}"})


def _deep_docx() -> bytes:
    return _docx("<w:sdt>" * 5000 + paragraph("deep") + "</w:sdt>" * 5000)


def _workbook(fill: Callable[[openpyxl.Workbook], None]) -> bytes:
    book = openpyxl.Workbook()
    fill(book)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _formulas(book: openpyxl.Workbook) -> None:
    book.active["A1"], book.active["B2"] = "=1+1", "=A1*2"


def _repacked(data: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            new.writestr(part, change(old.read(part)) if part == name else old.read(part))
    return buffer.getvalue()


def _far_cells() -> bytes:
    """A sheet that says it has 17,000,000,000 cells, and has rows with one at each end."""
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>1</v></c><c r="XFD{n}"><v>1</v></c></row>' for n in range(1, 10_001))
    data = _workbook(lambda book: None)
    change = lambda part: _EMPTY.sub(f"<sheetData>{rows}</sheetData>".encode(), part).replace(  # noqa: E731
        b'ref="A1:A1"', b'ref="A1:XFD1048576"'
    )
    return _repacked(data, "xl/worksheets/sheet1.xml", change)


def _last_row() -> bytes:
    data = _workbook(lambda book: None)
    row = b'<sheetData><row r="1048576"><c r="A1048576"><v>275</v></c></row></sheetData>'
    return _repacked(data, "xl/worksheets/sheet1.xml", lambda part: _EMPTY.sub(row, part))


def _far_xls() -> bytes:
    """Two sheets of 65,536 rows and 256 columns, of which two cells are filled."""
    book = xlwt.Workbook()
    for name in ("S", "T"):
        sheet = book.add_sheet(name)
        sheet.write(0, 0, "near")
        sheet.write(65_535, 255, "far")
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _relations_bomb(part: bytes) -> bytes:
    """A list of parts that unpacks to 15 MB; each entry becomes an object of several hundred bytes."""
    return part.replace(
        b"</Relationships>", b'<Relationship Id="r" Type="t" Target="a"/>' * 350_000 + b"</Relationships>"
    )


def _xls() -> bytes:
    book = xlwt.Workbook()
    book.add_sheet("S").write(0, 0, "value")
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _encrypted_zip() -> bytes:
    """The mark of encryption on every part."""
    data = bytearray(_docx(paragraph("text")))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = bytes(data).find(mark)
        while place >= 0:
            data[place + offset] |= 1
            place = bytes(data).find(mark, place + 4)
    return bytes(data)


def _long_line(path: Path) -> None:
    with path.open("wb") as file:
        for _ in range(50):
            file.write(b"word " * 200_000)


def _nested_forms(levels: int = 12, draws: int = 4) -> bytes:
    """A page that draws a form, which draws another one four times, and so on: 16 million times in 3 KB."""
    form = "<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</F {} 0 R>>/Font<</A 4 0 R>>>>/Length {}>>"
    texts = ["/F Do " * draws] * levels + ["BT /A 9 Tf (x) Tj ET"]
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Count 1/Kids[3 0 R]>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Resources<</XObject<</F 6 0 R>>>>/Contents 5 0 R>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        "<</Length 5>>stream\n/F Do\nendstream",
        *(f"{form.format(number, len(text))}stream\n{text}\nendstream" for number, text in enumerate(texts, start=7)),
    ]
    body = "".join(f"{number} 0 obj{text}endobj\n" for number, text in enumerate(objects, start=1))
    return f"%PDF-1.4\n{body}trailer<</Root 1 0 R>>\n".encode()


MIXED = "Maßnahme\n".encode() * 3 + "Schläuche prüfen\n".encode("cp1252")
_GOOD_DOCX = _docx(paragraph("Title", "berschrift1"), table(("a", "b"), ("c", "d")))
_GOOD_XLSX = _workbook(lambda book: book.active.append(["Part", "Nm"]))

HOSTILE: dict[str, tuple[Maker, str]] = {
    "empty.pdf": (_bytes(b""), "empty"),
    "truncated.pdf": (_bytes(_pdf()[:300]), "corrupt"),
    "password.pdf": (
        _bytes(_pdf(encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="a", owner_pw="b")),
        "encrypted",
    ),
    "scan.pdf": (_bytes(_image_pdf()), "only images"),
    "bomb.pdf": (_bytes(_bomb_pdf()), "page 2 holds content that cannot be read"),
    "loop.pdf": (_bytes(_looped_pdf()), "corrupt"),
    "picture.pdf": (_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200)), "not a PDF"),
    "noise.pdf": (_bytes(b"%PDF-1.7\n" + os.urandom(20_000)), "corrupt"),
    "empty.docx": (_bytes(b""), "empty"),
    "truncated.docx": (_bytes(_GOOD_DOCX[:400]), "damaged"),
    "bomb.docx": (_bomb_docx, "unpacks to"),
    "lying.docx": (_bytes(_lying_docx()), "damaged"),
    "parts.docx": (_many_parts, "unpacks to"),
    "laughs.docx": (_bytes(_laughs()), "damaged"),
    "deep.docx": (_bytes(_deep_docx()), "damaged"),
    "encrypted.docx": (_bytes(_encrypted_zip()), "encrypted"),
    "password.docx": (_bytes(_OLE + bytes(2000)), "encrypted or of the format before 2007"),
    "text.docx": (_bytes(b"plain words"), "no Word document"),
    "workbook.docx": (_bytes(_GOOD_XLSX), "no Word document"),
    "damaged_xml.docx": (_bytes(_docx("<w:p><w:r>")), "damaged"),
    "formulas.xlsx": (_bytes(_workbook(_formulas)), "formulas without values"),
    "blank.xlsx": (_bytes(_workbook(lambda book: None)), "no value"),
    "far_cells.xlsx": (_bytes(_far_cells()), "of memory"),
    "relations.xlsx": (_bytes(_repacked(_GOOD_XLSX, "xl/_rels/workbook.xml.rels", _relations_bomb)), "unpacks to"),
    "wide.csv": (_bytes(b"a\n" * 5_000 + b"b," * 4_000 + b"b\n"), "more than 3,333,333 cells"),
    "far.xls": (_bytes(_far_xls()), "of memory"),
    "last_row.xlsx": (_bytes(_last_row()), ""),
    "document.xlsx": (_bytes(_GOOD_DOCX), "damaged"),
    "truncated.xlsx": (_bytes(_GOOD_XLSX[: len(_GOOD_XLSX) // 2]), "damaged"),
    "page.xls": (_bytes(b"<html><table><tr><td>x</td></tr></table></html>"), "although its name ends so"),
    "truncated.xls": (_bytes(_xls()[:1500]), "damaged"),
    "noise.xls": (_bytes(_OLE + os.urandom(5000)), "damaged"),
    "long_row.csv": (_bytes(b"a,b\nc," + b"x" * 500_000 + b"\nd,e\n"), "more than 20,000 characters left out"),
    "quote.csv": (_bytes(b'a,b\n"never closed,' + b"x,y\n" * 20_000), "more than 20,000 characters"),
    "long_line.txt": (_long_line, "MiB of text"),
    "zeros.txt": (_bytes(bytes(100_000)), "binary"),
    "noise.txt": (_bytes(os.urandom(50_000)), "binary"),
    "mixed.txt": (_bytes(MIXED), "cp1252"),
    "blank.md": (_bytes(b"\xef\xbb\xbf \n\t\n"), "empty"),
    "hashes.md": (_bytes(b"#" * 100_000 + b"\n# a" + b" " * 100_000 + b"b\n"), ""),
    "spaces.txt": (_bytes(b"a" + b" " * 200_000 + b"b\n"), ""),
    "deep.html": (_bytes(b"<p>top</p>" + b"<div>" * 200_000), "too deeply"),
    "script.html": (_bytes(b"<script>" + b"x" * 100_000), "empty"),
    "file.exe": (_bytes(b"MZ"), "files ending in .exe are not read"),
    "取扱説明書.txt": (_bytes("機械を止めてください。\n".encode()), ""),
    "руководство.md": (_bytes("# Пресс\n\nОткройте клапан.\n".encode()), ""),
    "name with spaces #1?.txt": (_bytes(b"The oven cures at 180 degrees.\n"), ""),
}

HANGING: dict[str, Maker] = {
    "forms.pdf": _bytes(_nested_forms()),
    "attributes.html": _bytes(b"<p " + b" ".join(b"a%d" % number for number in range(150_000)) + b">The press.</p>"),
    "paragraphs.docx": _bytes(_docx("<w:p/>" * 270_000)),
}


def write_hostile(folder: Path) -> Path:
    """Write all of them, one good file, links that leave the folder, and return the folder."""
    folder.mkdir(parents=True)
    for name, (make, _) in HOSTILE.items():
        make(folder / name)
    (folder / "good.txt").write_text("The relief valve opens at 275 bar.\n")
    (folder.parent / "secret.txt").write_text("secret")
    (folder / "escape.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "device.txt").symlink_to("/dev/zero")
    (folder / "itself.txt").symlink_to(folder / "itself.txt")
    os.mkfifo(folder / "pipe.txt")
    return folder
