"""What a dry run counts and what it will cost, by measured rates."""

import json
import logging

import pytest
from small_plans import CHAT, EMBEDDER, SCORER, calls_made, install_doubles, run_in_process, write_plan

from rag_lab._kit.home import home
from rag_lab.experiment.config import Limits
from rag_lab.experiment.forecast.cost_estimate import (
    RATES_FILE,
    Rate,
    estimate,
    keep_rates,
    machine_minutes,
    machine_rates,
    read_rates,
)
from rag_lab.experiment.forecast.describe import cost_notes, models_table, notes_of
from rag_lab.experiment.forecast.work import Work
from rag_lab.experiment.manifest import VariantState
from rag_lab.memory.ledger import Ledger
from rag_lab.models import shared
from rag_lab.models.providers import CHAT_MODELS
from rag_lab.testing import ScriptedChat

pytestmark = pytest.mark.slow

EXTRA = {"id": "q5", "question": "What trips the oven?", "answers": ["Alarm A7"], "class": "fuzzy"}


@pytest.fixture
def doubles(monkeypatch):
    return install_doubles(monkeypatch)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite")


def calls_foreseen(bill):
    return {row.purpose: row.calls for row in bill.rows if row.calls}


def run(checked, ledger, monkeypatch):
    return dict(run_in_process(checked, ledger, monkeypatch))


def row_of(bill, purpose):
    return next(row for row in bill.rows if row.purpose == purpose)


def test_a_fresh_plan_is_foreseen_without_a_model(tmp_path, doubles):
    bill = estimate(write_plan(tmp_path, base={**WITH_ALL, "rerank": {"name": "query_likelihood"}}))
    assert (doubles.chat.requests, doubles.embedder.documents, doubles.scorer.pairs) == ([], [], [])
    assert not (home() / "stages.sqlite").exists()
    assert not (home() / "vectors.sqlite").exists()
    assert (row_of(bill, "index").unit, row_of(bill, "index").n) == ("chunk", 4)
    assert (row_of(bill, "rerank").model, row_of(bill, "rerank").n) == (SCORER, 4 * 20)


WITH_ALL = {
    "models": {"generation": CHAT, "understanding": CHAT, "hyde": CHAT, "embedding": EMBEDDER},
    "query": {"rewrite": "llm", "hyde": "always", "min_similarity": -1},
    "answer": {"name": "llm"},
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"limits": {"answers": 1}},
        {"repeats": 2},
        {"base": WITH_ALL},
        {"factors": {"answer.temperature": [0.0, 0.5]}},
        {"base": {**WITH_ALL, "query": {"hyde": "none", "rewrite": "none", "phrasings": 2}}},
        {"base": {**WITH_ALL, "retrieval": {"mode": "rrf"}, "select": {"diversity": "mmr"}}},
    ],
    ids=["plain", "few answers", "repeats", "all modules", "temperature", "phrasings", "searches"],
)
def test_the_calls_foreseen_are_those_made_and_afterwards_none_are_left(
    tmp_path, monkeypatch, doubles, ledger, changes
):
    checked = write_plan(tmp_path, **changes)
    foreseen = calls_foreseen(estimate(checked))
    run(checked, ledger, monkeypatch)
    assert calls_made(ledger) == foreseen
    after = estimate(checked)
    assert calls_foreseen(after) == {}
    assert not any(row.n for row in after.rows)
    assert row_of(after, "generate").remembered == foreseen["generate"]


def test_what_turns_out_the_same_is_foreseen_as_more(tmp_path, monkeypatch, doubles, ledger):
    factors = {"query.hyde": ["none", "always"], "corpus.chunk_size": [800, 400]}  # the same four short documents
    checked = write_plan(tmp_path, factors=factors, design="grid")
    bill = estimate(checked)
    run(checked, ledger, monkeypatch)
    made = calls_made(ledger)
    assert made["hyde"] == row_of(bill, "hyde").n == 4
    assert made["generate"] < row_of(bill, "generate").n
    assert row_of(bill, "generate").at_most
    assert calls_foreseen(estimate(checked)) == {}


