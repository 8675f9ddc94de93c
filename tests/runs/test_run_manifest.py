import pytest

from rag_lab.comparison.findings.search_sentences import race_sentences
from rag_lab.errors import DamagedFile
from rag_lab.runs.run_folder import write_json
from rag_lab.runs.run_manifest import (
    RACE_FILE,
    Cost,
    RaceRecord,
    RoundRecord,
    Standing,
    answering_models,
    failover_sentences,
    read_race,
)

TEXT = "ollama:a | gemini:b"


def test_a_run_without_stand_ins_says_nothing():
    assert failover_sentences({"A (base)": {}, "B (x)": {}}) == []


def test_one_model_for_all_variants_is_named():
    assert failover_sentences({"A": {TEXT: ["ollama:a"]}, "B": {TEXT: ["ollama:a"]}}) == [
        "Of ollama:a | gemini:b, ollama:a played the role throughout."
    ]
    assert failover_sentences({"A": {TEXT: ["gemini:b"]}, "B": {}}) == [
        "Of ollama:a | gemini:b, gemini:b played the role throughout, since ollama:a did not answer."
    ]


def test_variants_of_several_models_are_told_apart():
    (told,) = failover_sentences({"A": {TEXT: ["ollama:a"]}, "B": {TEXT: ["gemini:b"]}, "C": {TEXT: ["gemini:b"]}})
    assert "ollama:a in A and gemini:b in B and C" in told
    assert told.endswith("may be the model's doing.")


def test_who_wrote_is_who_played_and_of_one_model_that_one():
    variants = [{TEXT: ["ollama:a"]}, {}, {TEXT: ["gemini:b", "ollama:a"]}]
    assert answering_models(TEXT, variants) == ["ollama:a", "gemini:b"]
    assert answering_models("llamacpp:smollm2", variants) == ["llamacpp:smollm2"]


BASE = Standing("baseline", "baseline", 3, 0.4, 20, 20, stays=True)
STANDINGS = (
    Standing("a", "hyde = always", 1, 0.6, 20, 20, stays=True),
    Standing("b", "k = 2", 2, 0.5, 20, 20, stays=True),
    BASE,
    Standing("c", "k = 3", 4, 0.3, 19, 20, behind="a", least=0.02),
    Standing("d", "k = 4", 4, 0.3, 20, 20, behind="b", least=0.01),
    Standing("e", "k = 5"),
)
FIRST = RoundRecord("rounds/1", 20, STANDINGS, Cost(100, 2_000, 0.5, 1.0, 60.0))
SECOND = RoundRecord("rounds/2", 50, STANDINGS[:3], Cost(50, 1_000, 0.25, 0.5, 30.0))
FULL = Cost(4_000, 80_000, 12.0, None, None)
RACE = RaceRecord(
    "p", "retrieval.ndcg@5", (20, 50), 6, 150, 2, FULL, (FIRST, SECOND), winner="a", baseline="baseline", error=0.05
)


def test_a_record_is_read_as_it_was_written_and_a_damaged_one_is_named(tmp_path):
    assert read_race(tmp_path) is None
    write_json(tmp_path / RACE_FILE, RACE)
    assert read_race(tmp_path) == RACE
    (tmp_path / RACE_FILE).write_text('{"plan": ')
    with pytest.raises(DamagedFile, match=r"race\.json is damaged \(it holds no race\)"):
        read_race(tmp_path)


def test_questions_of_earlier_rounds_are_counted_once():
    assert RACE.n_asked == 2 * (6 * 20 + 3 * 30 + 2 * 150)
    assert RACE.n_full == 2 * 6 * 200
    assert RACE.cost == Cost(150, 3_000, 0.75, 1.5, 90.0)
    assert (Cost(cost_usd=None) + Cost(cost_usd=1.0)).cost_usd is None


def test_a_race_says_how_the_winner_was_proven_what_it_cost_and_what_was_given_up():
    how, asked, paid, given_up, left, failed = race_sentences(RACE, Cost(30, 500, 0.25, 0.1, 9.0))
    assert "6 variants raced in 2 rounds of 20 and 50 questions" in how and "a is proven against the baseline" in how
    assert "150 other questions, which chose nothing: one comparison" in how
    assert "1,020 times" in asked and "2,400 times, so that 57% were saved" in asked
    assert "180 calls of chat models with 3,500 tokens and 1.00 USD" in paid
    assert "4,000 calls with 80,000 tokens and 12.00 USD at most" in paid
    assert "2 dropped variants have no proof. Each is worse than another in retrieval.ndcg@5" in given_up
    assert given_up.endswith("with a chance of 5% at most.") and left.endswith(": b.")
    assert failed == "Dropped without any score: e."


def test_a_race_that_stopped_says_why_and_one_without_chat_models_counts_no_calls():
    stopped = RaceRecord("p", "m", (20,), 6, 150, 1, Cost(), (FIRST,), stopped="The race stops after round 1.")
    assert race_sentences(stopped, Cost())[0] == "The race stops after round 1."
    silent = RaceRecord("p", "m", (20,), 6, 150, 1, Cost())
    assert race_sentences(silent, Cost()) == ["6 variants race in 1 round of 20 questions; none has won yet."]
