"""Whatever people look at shows itself: in a notebook, in IPython's terminal and by `print`."""

from __future__ import annotations

from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from rag_lab.records import Question, Trace

SHOWN = [Trace(Question("q1", "How tight?")), Question("q1", "How tight?")]


@pytest.mark.parametrize("thing", SHOWN, ids=lambda thing: type(thing).__name__)
def test_it_is_a_page_in_a_notebook_and_lines_in_a_terminal(thing: Any) -> None:
    found, _ = InteractiveShell.instance().display_formatter.format(thing)
    assert found["text/html"].lstrip().startswith('<div class="rl">')
    assert found["text/plain"] == str(thing)
    assert max(map(len, str(thing).splitlines())) <= 100


def test_a_value_keeps_the_repr_that_makes_it_again() -> None:
    question = Question("q1", "How tight?")
    assert eval(repr(question)) == question
