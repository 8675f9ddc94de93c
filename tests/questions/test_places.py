"""Where questions are asked: whole sentences and rows, without headers, evenly spread, each text once."""

from collections import Counter

from scripted_writer import write_folder

from rag_lab.corpus.folder import load_folder
from rag_lab.questions.writer import find_places, pairs, spread
from rag_lab.records import Document

TEXT = "The {} of hall {} is checked every {} days by the foreman, who signs the card that hangs on its left side wall."


def page(number, text, source="a.pdf", **keys):
    return Document(source, number, text, **keys)


def many(source, n):
    return [
        page(n, TEXT.format(f"{source[0]}{chr(96 + n % 26)}{'x' * n} pump", n, 3 * n), source) for n in range(1, n + 1)
    ]


def test_a_place_stands_in_its_document_where_it_says_and_has_its_kind_and_section(tmp_path):
    documents = {one.source: one for one in load_folder(write_folder(tmp_path / "set") / "corpus").documents}
    found = find_places(list(documents.values()), "english")
    assert all(documents[one.chunk.source].text[one.chunk.start : one.chunk.end] == one.chunk.text for one in found)
    assert {(one.chunk.source, one.chunk.section, one.span) for one in found} == {
        ("press.md", "Press", "prose"), ("press.md", "Press > Grease", "prose"),
        ("parts.md", "Parts", "table"), ("oven.md", "Oven", "prose"), ("pay.md", "Pay", "prose"),
    }  # fmt: skip
    assert {one.language for one in found} == {"english"}
    assert next(one for one in found if one.chunk.source == "pay.md").chunk.permissions == ("hr",)


def test_what_stands_on_every_page_is_asked_about_nowhere():
    bodies = [TEXT.format(name, 2, 7) for name in ("fan", "pump", "saw", "lamp")]
    texts = [f"Works instruction, page {n} of 4\n{body}\nConfidential" for n, body in enumerate(bodies, start=1)]
    found = find_places([page(n, text) for n, text in enumerate(texts, start=1)])
    assert [one.chunk.text for one in found] == bodies
    assert [text[one.chunk.start : one.chunk.end] for text, one in zip(texts, found, strict=True)] == [
        one.chunk.text for one in found
    ]


def test_a_text_that_stands_twice_or_is_no_text_is_no_place():
    twice = TEXT.format("saw", 1, 2)
    assert find_places([page(1, twice), page(2, "Short."), page(1, twice, "b.pdf")]) == []
    assert find_places([page(1, ". . . - - - * * * " * 20)]) == []
    assert len(find_places([page(1, twice)])) == 1


def test_rows_of_a_sheet_are_sheet_rows():
    rows = "| Part | Price |\n|---|---|\n" + "\n".join(f"| seal {n} for press | {n} EUR |" for n in range(9))
    assert [one.span for one in find_places([page(1, rows, "b.xlsx", section="Prices")])] == ["sheet"]


def test_each_place_has_the_language_of_its_file():
    german = (
        "Die Pumpe der Halle wird alle drei Tage von dem Meister geprüft, der die Karte an der Wand unterschreibt. "
    )
    found = find_places([page(1, german * 3, "de.pdf"), page(1, TEXT.format("fan", 1, 2) * 3, "en.pdf")])
    assert {one.chunk.source: one.language for one in found} == {"de.pdf": "german", "en.pdf": "english"}


def test_a_large_file_is_asked_about_more_often_and_does_not_fill_the_set():
    found = find_places([*many("big.pdf", 64), *many("small.pdf", 4)])
    chosen = spread(found, 10)
    assert Counter(one.chunk.source for one in chosen) == {"big.pdf": 8, "small.pdf": 2}
    assert len({(one.chunk.source, one.chunk.page) for one in chosen}) == 10
    assert spread(found, 5) == chosen[:5]


def test_pairs_share_an_entity_and_stand_on_two_pages():
    texts = [TEXT.format("press HP-12", 1, 5), TEXT.format("valve of HP-12", 2, 6), TEXT.format("fan", 3, 7)]
    (pair,) = pairs(find_places([page(n, text) for n, text in enumerate(texts, start=1)]))
    assert [one.chunk.page for one in pair] == [1, 2]
