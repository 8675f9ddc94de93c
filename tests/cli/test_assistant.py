"""`rag-lab chat`: answers appear while they are written, once, and steer no terminal."""

import io
import json
import sys

from loopback_models import Scripted, openai_server


def test_an_answer_stands_once_with_its_citations_and_steers_no_terminal(rag_lab, tmp_path, monkeypatch):
    corpus = tmp_path / "manuals"
    corpus.mkdir()
    (corpus / "press.txt").write_text("The press runs at 140 bar.")
    reply = json.dumps({"answer": "It runs at 140 bar, \u001b[2J at most.", "citations": [1]})
    monkeypatch.setattr(sys, "stdin", io.StringIO("How does the press run?\n/thinking\n/again\n\n"))
    with openai_server(lambda body: Scripted(reply, thinking="Press\u001b[2J first.")) as server:
        model = f"models.generation=openai:tiny?base_url={server.url}"
        options = ["--set", "answer.name=llm", "--set", model, "--set", "retrieval.mode=bm25"]
        code, out, _ = rag_lab("chat", "--dataset", corpus, *options)
    assert [body.get("stream") for body in server.bodies] == [True]
    assert (code, out.count("It runs at 140 bar"), out.count("(the same answer as before)")) == (0, 2, 1), out
    assert "\x1b" not in out
    assert out.count("Press") == 1 and "first.\n" in out, out
    assert out.count("at most.\n[1] press.txt\n") == 2, out


def test_again_says_which_passages_a_setting_brought_and_took(rag_lab, tmp_path, monkeypatch):
    corpus = tmp_path / "manuals"
    corpus.mkdir()
    for name in ("press", "oven"):
        (corpus / f"{name}.txt").write_text(f"The {name} runs at 140 bar.")
    monkeypatch.setattr(sys, "stdin", io.StringIO("What runs at 140 bar?\n/set rerank.final_k=1\n/again\n\n"))
    options = ["--set", "answer.name=none", "--set", "retrieval.mode=bm25", "--set", "query.rewrite=none"]
    code, out, _ = rag_lab("chat", "--dataset", corpus, *options)
    assert (code, "(of the passages that are read, 0 came and 1 went)" in out) == (0, True), out
