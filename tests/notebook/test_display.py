from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hostile_text import EVIL, controls_in
from run_folder_fixture import HOSTILE, build_run

from rag_lab.errors import RagLabError
from rag_lab.notebook.display import question_html, rankings, show_question, texts_table
from rag_lab.records import Answer, Citation, Evidence, Hit, Passage, Question, StageRecord, Trace
from rag_lab.redaction import NO_FORMULAS
from rag_lab.report.shown_comparison import compare
from rag_lab.stages.steps import stage_name


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_run(tmp_path_factory.mktemp("display") / "run").path


def test_every_stage_result_is_shown(run_dir: Path) -> None:
    trace = compare(run_dir).traces["query.hyde-always"][3]
    shown = trace._repr_html_()
    for text in ("the weather in Bonn", "refused the rewrite", "A manual would say", "cosine", "RRF", "[1]", "85 Nm"):
        assert text in shown
    assert all(stage_name(record.stage) in shown for record in trace.stages)
    assert "fallback" in shown and "the rewrite drifted" in shown


def test_an_answer_of_the_packaged_model_says_that_a_toy_wrote_it() -> None:
    def shown(model: str) -> str:
        return (
            Trace(Question("q", "Why?"), answer=Answer("So."), stages=(StageRecord("generate", model=model),))
        )._repr_html_()

    assert "A toy model wrote this" in shown("llamacpp:smollm2")
    assert "toy" not in shown("gemini:gemini-2.5-flash") + shown("")


def test_a_question_stands_with_all_variants(run_dir: Path) -> None:
    comparison = compare(run_dir)
    shown = question_html(run_dir, "q002")
    assert shown == question_html(comparison, "q002")
    assert all(plan.label in shown for plan in comparison.variants)


def test_an_unknown_question_is_one_sentence(run_dir: Path) -> None:
    with pytest.raises(RagLabError, match="Unknown question 'q02'.*did you mean .*'q002'"):
        question_html(run_dir, "q02")


