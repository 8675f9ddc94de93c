from rag_lab.config import PipelineConfig
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question, Remembered, Trace, Turn
from rag_lab.stages.answer.generate import Generate
from rag_lab.stages.answer.prompts import NOT_FOUND
from rag_lab.testing import HashEmbedder, ScriptedChat, sample_index

ASKED = Question("q", "Who builds the press?", history=(Turn("user", "about the plant"),))


def reader(context):
    config = PipelineConfig().override({"answer.name": "llm", "answer.context": context})
    stages = Pipeline.on(sample_index(), HashEmbedder(), config).stages
    return next(stage for stage in stages if isinstance(stage, Generate))


def test_a_closed_book_asks_for_what_the_model_knows_in_the_users_words():
    chat = ScriptedChat(['{"answer": "Brandvik", "citations": []}'])
    Generate(chat, 32, 0.0, closed_book=True).run([Trace(ASKED, remembered=Remembered(1, ASKED.history))])
    system, *_, history, last = [message.content for message in chat.requests[0].messages]
    assert "passages" not in system.lower()
    assert NOT_FOUND in system
    assert history == "about the plant"
    assert last == "Question: Who builds the press?"


def test_only_a_context_of_none_closes_the_book_and_other_results_are_found_again():
    assert reader("none").closed_book
    assert not reader("gold").closed_book
    assert "closed_book" not in reader("retrieved").identity()
    assert reader("none").identity() != reader("retrieved").identity()
