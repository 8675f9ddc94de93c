"""The table of a judge's calls against the calls that the metrics make."""

import pytest
from factories import TEXT, make_passage, make_trace
from scripted import HashEmbedder, ScriptedJudge, good_reply

from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.judge.calls import CALLS
from rag_lab.evaluation.ragas.table import SPECS
from rag_lab.models.token_estimate import estimated_tokens

JUDGED = [f"ragas.{name}" for name, spec in SPECS.items() if "judge" in spec.models]


def test_every_judged_metric_is_in_the_table():
    assert set(CALLS) == set(JUDGED)


@pytest.mark.parametrize("metric", JUDGED)
def test_calls_and_prompts_are_those_that_are_made(metric):
    judge = ScriptedJudge(good_reply)
    trace = make_trace(passages=tuple(make_passage(number, text=TEXT) for number in (1, 2, 3)))
    (score,) = evaluate([trace], [metric], judge=judge, embedder=HashEmbedder())
    assert score.calls == len(judge.requests) == CALLS[metric].of(3)
    longest = max(estimated_tokens(request.messages[0].content) for request in judge.requests)
    texts = estimated_tokens(TEXT) * 3 + 40  # the passages; question, answer and reference
    assert 0.85 * CALLS[metric].prompt_tokens <= longest <= CALLS[metric].prompt_tokens + texts