def test_show_displays_html(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("IPython.display.display", lambda html: shown.append(html.data))
    show_question(run_dir, "q001")
    assert [text.lstrip().startswith(f'<div class="rl {NO_FORMULAS}">') for text in shown] == [True]


def test_texts_stand_whole_and_do_nothing() -> None:
    long, hostile = "word " * 100 + "end", "<img src=http://evil.example/x.png onerror=alert(1)>\x1b[2J"
    frame = pd.DataFrame({"text": [long, hostile, None], "<b>": [0.123456, 1.0, float("nan")]}, index=[5, 5, 7])
    page = texts_table(frame)._repr_html_()
    assert long in page
    assert "<img" not in page and "&lt;img src=http://evil.example" in page and "\x1b" not in page
    assert "<b>" not in page and "&lt;b&gt;" in page
    assert "0.123<" in page and "0.1234" not in page
    assert page.count("–") == 2
    assert f'class="{NO_FORMULAS}"' in page


TEXT = "Check the seal.\n" * 30 + "Tighten the ram bolts to 85 Nm, crosswise."
QUOTE = TEXT.index("85 Nm")
EVIDENCE = Evidence("a.md", None, "85 Nm", QUOTE, QUOTE + 5)


def hit(source: str, score: float, **scores: float) -> Hit:
    return Hit(f"{source}#0", f"{source}#0/0", source, None, 0, len(TEXT), score, scores)


FIRST, SECOND = hit("b.md", 0.7, dense=0.7), hit("a.md", 0.6, dense=0.6)
TRACE = Trace(
    question=Question("q1", "How tight?", answers=("85 Nm",), evidence=(EVIDENCE,)),
    query_class="specific",
    search_query="torque of the ram bolts",
    hits={"dense": (FIRST, SECOND)},
    base_hits=(FIRST, SECOND),
    candidates=(FIRST, SECOND),
    ranked=(replace(SECOND, score=-1.5, scores={"dense": 0.6, "cross_encoder": -1.5}),
            replace(FIRST, score=-4.0, scores={"dense": 0.7, "cross_encoder": -4.0})),
    passages=(Passage(1, "a.md#0", "a.md", None, 0, len(TEXT), TEXT),),
    answer=Answer("85 Nm [1].", (Citation(1, "a.md", None, "85 Nm"),)),
    stages=(
        StageRecord("rephrase", reason="off"),
        StageRecord("rerank", seconds=1.25),
        StageRecord("generate", seconds=2.5, tokens_in=1200, tokens_out=20),
    ),
    texts={FIRST.span: TEXT, SECOND.span: TEXT},
)  # fmt: skip


def without_reranking(trace: Trace) -> Trace:
    off = StageRecord("rerank", reason="off")
    stages = tuple(off if record.stage == "rerank" else record for record in trace.stages)
    return replace(trace, ranked=trace.candidates, stages=stages)


def test_a_ranking_shows_its_passages_with_their_text_and_the_evidence_marked() -> None:
    shown = TRACE._repr_html_()
    assert shown.count("<mark>85 Nm</mark>") >= 2  # in the line that stands for the passage, and in its text
    assert "Check the seal." in shown and "b.md" in shown
    assert " Check the seal. Check the seal …" in str(TRACE) and "85 Nm, crosswise." in str(TRACE)


def test_a_reranker_s_ranking_says_where_each_passage_stood_before() -> None:
    (final, *_) = rankings(TRACE)
    assert [final.rank_before(one) for one in final.hits] == [2, 1]
    shown = TRACE._repr_html_()
    assert "Ranked, after reranking: 2" in shown and ">2 ▲<" in shown and ">1 ▼<" in shown
    assert "cross-encoder" in shown and "as the reranker reads both together" in shown


def test_what_is_switched_off_is_said_to_be_off() -> None:
    shown = without_reranking(TRACE)._repr_html_()
    assert "Other phrasings, Reranking" in shown
    assert "not reranked" in shown and ">Before<" not in shown
    assert "Off             Other phrasings, Reranking" in str(without_reranking(TRACE))


def test_a_list_that_is_the_same_as_an_earlier_one_is_told_once() -> None:
    assert [ranking.title for ranking in rankings(TRACE)] == ["Ranked, after reranking", "Candidates"]
    assert len(rankings(without_reranking(TRACE))) == 1


def test_scores_are_columns_and_never_raw_dicts() -> None:
    for shown in (TRACE._repr_html_(), str(TRACE)):
        assert "{'" not in shown and "{&#39;" not in shown
    assert "−1.500" in TRACE._repr_html_() and "0.600" in TRACE._repr_html_()


def test_the_sum_that_orders_a_ranking_has_a_column_where_no_step_gave_it() -> None:
    summed = replace(TRACE, ranked=tuple(replace(one, score=2.0) for one in TRACE.ranked))
    (final, *_) = rankings(summed)
    assert [name.short for _, name in final.scores] == ["cosine", "cross-encoder", "sum"]


def test_seconds_and_tokens_are_added_up() -> None:
    shown = TRACE._repr_html_()
    assert "<b>3.75</b>" in shown and "<b>1,200</b>" in shown
    assert "Generation 2.50 s, 1,200 + 20 tokens" in str(TRACE)


def test_thinking_is_folded_away_and_its_tokens_stand_apart() -> None:
    *before, generate = TRACE.stages
    assert generate.stage == "generate"
    thought = replace(generate, tokens_out=520, thinking_tokens=500)
    done = replace(TRACE, stages=(*before, thought), raw_text="<think>bar or psi</think>{}")
    for trace in (replace(done, answer=replace(done.answer, thinking="bar or psi")), replace(done, answer=None)):
        shown = trace._repr_html_()
        assert "<details><summary>Thinking (500 tokens)</summary>" in shown
        assert "bar or psi" in shown and "<details open" not in shown
        assert "500 thinking" in shown
        assert "1,200 + 520 tokens, 500 of them thinking" in str(trace)


def test_what_a_model_did_not_read_stands_beside_its_stage() -> None:
    cut = StageRecord("rerank", seconds=0.0, truncated_tokens=1292)
    trace = Trace(Question("q", "?"), stages=(StageRecord("merge", seconds=0.0), cut))
    assert "Reranking 0.000 s, 1,292 tokens not read" in " ".join(str(trace).split())
    assert "1,292 not read" in trace._repr_html_()


def test_a_failure_stands_at_the_top() -> None:
    failed = StageRecord("generate", "failed", "the server was down")
    broken = replace(TRACE, answer=None, stages=(*TRACE.stages[:2], failed))
    assert "Generation: the server was down" in broken._repr_html_()
    assert "Failed          Generation: the server was down" in str(broken)


def test_a_trace_without_texts_shows_what_the_reader_read() -> None:
    bare = replace(TRACE, texts={})
    assert bare == TRACE  # what hits say is in the index, and no part of what happened
    assert bare.text(SECOND) == TEXT and bare.text(FIRST) == ""
    assert "<mark>85 Nm</mark>" in bare._repr_html_() and "b.md" in bare._repr_html_()


@pytest.mark.parametrize("evil", [EVIL, HOSTILE])
def test_hostile_text_stays_text(evil: str) -> None:
    place = Hit("p", "c", evil, None, 0, len(evil), 1.0, {evil: 1.0})
    trace = Trace(
        question=Question(evil, evil, answers=(evil,), evidence=(Evidence(evil, None, evil, 0, len(evil)),)),
        proposed_query=evil, search_query=evil, phrasings=(evil,), hypothetical=evil, hits={evil: (place,), "x": ()},
        base_hits=(place,), ranked=(place,), passages=(Passage(1, "p", evil, None, 0, len(evil), evil),), prompt=evil,
        raw_text=evil, answer=Answer(evil, (Citation(1, evil, None, evil),), (evil,), evil),
        stages=(StageRecord(evil, "fallback", evil), StageRecord("rewrite", "fallback", evil)),
        texts={place.span: evil},
    )  # fmt: skip
    shown = trace._repr_html_()
    assert "<script" not in shown and "<img" not in shown
    assert controls_in(shown) == [] == controls_in(str(trace))


def test_a_terminal_of_100_columns_shows_every_trace(tmp_path: Path) -> None:
    traces = compare(build_run(tmp_path / "run", 12, 6).path).traces
    for trace in (TRACE, Trace(Question("q", "Why?")), *(trace for some in traces.values() for trace in some)):
        assert max(map(len, str(trace).splitlines())) <= 100
