"""A person rates answers, in Python as by clicks, and goes on where he or she was."""

import pytest
from run_folder_fixture import build_run

import rag_lab
from rag_lab.errors import ConfigError
from rag_lab.runs.human_input import read_asked


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return build_run(tmp_path_factory.mktemp("rated") / "run", 12, 2)


def test_ratings_notes_and_stars_are_kept_and_the_next_answer_is_shown(run):
    page = rag_lab.rate(run.path, n=10, by="anna")
    first = page.now
    page.widget.do({"do": "star", "typed": {"note": "a good example"}})
    page.widget.do({"do": "rate", "value": "up", "typed": {"note": "a good example"}})
    assert page.now != first and page.done == 1
    page.go(-1)
    assert page.now == first and "Rated good." in page.to_html() and "a good example" in page.to_html()
    page.rate("")
    assert page.done == 0
    asked = read_asked(run.path)
    assert asked is not None and asked.n == 10 and [one.key for one in page.answers] == list(asked.answers)
    more = rag_lab.rate(run.path, n=20, by="anna")
    assert len(more.answers) > len(page.answers)
    more.rate("down")
    again = rag_lab.rate(run.path, n=10, by="anna")  # the larger draw stays
    assert len(again.answers) == len(more.answers) and again.done == 1 and again.now != more.now


def test_people_do_not_see_each_other_s_ratings(run):
    rag_lab.rate(run.path, by="carla").rate("down")
    other = rag_lab.rate(run.path, by="dora")
    assert other.done == 0 and "Rated" not in other.to_html()


def test_what_is_no_rating_is_refused(run):
    with pytest.raises(ConfigError, match="sideways"):
        rag_lab.rate(run.path, by="eve").rate("sideways")  # type: ignore[arg-type]
