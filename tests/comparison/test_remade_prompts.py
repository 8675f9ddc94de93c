"""Prompts that no trace holds are made again as the model got them, or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
from html_page import Page
from scripted import HashEmbedder, ScriptedJudge

from rag_lab.comparison.questions.remade_prompts import remade_prompts
from rag_lab.records import Question, Remembered, Trace, Turn
from rag_lab.report.page.report_page import write_report
from rag_lab.stages.query.hyde import Hyde, RouteHyde
from rag_lab.stages.query.rewrite import GuardedRewrite
from rag_lab.stages.query.understand import LlmUnderstanding
from rag_lab.stages.run_stage import run_stage
from rag_lab.stages.stage import Off

UNDERSTOOD = {"class": "fuzzy", "rewritten": "hazard of the odour near tank T1", "hyde": True}
QUESTION = Question("q", "that smell near T1, is it bad?", history=(Turn("user", "I am at tank <T1>."),))


def asked(request) -> str:
    return "\n\n".join(f"{message.role}: {message.content}" for message in request.messages)


def manifest(*stages) -> dict:
    return {"models": {stage.name: [dict(stage.identity())] for stage in stages}}


@pytest.mark.parametrize("routed", [True, False])
def test_what_is_made_again_is_what_the_model_got(routed: bool) -> None:
    model = ScriptedJudge(lambda request: json.dumps(UNDERSTOOD) if request.json_schema else "The odour is sulphide.")
    understand, hyde = LlmUnderstanding(model), Hyde(model, 32)
    route = RouteHyde({"fuzzy": routed})
    traces = [Trace(QUESTION, remembered=Remembered(1, QUESTION.history))]
    for stage in (understand, GuardedRewrite(HashEmbedder(), -1), route, hyde):
        traces = run_stage(stage, traces)
    remade = remade_prompts(manifest(understand, hyde))
    got = [text for stage in ("understand", "hyde") if (text := remade[stage](traces[0]))]
    assert got == [asked(request) for request in model.requests]
    assert len(got) == 1 + routed and "tank <T1>" in got[0]


def test_what_was_not_asked_or_may_have_been_worded_otherwise_is_not_made_again() -> None:
    model = ScriptedJudge(lambda _: json.dumps(UNDERSTOOD))
    understand = LlmUnderstanding(model)
    (off,) = run_stage(Off("understand"), [Trace(QUESTION)])
    assert remade_prompts(manifest(understand))["understand"](off) == ""
    assert remade_prompts({}) == {}
    earlier = dict(understand.identity()) | {"prompts": 0}
    own = {"code": "sha256:ab", "models": []}
    for other in (earlier, own):
        assert remade_prompts({"models": {"understand": [dict(understand.identity()), other]}}) == {}


def test_the_card_shows_them_one_click_away(build: ModuleType, tmp_path: Path) -> None:
    run = build.build_run(tmp_path / "run", 3, 2).path
    path = run / "manifest.json"
    data = json.loads(path.read_text())
    before = write_report(run).read_text()
    path.write_text(json.dumps(data | manifest(LlmUnderstanding(ScriptedJudge(lambda _: "")))))
    html = write_report(run).read_text()
    assert "You prepare questions for a search" not in before
    assert html.count("You prepare questions for a search") == 3
    (_, shown, *_) = html.split("<summary>What the model was sent, word for word</summary>")
    assert shown.startswith('<p class="text raw"><bdi>system: You prepare questions')
    Page(html)
