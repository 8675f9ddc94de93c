"""Bodies sent to models, pages, exports and labels hold nothing that the asker may not see."""

import json
import re
from itertools import product

import pytest
from access_corpus import BASE, ask, models, name_of, write_corpus
from loopback_models import openai_server, rerank_server
from test_access_report import OWNED, RIGHTS, VARIANTS, asked, seen, write_run

from rag_lab.access import may_see
from rag_lab.config import PipelineConfig
from rag_lab.corpus.corpus_index import open_index
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.ragas_metrics import SPECS
from rag_lab.experiment.bundle import export_run
from rag_lab.models import shared
from rag_lab.notebook.judgements import label
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question
from rag_lab.report.page import question_pages, report_page
from rag_lab.runs.run_folder import RunFolder
from rag_lab.testing import HashEmbedder

__all__ = ["asked", "models"]  # fixtures

JUDGED = [f"ragas.{name}" for name, spec in SPECS.items() if "judge" in spec.models]


def visible_to(question):
    return {number for number, attributes in enumerate(OWNED) if may_see(question, *attributes)}


def parrot(body):
    """Say everything that was sent, in whatever shape was asked for."""
    told = " ".join(message["content"] for message in body["messages"][1:])
    known = {"class": "fuzzy", "rewritten": "press bar oven", "hyde": True, "phrasings": ["oven press", "bar of press"]}
    return json.dumps(known | {"answer": told, "citations": list(range(1, 30))})


@pytest.mark.slow
def test_no_server_of_a_model_is_sent_what_the_asker_may_not_see(tmp_path):
    corpus = write_corpus(tmp_path, OWNED)
    changes = {"query.rewrite": "llm", "query.hyde": "always", "query.phrasings": 2, "rerank.name": "cross_encoder"}
    with openai_server(parrot) as chat, rerank_server(most_tokens=10_000) as rerank:
        spec = f"openai:tiny?base_url={chat.url}"
        models = {f"models.{role}": spec for role in ("understanding", "hyde", "generation")}
        models["models.cross_encoder"] = f"vllm:tiny?base_url={rerank.url}"
        config = PipelineConfig().override(BASE | changes | models | {"answer.context_tokens": 100_000})
        index = open_index(corpus, config.corpus, HashEmbedder(), home=tmp_path / "home", store=config.store)
        pipeline = Pipeline.on(index, HashEmbedder(), config)
        for question in (ask(*asker) for asker in product(RIGHTS, [None, "north"])):
            chat.bodies.clear()
            rerank.bodies.clear()
            traces = pipeline.run([question])
            assert traces[0].failure is None
            assert seen(json.dumps(rerank.bodies)) == seen(json.dumps(chat.bodies)) == visible_to(question)
        question = ask(("staff",))
        traces = pipeline.run([question])
        chat.bodies.clear()
        evaluate(traces, JUDGED, judge=shared.chat_model(spec), embedder=HashEmbedder())
        assert seen(json.dumps(chat.bodies)) == visible_to(question) != set()


def test_pages_of_questions_and_exported_rankings_hold_what_each_asker_may_see(models, tmp_path, asked, monkeypatch):
    monkeypatch.setattr(question_pages, "MOST_CHARS", 1000)
    run = write_run(tmp_path / "run", write_corpus(tmp_path, OWNED), asked, tmp_path / "home")
    report_page.write_report(run)
    assert not seen((run / "report.html").read_text())
    export_run(RunFolder.open(run), tmp_path / "trec")
    lines = [line for path in (tmp_path / "trec").iterdir() for line in path.read_text().splitlines()]
    for question in asked:
        assert seen((run / "questions" / f"q-{question.question_id}.html").read_text()) == visible_to(question)
        exported = "\n".join(line for line in lines if re.match(rf"{question.question_id}\b", line))
        assert seen(exported) == visible_to(question)
    assert len(list((tmp_path / "trec").iterdir())) == 2 + len(VARIANTS)


def test_a_label_of_one_asker_is_not_shown_to_another_who_asks_the_same(models, tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "embedder", lambda spec: HashEmbedder())
    write_corpus(tmp_path, [("", ("staff",)), *[("", ())] * 4])
    open_to_all, limited = (Question("", "What is the bonus?", may_see=held) for held in (None, ()))
    lines = [{"id": "q1", "question": "What is the bonus?", "answers": ["85 marker0end"]}]
    lines[0]["evidence"] = [{"source": name_of(0), "quote": "says marker0end"}]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    pipeline = Pipeline(tmp_path, PipelineConfig().override({"retrieval.mode": "bm25"}))
    assert 0 in seen(label(pipeline, open_to_all).to_html())
    shown = label(pipeline, limited)
    assert 0 not in seen(shown.to_html()) and not shown.labelled
    shown.answer("nobody says")
    assert [json.loads(line)["answers"] for line in (tmp_path / "questions.jsonl").read_text().splitlines()] == [
        ["85 marker0end"],
        ["nobody says"],
    ]


def test_a_reference_answer_goes_with_the_evidence_that_its_asker_may_not_see(models, tmp_path):
    corpus = write_corpus(tmp_path, [("", ("staff",)), *[("", ())] * 4])
    config = PipelineConfig().override(BASE)
    index = open_index(corpus, config.corpus, HashEmbedder(), home=tmp_path / "home", store=config.store)
    pipeline = Pipeline.on(index, HashEmbedder(), config)
    answers = {held: pipeline.run([ask(held)])[0].question.answers for held in ((), ("staff",))}
    assert answers == {(): (), ("staff",): ("2",)}
