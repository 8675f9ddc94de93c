"""A judge, or an embedding model, that does not read all that is to be judged: the score says how much it did not."""

import pytest
from factories import make_answer, make_passage, make_question, make_trace
from scripted import good_reply

from rag_lab.evaluation.evaluate import evaluate
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.testing import HashEmbedder, Scripted, openai_server

TAIL = " The relief valve opens at 290 bar."
LONG = "The press is looked after by the shift. " * 1000 + TAIL


def judged(window, metric="ragas.faithfulness", memory=None):
    def script(body):
        prompt, schema = body["messages"][-1]["content"], body["response_format"]["json_schema"]["schema"]
        return Scripted(good_reply(ChatRequest((Message("user", prompt),), json_schema=schema)), window=window)

    trace = make_trace(make_question("q"), answer=make_answer("290 bar."), passages=(make_passage(text=LONG),))
    with openai_server(script) as server:
        judge = OpenAIChat("tiny", base_url=server.url)
        (score,) = evaluate([trace], [metric], judge=judge, memory=memory)
    return score


def test_a_judge_whose_window_cuts_the_prompt_is_found_out(tmp_path):
    cut, whole = judged(4096, memory=tmp_path / "m.sqlite"), judged(None)
    assert whole.truncated_tokens == 0 and whole.status == "scored"
    assert cut.status == "scored" and cut.truncated_tokens > 8000 - 4096
    assert judged(4096, memory=tmp_path / "m.sqlite").truncated_tokens == cut.truncated_tokens  # remembered


def test_what_a_metric_of_ones_own_asks_is_counted_too():
    def asks(trace, judge):
        (reply,) = judge.generate([ChatRequest((Message("user", LONG),), json_schema={"type": "object"})])
        return 0.5

    with openai_server(lambda _: Scripted("{}", window=1000)) as server:
        (score,) = evaluate([make_trace()], [asks], judge=OpenAIChat("tiny", base_url=server.url))
    assert score.truncated_tokens == len(LONG.split()) - 1000


class ReadsWords(HashEmbedder):
    most_tokens = 10

    def text_tokens(self, texts, kind):
        return [len(text.split()) for text in texts]


@pytest.mark.parametrize(("answer", "unread"), [("It is 290 bar.", 0), ("It is so. " * 5, 5)])
def test_what_an_embedding_model_does_not_read_of_an_answer_is_counted(answer, unread):
    trace = make_trace(make_question("q", answers=("It is 290 bar.",)), answer=make_answer(answer))
    (score,) = evaluate([trace], ["ragas.semantic_similarity"], embedder=ReadsWords())
    assert (score.status, score.truncated_tokens) == ("scored", unread)
