from __future__ import annotations

import base64
from pathlib import Path

import pymupdf
import pytest

from rag_lab.corpus.load.loader import LoadError
from rag_lab.corpus.load.pdf_vision import VisionPdf
from rag_lab.errors import ModelError
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatReply
from rag_lab.models.shared import chat_model
from rag_lab.testing import ScriptedChat, ollama_server

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