def test_what_depends_on_missing_results_is_at_most(tmp_path, monkeypatch, ledger):
    install_doubles(monkeypatch, {"class": "specific"})  # which the class rule gives no hypothetical document
    base = {**WITH_ALL, "query": {**WITH_ALL["query"], "hyde": "classified"}}
    checked = write_plan(tmp_path, base=base, factors={})
    bill = estimate(checked)
    assert not row_of(bill, "understand").at_most
    assert (row_of(bill, "hyde").n, row_of(bill, "hyde").at_most) == (4, True)
    run(checked, ledger, monkeypatch)
    assert "hyde" not in calls_made(ledger)


def test_what_the_extractive_reader_embeds_is_foreseen_and_no_chat_model_listed(tmp_path, monkeypatch, doubles, ledger):
    base = {**WITH_ALL, "query": {"hyde": "none", "rewrite": "none"}, "answer": {"name": "extract"}}
    checked = write_plan(tmp_path, base=base)
    bill = estimate(checked)
    quoting = row_of(bill, "generate")
    assert (quoting.model, quoting.unit, quoting.n, quoting.at_most) == (EMBEDDER, "question", 8, True)
    assert models_table(checked).rows == (("embedding", EMBEDDER),)
    run(checked, ledger, monkeypatch)
    quoted = sum(map(len, doubles.embedder.documents)) - row_of(bill, "index").chars_to_embed
    assert 0 < quoted <= quoting.chars_to_embed < quoting.embedded_chars  # of four short documents
    assert calls_made(ledger) == {}
    single = {"base": {**base, "answer": {"name": "extract", "quote_sentences": 1}}}  # of contexts that are known now
    found = row_of(estimate(write_plan(tmp_path / "single", **single)), "generate")
    assert (found.n, found.at_most, found.chars_to_embed) == (8, False, 0)


def test_one_more_question_costs_that_question(tmp_path, monkeypatch, doubles, ledger):
    factors = {"rerank.name": ["none", "query_likelihood"], "rerank.final_k": [2, 1]}
    run(write_plan(tmp_path, base=WITH_ALL, factors=factors), ledger, monkeypatch)
    before, pairs = calls_made(ledger), len(doubles.scorer.pairs)
    more = write_plan(tmp_path, [EXTRA], base=WITH_ALL, factors=factors)
    bill = estimate(more)
    assert calls_foreseen(bill) == {"understand": 1, "hyde": 1, "generate": 3}
    assert row_of(bill, "understand").remembered == 4
    assert "index" not in {row.purpose for row in bill.rows}
    run(more, ledger, monkeypatch)
    made = {purpose: n - before[purpose] for purpose, n in calls_made(ledger).items()}
    assert made["understand"] == made["hyde"] == 1
    assert made["generate"] <= 3  # two contexts may turn out the same
    assert len(doubles.scorer.pairs) - pairs <= row_of(bill, "rerank").n


def test_known_candidates_give_the_pairs_exactly(tmp_path, monkeypatch, doubles, ledger):
    run(write_plan(tmp_path, factors={}), ledger, monkeypatch)
    checked = write_plan(tmp_path, factors={"rerank.name": ["none", "query_likelihood"]})
    row = row_of(estimate(checked), "rerank")
    run(checked, ledger, monkeypatch)
    assert (row.n, row.at_most) == (len(doubles.scorer.pairs), False)


