import base64
from pathlib import Path

import pymupdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback_models import ollama_server

from rag_lab.corpus.load.loader import LoadError
from rag_lab.corpus.load.pdf_vision import WEIGHTS, VisionPdf, likeness, overlaps
from rag_lab.errors import ModelError
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatReply
from rag_lab.models.shared import chat_model
from rag_lab.testing import ScriptedChat

PAGE = "The relief valve opens at 275 bar.\nThe oil is changed every year."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two pages with a text layer and one without."""
    pdf = pymupdf.open()
    for y in (72, 144):
        pdf.new_page().insert_text((72, y), PAGE)
    pixels = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 8, 8), False)
    pdf.new_page().insert_image(pymupdf.paper_rect("a4"), pixmap=pixels)
    pdf.save(tmp_path / "a.pdf")
    return tmp_path / "a.pdf"


READING = "# Valves\n\nThe relief valve opens at 275 bar.\nThe oil is changed every year."


def test_a_reading_like_the_text_layer_is_used_and_another_is_not(path: Path) -> None:
    model = ScriptedChat([ChatReply(f"```markdown\n{READING}\n```"), ChatReply("I see a cat."), ChatReply("A scan.")])
    loaded = VisionPdf(model, 72, 0.5)(path, "a.pdf")
    assert [(d.page, d.text) for d in loaded.documents] == [(1, READING), (2, PAGE), (3, "A scan.")]
    assert {d.title for d in loaded.documents} == {"Valves"}
    refused, unchecked = loaded.warnings
    assert refused.startswith("page 2: the text layer is used, for the model's reading scores 0.")
    assert unchecked == "page 3: the model's reading is unchecked, for the page has no text layer."
    assert loaded.lasting
    picture = model.requests[0].messages[0].images[0]
    assert pymupdf.Pixmap(picture).width == 595


def test_the_resolution_is_that_of_the_picture(path: Path) -> None:
    model = ScriptedChat([ChatReply(READING)] * 3)
    VisionPdf(model, 144, 0.5)(path, "a.pdf")
    assert pymupdf.Pixmap(model.requests[0].messages[0].images[0]).width == 1190


def test_a_failed_call_falls_back_and_is_not_remembered(path: Path, tmp_path: Path) -> None:
    memory = Memory(tmp_path / "vision.sqlite")
    limited = ChatReply(error="rate limit", transient=True)
    failing = ScriptedChat([limited, ChatReply(READING), ChatReply("", truncated=True)])
    loaded = VisionPdf(failing, 72, 0.5, memory)(path, "a.pdf")
    assert [d.page for d in loaded.documents] == [1, 2] and not loaded.lasting
    assert "gave no reading: rate limit" in loaded.warnings[0] and "cut off" in loaded.warnings[1]
    again = ScriptedChat([ChatReply(READING), ChatReply("A scan.")])
    assert len(VisionPdf(again, 72, 0.5, memory)(path, "a.pdf").documents) == 3
    assert len(again.requests) == 2


def test_a_file_of_which_nothing_is_read_is_refused(tmp_path: Path) -> None:
    pdf = pymupdf.open()
    pdf.new_page()
    pdf.save(tmp_path / "a.pdf")
    with pytest.raises(LoadError, match="rate limit") as caught:
        VisionPdf(ScriptedChat([ChatReply(error="rate limit", transient=True)]), 72, 0.5)(tmp_path / "a.pdf", "a.pdf")
    assert not caught.value.lasting


def test_a_server_is_shown_the_picture(path: Path) -> None:
    from loopback_chat import loopback_chat

    with loopback_chat() as server:
        server.reply = lambda body: (server.prompts.append(body["messages"]), READING)[1]  # type: ignore[method-assign]
        loaded = VisionPdf(chat_model(server.spec()), 72, 0.5)(path, "a.pdf")
    assert loaded.documents[0].text == READING
    text, picture = server.prompts[0][0]["content"]
    assert text["type"] == "text" and "Markdown" in text["text"]
    data = base64.b64decode(picture["image_url"]["url"].removeprefix("data:image/png;base64,"))
    assert pymupdf.Pixmap(data).width == 595


def test_a_model_of_ollama_that_sees_is_shown_the_picture_and_one_that_does_not_is_named(path: Path) -> None:
    with ollama_server(lambda body: READING) as server:
        loaded = VisionPdf(chat_model(f"ollama:tiny?base_url={server.url}"), 72, 0.5)(path, "a.pdf")
        (picture,) = server.bodies[0]["messages"][0]["images"]
    assert loaded.documents[0].text == READING
    assert pymupdf.Pixmap(base64.b64decode(picture)).width == 595
    blind = ollama_server(lambda body: READING, capabilities=["completion"])
    with blind as server, pytest.raises(ModelError, match="tiny sees no images; take a model of Ollama that does"):
        VisionPdf(chat_model(f"ollama:tiny?base_url={server.url}&context=4096"), 72, 0.5)(path, "a.pdf")


texts = st.text(st.sampled_from("ab .\n|#é油。-4"), max_size=40)


def test_the_parts_are_what_they_say() -> None:
    found = overlaps("# The oil is old\n\nChange it.", "the oil is hot\nChange it.")
    assert found["words"] == pytest.approx(2 * 5 / 12)  # the, oil, is, change, it.
    assert found["sentences"] == pytest.approx(2 * 1 / 4)
    first, second = "the oil is old change it.", "the oil is hot change it."
    assert found["characters"] == pytest.approx(_lcs(first, second) / 25)
    assert found["edits"] == pytest.approx(1 - 3 / 25)


def _lcs(first: str, second: str) -> int:
    """The length of the longest common subsequence, by the textbook's table."""
    row = [0] * (len(second) + 1)
    for a in first:
        before = 0
        for number, b in enumerate(second, start=1):
            before, row[number] = row[number], before + 1 if a == b else max(row[number], row[number - 1])
    return row[-1]


