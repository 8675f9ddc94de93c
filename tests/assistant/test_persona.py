"""The persona of JupyterLab's chat panel, where its package is there (`pip install 'rag_lab[persona]'`)."""

import asyncio
from types import SimpleNamespace

import pytest

pytest.importorskip("jupyter_ai_persona_manager")

from rag_lab.assistant.persona import RagLabPersona


class Panel:
    """A chat's file: what is added, and what follows to it."""

    def __init__(self):
        self.texts = []

    def add_message(self, message):
        self.texts.append(message.body)
        return "1"

    def update_message(self, message, append=False, **_):
        self.texts[-1] = f"{self.texts[-1]}{message.body}" if append else message.body

    def get_message(self, id):
        return None


def persona(dataset, path="line-3.chat"):
    made = RagLabPersona.__new__(RagLabPersona)  # as its manager makes it, without a server
    made.chat, made.dataset, made.settings = Panel(), str(dataset), {}
    made.state = SimpleNamespace(writing=None)
    made.set_status = made.clear_status = lambda *_: None
    made.get_chat_path = lambda relative=False: path
    return made


def answer(one, text):
    asyncio.run(one.process_message(SimpleNamespace(body=text)))
    return one.chat.texts[-1]


@pytest.fixture
def manual(tmp_path):
    corpus = tmp_path / "set/corpus"
    corpus.mkdir(parents=True)
    (corpus / "p12.md").write_text("The main relief valve RV1 of P-12 opens at <b>290</b> bar.")
    return corpus.parent


def test_a_message_is_the_next_question_and_its_sources_are_folded(manual):
    text = answer(persona(manual), "@rag_lab At what pressure does RV1 of P-12 open?")
    assert "<details><summary>[1] p12.md</summary>The main relief valve RV1 of P-12 opens at &lt;b&gt;290" in text
    (turn,) = persona(manual).conversation.turns  # the file's session goes on, also in another server
    assert turn.question.strip() == "At what pressure does RV1 of P-12 open?"


def test_what_cannot_be_asked_gets_a_sentence(tmp_path, manual):
    assert "gone" in answer(persona(tmp_path / "gone"), "@rag_lab Why?")
    assert answer(persona(manual), "@rag_lab") == "The question is empty; ask something."