def test_judged_scores_are_calls_of_the_judge(tmp_path, monkeypatch, doubles, ledger):
    checked = write_plan(tmp_path, metrics=["ragas.context_precision", "ragas.semantic_similarity"], judge=CHAT)
    bill = estimate(checked)
    assert row_of(bill, "ragas.context_precision").calls == 3 * (2 + 1)  # q4 has no reference
    assert "ragas.semantic_similarity" not in {row.purpose for row in bill.rows}  # it asks no judge
    assert row_of(bill, "ragas.context_precision").at_most
    run(checked, ledger, monkeypatch)
    assert calls_made(ledger)["ragas.context_precision"] == 3 * 2  # both variants show the first passage to the judge
    after = estimate(checked)
    assert calls_foreseen(after) == {}
    assert row_of(after, "ragas.context_precision").remembered == 6


def test_rates_make_tokens_and_minutes(tmp_path, doubles):
    judged = write_plan(tmp_path, metrics=["ragas.context_precision"], judge=CHAT)
    before = row_of(estimate(judged), "generate")
    assert (before.tokens_measured, before.minutes) == (False, None)
    assert before.tokens_out == before.calls * 160
    keep_rates(home(), [Rate("generate", CHAT, n=2, seconds=60, tokens_in=100, tokens_out=20)])
    after = row_of(estimate(judged), "generate")
    assert (after.calls, after.tokens_in, after.tokens_out, after.minutes) == (8, 400, 80, 4.0)
    assert after.tokens_measured
    assert estimate(judged).minutes is None  # nobody has measured the judge
    assert estimate(write_plan(tmp_path)).minutes == 4.0


def test_prices_are_those_of_the_table_and_a_missing_one_is_no_zero(tmp_path, monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "x")
    monkeypatch.setenv("RAG_LAB_PRICES", str(tmp_path / "prices.toml"))
    (tmp_path / "prices.toml").write_text('checked = 2026-11-30\n[usd_per_million_tokens]\n"gemini-1" = [1.0, 10.0]\n')
    install_doubles(monkeypatch)

    def generated_by(model):
        base = {"models": {"generation": f"gemini:{model}"}, "answer": {"name": "llm"}}
        return row_of(estimate(write_plan(tmp_path, base=base)), "generate")

    priced = generated_by("gemini-1")
    assert priced.cost_usd == pytest.approx((priced.tokens_in + 10 * priced.tokens_out) / 1e6)
    assert generated_by("gemini-2").cost_usd is None


BY_WORDS = {"models": {"generation": CHAT, "embedding": EMBEDDER}, "answer": {"name": "llm"}}


def test_the_chunks_to_embed_are_foreseen(tmp_path, monkeypatch, doubles, ledger):
    factors = {"corpus.chunk_size": [800, 60], "corpus.chunk_overlap": [0]}
    checked = write_plan(tmp_path, base=BY_WORDS | {"corpus": {"chunk_overlap": 0}}, factors=factors, design="grid")
    row = row_of(estimate(checked), "index")
    assert (row.unit, row.remembered) == ("chunk", 0)
    run(checked, ledger, monkeypatch)
    assert row.n == len(set(doubles.embedder.documents)) == len(doubles.embedder.documents)
    assert "index" not in {row.purpose for row in estimate(checked).rows}
    more = write_plan(tmp_path, base=BY_WORDS | {"corpus": {"chunk_overlap": 0, "chunk_size": 50}}, factors={})
    after = row_of(estimate(more), "index")
    assert after.n > 0 and after.remembered > 0


def test_what_a_service_asks_for_embedding_is_told_and_in_no_total(tmp_path, monkeypatch, doubles):
    checked = write_plan(tmp_path, base=BY_WORDS, factors={})
    assert row_of(estimate(checked), "index").embedded_tokens == 0
    for name, value in {"provider": "openai", "name": "text-embedding-3-small", "priced": True}.items():
        monkeypatch.setattr(doubles.embedder, name, value, raising=False)
    bill = estimate(checked)
    row = row_of(bill, "index")
    assert (row.embedded_tokens > row.n, row.cost_usd, row.calls) == (True, 0, 0)
    (note,) = [note for note in cost_notes(bill, Limits()) if "Embedding by" in note]
    assert f"at most {row.embedded_tokens:,} tokens" in note and "genai-prices" in note
    monkeypatch.setattr(doubles.embedder, "name", "unheard-of")
    assert row_of(estimate(checked), "index").embedded_tokens == 0


