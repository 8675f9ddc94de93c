from pathlib import Path

import pytest

from rag_lab.corpus.load.loader import LoadError
from rag_lab.corpus.load.markup import load_html
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