def test_the_score_is_their_weighted_sum() -> None:
    assert WEIGHTS == {"words": 0.4, "characters": 0.2, "sentences": 0.3, "edits": 0.1}
    parts = overlaps("oil and soup", "oil or soup. Twice.")
    expected = 0.4 * parts["words"] + 0.2 * parts["characters"] + 0.3 * parts["sentences"] + 0.1 * parts["edits"]
    assert likeness("oil and soup", "oil or soup. Twice.") == pytest.approx(expected)


@settings(max_examples=100, deadline=None)
@given(texts, texts)
def test_it_is_between_nothing_and_the_same(first: str, second: str) -> None:
    assert 0 <= likeness(first, second) <= 1
    assert likeness(first, first) == pytest.approx(1)
    assert likeness(first, second) == pytest.approx(likeness(second, first))


def test_markup_and_case_are_left_aside() -> None:
    assert likeness("# Oil\n\n| A | B |\n| --- | --- |\n| 1 | 2 |", "OIL\n\nA B\n\n1 2") > 0.95
    assert likeness("nothing of the kind", "Pressure 275 bar") < 0.4


TEXT_LAYER = (
    "The relief valve opens at 275 bar and must be\nchecked every day. The hydrau-\nlic oil is of a high-\ntemper type."
    "\n\nBolts\nBolt  Torque\nM6  9 Nm\nM8  22 Nm"
)
MARKDOWN = (
    "The relief valve opens at 275 bar and must be checked every day. The hydraulic oil is of a high-temper type.\n\n"
    "## Bolts\n\n| Bolt | Torque |\n| --- | --- |\n| M6 | 9 Nm |\n| M8 | 22 Nm |"
)
ZH_PAGE = "每天检查液压油的油位，\n并记录压力。阀门在二百七十五巴时打\n开。如果没有打开请停机。"


@pytest.mark.parametrize(("reading", "page"), [(MARKDOWN, TEXT_LAYER), (ZH_PAGE.replace("\n", ""), ZH_PAGE)])
def test_a_perfect_reading_is_the_same_wherever_lines_end(reading: str, page: str) -> None:
    assert overlaps(reading, page) == pytest.approx(dict.fromkeys(WEIGHTS, 1))
    assert likeness(page, reading) == pytest.approx(1)


def test_a_wrong_row_costs_only_itself() -> None:
    assert overlaps(MARKDOWN.replace("M6", "M5"), TEXT_LAYER)["sentences"] == pytest.approx(2 * 5 / 12)


def test_chinese_words_are_compared_one_by_one() -> None:
    assert overlaps("打开阀门", "关闭阀门")["words"] == pytest.approx(2 * 2 / 8)


def test_a_lost_minus_sign_is_no_perfect_reading() -> None:
    page = "Cool to -40 C. Never below \u22125 C."
    assert likeness("Cool to 40 C. Never below 5 C.", page) < 0.7
    assert likeness("- Cool to -40 C.\n- Never below \u20135 C.", page) == pytest.approx(1)


def test_lines_without_end_are_compared_one_by_one() -> None:
    lines = ["line"] * 50_000
    assert likeness("\n".join(lines), " ".join(lines)) > 0.6
