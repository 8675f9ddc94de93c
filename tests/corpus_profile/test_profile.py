"""The profile of a small corpus that has one of everything."""

import json

import pytest
import yaml

import rag_lab as rl
from rag_lab.config import PipelineConfig, nested
from rag_lab.corpus.load.pdf import scanned_pages
from rag_lab.corpus.reading import Reading
from rag_lab.corpus_profile.corpus_profile import holds_table, similar_files
from rag_lab.errors import DatasetError
from rag_lab.notebook.views.data_view import profile_page

ENGLISH = (
    "The valve of this press opens when the pressure is above what was set for it, and it is to be tested once a "
    "month by those who have been told how. Whoever finds that it does not open has to stop the press at once. "
)
REVISED = ENGLISH.replace("once a month", "once a week")
TABLE = "Setting  Value  Where\nPressure  290 bar  G1\nOil  60 C  panel\nFilter  4 bar  pin\n"


def pdf(path, *pages):
    """Write a PDF; a page of None is a picture without text."""
    pymupdf = pytest.importorskip("pymupdf")
    made = pymupdf.open()
    for text in pages:
        page = made.new_page()
        if text is None:
            page.insert_image(page.rect, pixmap=pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 9, 9)))
        else:
            page.insert_textbox((50, 50, 500, 700), text)
    made.save(path)


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "rev_a.txt").write_text(ENGLISH)
    (folder / "rev_b.txt").write_text(REVISED)
    (folder / "copy.txt").write_text(ENGLISH)
    (folder / "settings.md").write_text(
        f"# Press\n\nWhat each setting is, and where it is read.\n\n## Settings\n\n{TABLE}"
    )
    pdf(
        folder / "partly.pdf",
        "The canteen is open from eleven, and there is fish on Fridays for those who like it.",
        None,
    )
    pdf(folder / "scan.pdf", None)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    (folder / "photo.heic").write_bytes(b"x")
    (folder / "questions.jsonl").write_text('{"id": "q1"}\nnot JSON\n')
    return folder


@pytest.fixture
def found(docs, tmp_path):
    return rl.profile(docs, home=tmp_path / "home")


def test_what_is_there_is_counted(found):
    assert found.files == {".txt": 3, ".pdf": 3, ".md": 1}
    assert (found.n_used, found.n_pages) == (5, 5)
    assert (found.language, found.declared) == ("english", False)
    assert (found.n_tables, found.n_headings) == (1, 1)
    assert found.scans == {"partly.pdf": "2", "scan.pdf": "all"}
    assert found.same == (("copy.txt", "rev_a.txt"),)
    assert [(pair.first, pair.second) for pair in found.similar] == [
        ("copy.txt", "rev_b.txt"),
        ("rev_a.txt", "rev_b.txt"),
    ]


def test_every_problem_of_the_folder_is_named_at_once(found):
    told = "\n".join(map(str, found.problems))
    for part in ("questions.jsonl:1", "questions.jsonl:2", "photo.heic", "broken.pdf", "scan.pdf", "partly.pdf"):
        assert part in told


def test_settings_can_be_pasted_and_made(found):
    config = PipelineConfig().override(found.settings)
    assert (config.retrieval.analyzer, config.retrieval.mode) == ("english", "hybrid")
    assert PipelineConfig.parse(nested(found.settings)) == config
    assert "corpus.chunk_size" not in found.settings  # all chunks are read whole
    assert "--set retrieval.analyzer=english" in str(found)
    assert yaml.safe_load(yaml.safe_dump(nested(found.settings)))["retrieval"]["analyzer"] == "english"
    for key, values in found.to_try.items():
        for value in values:
            config.override({key: value})


def test_nothing_is_read_twice(docs, tmp_path, monkeypatch):
    first = rl.profile(docs, home=tmp_path / "home")
    monkeypatch.setattr(Reading, "load", lambda *_: pytest.fail("a file was read again"))
    config = PipelineConfig().override({"corpus.chunk_size": 100, "corpus.chunk_overlap": 0})
    again = rl.profile(docs, config, home=tmp_path / "home")
    assert again.n_words == first.n_words


def test_it_shows_itself_and_what_comes_from_outside_stays_text(docs, tmp_path):
    (docs / "<script>alert(1)<").mkdir()
    (docs / "<script>alert(1)<" / "script>.txt").write_text(ENGLISH)
    shown = rl.profile(docs, home=tmp_path / "home")
    for page in (shown._repr_html_(), profile_page(shown)):
        assert "<script" not in page and "&lt;script&gt;" in page
    assert "http" not in profile_page(shown).replace("https://ollama.com", "")
    assert max(map(len, str(shown).split("Paste")[0].splitlines())) <= 100
    assert shown._repr_html_() == shown._repr_html_() and str(shown) == str(shown)
    json.dumps(shown.to_dict())


def test_chunks_that_the_embedding_model_does_not_read_whole_are_made_smaller(tmp_path):
    (tmp_path / "docs").mkdir()
    codes = " ".join(f"XQ-{number}/{number * 7}" for number in range(2000))
    (tmp_path / "docs" / "codes.txt").write_text(codes)
    before = rl.profile(tmp_path / "docs", home=tmp_path / "home")
    chunks = next(length for length in before.lengths if length.what == "chunks")
    assert chunks.limit == 256 and chunks.over > 0.5
    assert before.settings["corpus.chunk_size"] < 800
    config = PipelineConfig().override(before.settings)
    after = rl.profile(tmp_path / "docs", config, home=tmp_path / "home")
    assert next(length for length in after.lengths if length.what == "chunks").over < 0.1


def test_a_language_that_the_packaged_embedder_never_learnt_is_searched_by_words(tmp_path):
    (tmp_path / "docs").mkdir()
    text = "Das Ventil öffnet, wenn der Druck zu hoch ist, und es ist von denen zu prüfen, die "
    (tmp_path / "docs" / "de.txt").write_text(f"{text} wissen, wie das geht, sonst wird es nicht sicher sein. " * 2)
    found = rl.profile(tmp_path / "docs", home=tmp_path / "home")
    assert (found.settings["retrieval.analyzer"], found.settings["retrieval.mode"]) == ("german", "bm25")


def test_a_folder_in_which_nothing_can_be_read_names_every_file(tmp_path):
    (tmp_path / "docs").mkdir()
    for number in range(6):
        (tmp_path / "docs" / f"broken_{number}.pdf").write_bytes(b"%PDF-1.7 and no more")
    with pytest.raises(DatasetError) as caught:
        rl.profile(tmp_path / "docs", home=tmp_path / "home")
    assert all(f"broken_{number}.pdf" in str(caught.value) for number in range(6))


def test_files_are_alike_by_their_words_in_order():
    texts = {"a": ENGLISH * 3, "b": REVISED * 3, "c": TABLE, "d": " ".join(reversed(ENGLISH.split())), "e": ""}
    assert [(pair.first, pair.second) for pair in similar_files(texts)] == [("a", "b")]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (TABLE, True),
        ("| a | b |\n| --- | --- |\n| 1 | 2 |", True),
        ("1.  Open the valve.\n2.  Close it.\n3.  Go home.", False),
        (ENGLISH, False),
    ],
)
def test_a_table_is_three_rows_in_columns_and_a_list_is_none(text, holds):
    assert holds_table(text) is holds


def test_only_pages_that_are_images_are_scans():
    assert scanned_pages("pages 2, 3 hold only images and no text: left out; run OCR on the file first.") == "2, 3"
    assert scanned_pages("page 2 holds content that cannot be read: left out; replace the file.") == ""