def test_what_is_searched_by_words_is_not_embedded(tmp_path, monkeypatch, doubles, ledger):
    checked = write_plan(tmp_path, base=BY_WORDS | {"retrieval": {"mode": "bm25"}}, factors={})
    assert "index" not in {row.purpose for row in estimate(checked).rows}
    run(checked, ledger, monkeypatch)
    assert doubles.embedder.documents == []


def test_where_a_model_splits_the_files_their_number_stands_for_the_chunks(tmp_path, doubles):
    base = BY_WORDS | {"corpus": {"splitter": "semantic"}}
    bill = estimate(write_plan(tmp_path, base=base, factors={}))
    row = row_of(bill, "index")
    assert (row.unit, row.n) == ("file", 4)
    assert doubles.embedder.documents == []


def test_thinking_is_counted_beside_the_reply_and_told(tmp_path, doubles, monkeypatch):
    base = {"answer": {"name": "llm", "thinking": True, "thinking_tokens": 300, "max_tokens": 50}}
    bill = estimate(write_plan(tmp_path, base={**WITH_ALL, **base}))
    generate, understand = row_of(bill, "generate"), row_of(bill, "understand")
    assert (generate.tokens_out, generate.thinking_tokens) == (350 * generate.n, 300 * generate.n)
    assert understand.thinking_tokens == 0
    assert f"Thinking: at most {300 * generate.n:,} of the tokens that generate writes." in cost_notes(bill, Limits())
    monkeypatch.setattr(type(doubles.chat), "least_thinking_tokens", 128, raising=False)  # it cannot stop
    other = estimate(write_plan(tmp_path / "other", base={**WITH_ALL, **base}))
    assert row_of(other, "understand").thinking_tokens == 128 * understand.n
    assert row_of(other, "understand").tokens_out == understand.tokens_out + 128 * understand.n
    assert row_of(other, "generate").thinking_tokens == 300 * generate.n


@pytest.mark.parametrize(("tokens_a_call", "measured"), [(40, False), (50, False), (200, True)])
def test_what_was_measured_without_thinking_says_nothing_of_replies_with_it(tmp_path, doubles, tokens_a_call, measured):
    keep_rates(home(), [Rate("generate", CHAT, 10, 10.0, 1000, 10 * tokens_a_call)])
    base = {"answer": {"name": "llm", "thinking": True, "thinking_tokens": 300, "max_tokens": 50}}
    generate = row_of(estimate(write_plan(tmp_path, base={**WITH_ALL, **base})), "generate")
    assert generate.tokens_measured == measured
    assert generate.tokens_out == generate.n * (tokens_a_call if measured else 350)
    assert (generate.minutes is None) != measured


INDEX = Work("index", "sentence_transformers:minilm", "chunk", 2000, embedded_chars=1_000_000)
MADE = {"embedded": {"model": INDEX.model, "chars": 500_000, "seconds": 90.0}}


def rates_of(plan, states, report_s=8.0, called=False):
    return {(rate.purpose, rate.model): rate for rate in machine_rates(plan, states, report_s, called=called)}


@pytest.fixture
def plan(tmp_path):
    return write_plan(tmp_path)


def states_of(plan, seconds, **changes):
    first, *others = (VariantState(variant.variant_id, "ok", seconds=seconds, **changes) for variant in plan.variants)
    return [VariantState(first.variant_id, "ok", seconds=seconds + 90.0, record=MADE, **changes), *others]


