import pytest

from rag_lab.experiment.watch.time_left import Left, stage_left_s, sweep_left, variant_left


@pytest.mark.parametrize(
    ("done", "total", "known", "left"),
    [(5, 10, 0, 10.0), (5, 10, 3, 25.0), (5, 10, 5, None), (0, 10, 0, None), (3, None, 0, None), (10, 10, 0, 0.0)],
)
def test_a_stage_goes_on_at_the_pace_of_what_it_has_computed_itself(done, total, known, left):
    assert stage_left_s(done, total, known, 10.0) == left


def test_a_variant_takes_as_long_as_others_did_and_no_less_than_its_stage():
    assert variant_left(10.0, None, []) is None
    assert variant_left(10.0, 4.0, []) == Left(4.0, None)
    assert variant_left(10.0, None, [20.0, 40.0]) == Left(10.0, 30.0)
    assert variant_left(10.0, 15.0, [20.0, 40.0]) == Left(15.0, 30.0)
    assert variant_left(50.0, None, [20.0, 40.0]) == Left(0.0, None)  # slower than all: nobody knows by how much
    assert variant_left(30.0, 15.0, [20.0, 40.0]) == Left(15.0, None)


def test_a_sweep_takes_its_work_divided_by_the_jobs():
    assert sweep_left([], 0, 1, [5.0], None) == Left(0.0, 0.0)
    assert sweep_left([], 1, 1, [10.0], None) == Left(5.0, 20.0)  # one alone tells little
    assert sweep_left([Left(10.0, 30.0)], 2, 1, [20.0, 40.0], None) == Left(50.0, 110.0)
    two = sweep_left([Left(10.0, 30.0), Left(0.0, 10.0)], 2, 2, [20.0, 40.0], None)
    assert two == Left(25.0, 100.0)
    assert sweep_left([Left(10.0, None)], 1, 1, [20.0, 40.0], None) == Left(30.0, None)


def test_before_one_has_ended_the_bill_tells_within_a_factor_of_two_or_nobody():
    assert sweep_left([None], 3, 2, [], 100.0) == Left(25.0, 200.0)
    assert sweep_left([None], 3, 2, [], None) is None
    assert sweep_left([Left(7.0, None)], 3, 2, [], None) == Left(7.0, None)


def test_it_is_told_in_minutes():
    assert Left(60.0, 150.0).text() == "1.0 min to 2.5 min"
    assert Left(601.0, 601.0).text() == "10 min"
    assert Left(30.0, None).text() == "≥ 0.5 min"
