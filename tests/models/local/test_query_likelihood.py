import pytest

from rag_lab.models.local.causal import QueryLikelihoodScorer

PASSAGES = [
    "the press runs at 140 bar .",
    "the filter of the oven is changed monthly by maintenance .",
    "grease",
    "ram guides need grease every 500 hours and when the press runs at 140 bar . " * 2,
    "",
]
QUESTIONS = [
    "what pressure does the press need ?",
    "who ?",
    "how often is the filter of the oven changed by maintenance ?",
]
PAIRS = [(question, passage) for question in QUESTIONS for passage in PASSAGES]


def naive(model, tokenizer, question, passage, passage_tokens):
    """The mean log-probability of the question's tokens, one token at a time, every logit computed."""
    import torch

    def ids_of(text):
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    prompt = ids_of("Passage: ") + ids_of(passage)[:passage_tokens]
    prompt += ids_of("\nPlease write a question based on this passage.\nQuestion:")
    total, asked = 0.0, ids_of(f" {question}")
    for position, token in enumerate(asked):
        with torch.no_grad():
            logits = model(torch.tensor([prompt + asked[:position]])).logits[0, -1].double()
        total += torch.log_softmax(logits, 0)[token].item()
    return total / len(asked)


def check_against_naive(scorer, pairs):
    lm = scorer.settings.load()
    expected = [naive(lm.model, lm.tokenizer, *pair, scorer.passage_tokens) for pair in pairs]
    assert scorer.score(pairs) == pytest.approx(expected, abs=1e-4)


def check_batches(scorer, pairs):
    together = scorer.score(pairs)
    assert together == pytest.approx([scorer.score([pair])[0] for pair in pairs], abs=1e-4)
    assert scorer.score(pairs[::-1])[::-1] == pytest.approx(together, abs=1e-4)
    assert all(value < 0 for value in together)


@pytest.fixture(scope="module")
def scorer(tiny_causal):
    return QueryLikelihoodScorer(str(tiny_causal), device="cpu", batch_size=4, passage_tokens=20)


def test_scores_are_those_of_a_naive_loop(scorer):
    check_against_naive(scorer, PAIRS)


def test_a_pair_has_one_score_in_any_batch_and_order(scorer):
    check_batches(scorer, PAIRS)
    assert scorer.score([]) == []


def test_what_lies_behind_the_passage_limit_is_not_read(scorer):
    (cut,), (longer,) = scorer.score([("who ?", PASSAGES[3])]), scorer.score([("who ?", PASSAGES[3] + " oven oven")])
    assert cut == longer
    assert scorer.identity()["passage_tokens"] == 20


@pytest.mark.slow
def test_the_packaged_model_prefers_the_passage_that_answers(real_home):
    scorer = QueryLikelihoodScorer("smollm2", device="cpu")
    passages = [
        "The hydraulic press runs at a working pressure of 140 bar. Bleed the circuit before every test.",
        "The curing oven's filter is replaced by maintenance on the first Monday of every month.",
        "Visitors sign the book at the gate and wear safety shoes in all production halls.",
    ]
    pairs = [
        (question, passage)
        for question in ("At what pressure does the press run?", "How often is the oven filter replaced?")
        for passage in passages
    ]
    scores = scorer.score(pairs)
    assert max(scores[:3]) == scores[0]
    assert max(scores[3:]) == scores[4]
    check_batches(scorer, pairs)
    check_against_naive(scorer, pairs[:2])