def test_what_a_sweep_took_is_foretold_of_the_same_sweep_and_scaled_to_more_text(plan):
    assumed = machine_minutes(plan, [INDEX], {})
    assert assumed.embedding > 0 and assumed.assumed == ("embedding", "notebooks", "report")
    found = machine_minutes(plan, [INDEX], rates_of(plan, states_of(plan, 30.0)))
    assert found.embedding == pytest.approx(3.0)  # 90 s for half of the text
    assert found.notebooks == pytest.approx(0.5 * len(plan.variants), rel=0.01)
    assert found.report == pytest.approx(8 / 60, rel=0.01)
    assert not found.assumed


def test_only_a_sweep_that_did_all_of_it_by_itself_measures_notebooks(plan):
    assert set(rates_of(plan, states_of(plan, 30.0), called=True)) == {("embedding", INDEX.model)}
    assert rates_of(plan, states_of(plan, 30.0, resumed=True)) == {}


def test_where_nothing_is_embedded_nothing_is_assumed_of_it(plan):
    found = machine_minutes(plan, [], {})
    assert found.embedding == 0 and found.assumed == ("notebooks", "report")


def test_the_latest_measurement_of_each_call_is_kept(tmp_path):
    keep_rates(tmp_path, [Rate("generate", "m", 2, 9.0), Rate("hyde", "m", 1, 3.0)])
    keep_rates(tmp_path, [Rate("generate", "m", 4, 1.0, 10, 20), Rate("generate", "other", 1, 5.0)])
    assert read_rates(tmp_path) == {
        ("generate", "m"): Rate("generate", "m", 4, 1.0, 10, 20),
        ("hyde", "m"): Rate("hyde", "m", 1, 3.0),
        ("generate", "other"): Rate("generate", "other", 1, 5.0),
    }


@pytest.mark.parametrize("text", ["", "{}", '[{"purpose": "a", "model": "m", "n": 0, "seconds": 1}]', "{"])
def test_a_broken_file_is_said_and_measured_anew(tmp_path, caplog, text):
    (tmp_path / RATES_FILE).write_text(text)
    with caplog.at_level(logging.WARNING):
        assert read_rates(tmp_path) == {}
    assert RATES_FILE in caplog.text
    keep_rates(tmp_path, [Rate("generate", "m", 1, 1.0)])
    assert len(read_rates(tmp_path)) == 1


def test_a_second_judge_is_bounded_in_the_dry_run_asked_and_remembered(tmp_path, monkeypatch, doubles, ledger):
    other = CHAT.replace(":9/", ":8/")
    second = ScriptedChat(lambda request: json.dumps({"reason": "r", "verdict": 0}), name="second")
    second.least_thinking_tokens = 50
    monkeypatch.setitem(shared._NAMED, (CHAT_MODELS.name, other, ""), second)
    checked = write_plan(tmp_path, metrics=["ragas.context_precision"], judge=[CHAT, other])
    name = f"ragas.context_precision by {other}"
    assert checked.experiment.metrics == ["ragas.context_precision", name]
    assert (checked.experiment.judge, checked.experiment.judges) == (CHAT, [CHAT, other])
    bill = estimate(checked)
    assert row_of(bill, name).model == other and row_of(bill, name).calls == 3 * (2 + 1)
    thinking = {one: row_of(bill, one).thinking_tokens for one in ("ragas.context_precision", name)}
    assert thinking == {"ragas.context_precision": 0, name: 50 * 3 * (2 + 1)}  # each judge's own
    scores = run(checked, ledger, monkeypatch)
    assert calls_made(ledger)[name] == calls_made(ledger)["ragas.context_precision"] == 3 * 2
    assert len(second.requests) == 3 * 2
    by = {one.metric: one.value for work in scores.values() for one in work.scores if one.status == "scored"}
    assert by["ragas.context_precision"] > 0.9 and by[name] == 0
    assert calls_foreseen(estimate(checked)) == {}
    notes = " ".join(notes_of(checked))
    assert f"The judge {CHAT} is of the family of a writer" in notes and f"The judge {other} is of" in notes
