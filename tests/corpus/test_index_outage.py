"""A corpus that was read while its model was down: usable, marked, and read again when it is opened again."""

import pymupdf
import pytest

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import open_index
from rag_lab.models.protocols import ChatReply
from rag_lab.testing import HashEmbedder, ScriptedChat

PAGE = "The relief valve opens at 275 bar.\nThe oil is changed every year."
READING = f"# Valves\n\n{PAGE}"
DOWN = ChatReply(error="the server answered with status 500", transient=True)


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/notes.txt").write_text("The canteen opens at 11:30.")
    pdf = pymupdf.open()
    for y in (72, 144):
        pdf.new_page().insert_text((72, y), PAGE)
    pdf.save(tmp_path / "corpus/a.pdf")
    return tmp_path / "corpus"


def opened(corpus, chat, **options):
    config = CorpusConfig(pdf="vision", vision_dpi=72)
    return open_index(corpus, config, HashEmbedder(), home=corpus.parent / "home", vision=chat, **options)


def test_an_index_made_in_an_outage_is_made_again_and_is_another_one(corpus):
    chat = ScriptedChat([DOWN, ChatReply(READING)])
    poor = opened(corpus, chat)
    assert poor.is_retryable
    assert poor.manifest.n_documents == 3  # the text layer stands in
    assert any("status 500" in str(problem) for problem in poor.problems)

    chat.script = lambda request: DOWN
    assert opened(corpus, chat).digest == poor.digest  # the outage lasts: nothing new to remember results under
    assert not opened(corpus, chat, build=False).is_built

    chat.script, chat.requests = (lambda request: ChatReply(READING)), []
    whole = opened(corpus, chat)
    assert len(chat.requests) == 1  # the page that had failed
    assert not whole.is_retryable
    assert whole.digest != poor.digest
    assert not any("status 500" in str(problem) for problem in whole.problems)

    chat.requests = []
    assert opened(corpus, chat).digest == whole.digest == opened(corpus, chat, build=False).digest
    assert chat.requests == []
