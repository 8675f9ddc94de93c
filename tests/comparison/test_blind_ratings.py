"""Which answers people should rate, and what their ratings make of a judge's scores."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from run_folder_fixture import build_run, build_unlabelled

from rag_lab.comparison.blind_trials import LabelledPair, labelled_pair
from rag_lab.comparison.comparison import Comparison, read_comparison
from rag_lab.errors import ConfigError
from rag_lab.report.page.report_page import to_html
from rag_lab.report.sections import named_tables
from rag_lab.runs.human_input import ASKED_FILE, LABELS_FILE, AnswerLabel, Rating, add_record
from rag_lab.runs.run_folder import write_json
from rag_lab.runs.variant_files import read_traces, write_traces

BASE, OTHER = "baseline", "rerank.name-query_likelihood"
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    """A run of 60 questions; both variants give the same answer to the first 15."""
    run = build_run(tmp_path / "run", 60, 2)
    first, second = (run.traces(name) for name in (BASE, OTHER))
    write_traces(run.variant_dir(OTHER) / "traces.jsonl", [*first[:15], *second[15:]])
    return read_comparison(run.path)


def rate(comparison: Comparison, pair: LabelledPair, n: int, by: str = "anna", bad: int = 3) -> Comparison:
    """Rate what is drawn: answers of the baseline are bad on every third question, the others good."""
    asked = pair.ask(n)
    write_json(comparison.run.path / ASKED_FILE, asked)
    base = {answers[1].key for answers in pair.answers.values()}
    for place, key in enumerate(asked.answers):
        rating: Rating = "down" if key in base and int(key[0][1:] or 0) % bad == 0 else "up"
        made = (BEGAN + timedelta(seconds=place)).isoformat()
        add_record(comparison.run.path, AnswerLabel(*key, rating, by, made))
    return read_comparison(comparison.run.path)


def test_the_pair_is_the_best_variant_and_the_baseline_and_the_metric_one_that_reads_answers(comparison):
    pair = labelled_pair(comparison)
    assert pair.pair == (OTHER, BASE)
    assert pair.metric == "ragas.semantic_similarity"
    assert labelled_pair(comparison, (BASE, OTHER)).pair == (BASE, OTHER)


def test_labels_go_where_variants_differ_and_the_same_answer_is_asked_once(comparison):
    pair = labelled_pair(comparison)
    asked = pair.ask(30)
    by_question: dict[str, int] = {}
    for name, _ in asked.answers:
        by_question[name] = by_question.get(name, 0) + 1
    same = [name for name in by_question if pair.strata[name] == "same answer"]
    assert 0 < len(same) <= 5 and all(by_question[name] == 1 for name in same)
    assert all(by_question[name] == 2 for name in by_question if name not in same and not _fails(pair, name))
    assert 28 <= len(asked.answers) <= 30
    assert asked == pair.ask(30) != pair.ask(30, seed=1)


def _fails(pair: LabelledPair, name: str) -> bool:
    return any(one.side.missing for one in pair.answers[name])


def test_a_larger_draw_goes_on_with_a_smaller_one(comparison):
    pair = labelled_pair(comparison)
    few, more = (set(pair.ask(n).answers) for n in (20, 60))
    assert len(few - more) <= 2  # where the shares of strata are rounded


def test_every_question_of_a_stratum_is_as_likely(comparison):
    pair = labelled_pair(comparison)
    counts: dict[str, int] = dict.fromkeys(pair.answers, 0)
    for seed in range(300):
        for name in {key[0] for key in pair.ask(30, seed).answers}:
            counts[name] += 1
    for stratum in set(pair.strata):
        of_stratum = [
            counts[name] for name, where in pair.strata.items() if where == stratum and not _fails(pair, name)
        ]
        mean = sum(of_stratum) / len(of_stratum)
        assert max(abs(count - mean) for count in of_stratum) < 5 * (mean**0.5 + 1)


def test_judge_labels_and_both_stand_in_the_report(comparison):
    every = rate(comparison, labelled_pair(comparison), 200).rated
    assert every is not None
    # 1 - 0 on every third question that differs, 0 elsewhere, and what failed under one variant alone.
    labels = every.labels[every.strata != "same answer"]
    truth = (labels[OTHER] - labels[BASE]).sum() / len(every.answers)
    assert every.corrected(weight=0.0).mean == pytest.approx(truth) and truth > 0.1
    (comparison.run.path / LABELS_FILE).unlink()
    rated = rate(comparison, labelled_pair(comparison), 60)
    pair = rated.rated
    assert pair is not None
    both, alone = pair.corrected(), pair.corrected(weight=0.0)
    assert both.low is not None and both.high is not None and alone.low is not None
    assert both.low < truth < both.high
    (table,) = named_tables(rated)["labels"]
    by = [(row[0], row[1]) for row in table.rows]
    assert by[0] == ("ragas.semantic_similarity alone", "difference")
    assert by[1:3] == [("labels alone", "difference"), ("labels and judge", "difference")]
    assert ("labels alone", rated.called(OTHER)) in by
    page = to_html(rated)
    assert "What people found good" in page and "ratings by anna" in page
    assert any(
        "find B (rerank.name=query_likelihood) better" in one or "do not settle" in one for one in pair.sentences
    )


def test_ratings_that_nobody_drew_are_counted_and_correct_nothing(comparison):
    pair = labelled_pair(comparison)
    for place, name in enumerate(list(pair.answers)[15:40]):
        for shown in pair.answers[name]:
            made = (BEGAN + timedelta(seconds=place)).isoformat()
            add_record(comparison.run.path, AnswerLabel(*shown.key, "up", "ben", made))
    read = read_comparison(comparison.run.path).rated
    assert read is not None and len(read.read[0]) > 30
    assert read.corrected(weight=0.0).low is None
    assert any("All " in one and "of ben are up" in one for one in read.sentences)


def test_what_is_wrong_in_a_file_of_labels_is_named_and_the_rest_counts(comparison):
    rated = rate(comparison, labelled_pair(comparison), 40)
    path = rated.run.path
    first = labelled_pair(rated).ask(40).answers[0]
    add_record(path, AnswerLabel("q_of_another_run", "abc", "up", "anna", BEGAN.isoformat()))
    for seconds, rating in ((100, "down"), (101, "up")):
        made = (BEGAN + timedelta(seconds=seconds)).isoformat()
        add_record(path, AnswerLabel(*first, rating, "anna", made))  # type: ignore[arg-type]
    with (path / LABELS_FILE).open("a") as file:
        file.write('{"question_id": "q1"}\n')
    pair = read_comparison(path).rated
    assert pair is not None
    text = " ".join(pair.sentences)
    assert "1 rating of answers that these variants did not give: not counted." in text
    assert "rated twice by one person, the other way: the last one counts." in text
    assert "labels.jsonl, line 44 is no rating" in text
    assert pair.corrected().n_labelled == rated.rated.corrected().n_labelled  # type: ignore[union-attr]


def test_two_people_are_averaged_and_their_agreement_stands_there(comparison):
    pair = labelled_pair(comparison)
    rate(comparison, pair, 40)
    rated = rate(comparison, pair, 40, by="ben", bad=2)
    assert rated.rated is not None
    n_twice = len(pair.ask(40).answers)
    assert "by anna and ben" in rated.rated.sentences[0]
    assert f"Krippendorff's alpha of {n_twice} answers that several rated: 0." in rated.rated.sentences[1]
    assert (rated.rated.labels == 0.5).any(axis=None)


def test_an_answer_that_was_not_given_is_a_bad_one_and_is_not_asked_for(comparison):
    name = labelled_pair(comparison).ask(30).answers[0][0]
    path = comparison.run.variant_dir(BASE) / "traces.jsonl"
    failed = [replace(t, answer=None, stages=()) if t.question.question_id == name else t for t in read_traces(path)]
    write_traces(path, failed)
    pair = labelled_pair(read_comparison(comparison.run.path))
    if name in pair.answers:  # it was to answer, and failed
        assert pair.labels[BASE][name] == 0.0
    assert all(not one.side.missing for key in pair.ask(60).answers for one in pair.answers[key[0]] if one.key == key)


def test_a_run_without_answers_says_so(tmp_path):
    run = build_unlabelled(tmp_path / "run", 5, 2)
    for name in (plan.variant_id for plan in run.variants):
        write_traces(run.variant_dir(name) / "traces.jsonl", [replace(t, answer=None) for t in run.traces(name)])
    with pytest.raises(ConfigError, match="has no two variants, the baseline among them, with answers"):
        labelled_pair(read_comparison(run.path))
    assert read_comparison(run.path).rated is None
