from __future__ import annotations

from dataclasses import replace

from rag_lab.comparison.advice.set_apart import set_apart, set_apart_sentences
from rag_lab.comparison.comparison import Comparison
from rag_lab.report.page.report_page import to_html
from rag_lab.report.text.markdown import to_markdown

ANSWERS = "ragas.semantic_similarity"
WHY = "5 of 40 questions: no answer was asked for (35); 5 are answered, as `limits.answers` says"


def _with_few_answers(wide: Comparison) -> Comparison:
    """Return the run as it would be if only its first five questions were answered."""
    few = wide.run.questions[:5]
    is_answer = (wide.summary["metric"] == ANSWERS) & (wide.summary["scored"] > 0)
    summary = wide.summary.copy()
    summary.loc[is_answer, ["asked", "scored", "not_applicable"]] = [40, 5, 35]
    gap = wide.gaps.head(1).assign(variant_id="baseline", metric=ANSWERS, status="not_applicable", count=35)
    gaps = gap.assign(reason="no answer was asked for")
    return replace(wide, run=replace(wide.run, answered=few), summary=summary, gaps=gaps)


def test_a_metric_on_few_of_the_questions_stands_apart_with_the_reason(wide: Comparison) -> None:
    assert set_apart(wide) == {}
    few = _with_few_answers(wide)
    assert set_apart(few) == {ANSWERS: WHY}
    page = to_html(few)
    first, apart = page.index('<table class="scores">'), page.index('<table class="scores pale">')
    assert ANSWERS.replace(".", ".<wbr>") not in page[first : page.index("</table>", first)].replace("_<wbr>", "_")
    assert "no answer was asked for (35); 5 are answered, as <code>limits.answers</code> says." in page[first:apart]
    assert "Measured on few of the questions:\n\n- ragas.semantic\\_similarity: 5 of 40" in to_markdown(few)


def test_the_main_metric_never_stands_apart_and_metrics_share_a_reason(wide: Comparison) -> None:
    few = _with_few_answers(wide)
    turned = replace(few, quality_metrics=(ANSWERS, *(m for m in few.quality_metrics if m != ANSWERS)))
    assert ANSWERS not in set_apart(turned)
    assert set_apart_sentences({"a": WHY, "b": WHY}) == [f"a, b: {WHY}."]
