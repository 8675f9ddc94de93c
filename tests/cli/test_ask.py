"""`rag-lab ask` on a small dataset, with an embedder that costs nothing and no model that answers."""

import io
import sys

import pytest
from small_dataset import write_dataset

from rag_lab.data.dataset import Dataset
from rag_lab.models import shared
from rag_lab.stages import run_stage
from rag_lab.testing import HashEmbedder, ScriptedChat

RETRIEVAL_ALONE = ("--set", "answer.name=none")


@pytest.fixture
def ask(monkeypatch, rag_lab, tmp_path):
    monkeypatch.setattr(shared, "embedder", lambda spec: HashEmbedder())
    dataset = write_dataset(tmp_path)
    (dataset / "attributes.yaml").write_text("- {files: 'notes/*', namespace: plant, permissions: [staff]}\n")
    return lambda *arguments: rag_lab("ask", "--dataset", dataset, *RETRIEVAL_ALONE, *arguments)


def test_passages_come_with_their_place_and_nothing_that_may_not_be_seen(ask):
    everything, of_nobody = (ask("What is there?", *rights)[1] for rights in ([], ["--may-see", ""]))
    assert "notes/" in everything and everything.startswith("[1] ")
    assert "notes/" not in of_nobody and of_nobody.startswith("[1] ")


def test_who_asks_does_not_learn_which_namespaces_there_are(ask):
    """One that is not there, and one that this asker may not see, are the same."""
    not_there = ask("What is there?", "--namespace", "plan")
    closed = ask("What is there?", "--namespace", "plant", "--may-see", "")
    assert not_there[:2] == closed[:2] == (2, "")
    assert not_there[2].splitlines()[-1] == closed[2].splitlines()[-1]
    assert "no document that this asker may see" in closed[2] and "plant" not in not_there[2]


def test_passages_that_do_not_fit_are_told_from_nothing_found(ask):
    assert "does not fit the budget" in ask("What is there?", "--set", "answer.context_bytes=1")[1]
    assert "nothing was found" in ask("What is there?", "--set", "retrieval.min_score=9")[1]


def test_an_answer_of_the_packaged_model_says_that_a_toy_wrote_it_and_what_to_set(ask, monkeypatch):
    script = ScriptedChat(lambda request: '{"answer": "40 bar", "citations": [1]}')
    asked = []
    monkeypatch.setattr(shared, "chat_model", lambda name, *_: asked.append(name) or script)
    monkeypatch.setattr(run_stage, "spec_of", lambda _: asked[-1])  # a double is known by no name
    _, out, err = ask("What is there?", "--set", "answer.name=llm")
    assert out.startswith("40 bar\n[1] ")
    assert "A toy model wrote this" in err and "--set models.generation=" in err
    assert (
        "toy" not in ask("What is there?", "--set", "answer.name=llm", "--set", "models.generation=llamacpp:x.gguf")[2]
    )
    assert "toy" not in ask("What is there?")[2]  # nothing was written: passages alone


def test_the_passage_that_answers_is_named_by_number_and_becomes_a_label(ask, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdin", io.StringIO("1, 2\n"))
    status, out, _ = ask("When is lunch?", "--label")
    assert status == 0 and "[1] " in out and "The label stands in" in out
    labelled = Dataset.load(tmp_path / "small").questions[-1]
    assert (labelled.text, labelled.question_id, len(labelled.evidence)) == ("When is lunch?", "q5", 2)
    assert all(item.quote for item in labelled.evidence)


MANUAL = "\n".join(
    ["# Press P-12", "", *(f"Step {n} is done by the shift that is there, and it is signed for." for n in range(60))]
    + ["", "Bolt  Torque  Tool", "Ram bolts  900 Nm  TM-5", "Tie rods  1,980 Nm  TM-5", "", "Sign the sheet."]
)


def test_passages_stand_on_one_screen_and_the_row_that_answers_is_the_label(ask, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setenv("LINES", "30")
    (tmp_path / "small" / "corpus" / "manual.md").write_text(MANUAL)
    monkeypatch.setattr(sys, "stdin", io.StringIO("1\n"))
    words = ("--set", "retrieval.mode=bm25", "--set", "corpus.parent_size=9000")
    status, out, _ = ask("Which torque for the tie rods?", "--label", *words)
    assert status == 0 and len(out.splitlines()) < 30
    first = out[out.rindex("[1] manual.md") :].splitlines()[1:4]
    assert first == ["    Ram bolts 900 Nm TM-5", "  > Tie rods 1,980 Nm TM-5", "    Sign the sheet."]
    (evidence,) = Dataset.load(tmp_path / "small").questions[-1].evidence
    assert evidence.quote == "Tie rods  1,980 Nm  TM-5"


def test_all_sentences_of_a_passage_can_be_listed_and_one_taken(ask, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdin", io.StringIO("1.\n1.2\n"))
    status, out, _ = ask("When is lunch?", "--label")
    listed = next(line for line in out.splitlines() if "1.2  " in line)
    (evidence,) = Dataset.load(tmp_path / "small").questions[-1].evidence
    assert status == 0 and " ".join(evidence.quote.split()) == listed.partition("1.2  ")[2]


def test_what_names_no_passage_writes_no_label(ask, monkeypatch, tmp_path):
    before = (tmp_path / "small" / "questions.jsonl").read_bytes()
    for typed, said in (("\n", "No label was written."), ("0 1\n", "type numbers from 1"), ("99\n", "type numbers")):
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        status, out, err = ask("When is lunch?", "--label")
        assert said in out + err and (status == 0) is (typed == "\n")
    assert (tmp_path / "small" / "questions.jsonl").read_bytes() == before


def test_a_setting_that_nothing_reads_is_named_with_what_lets_it_be_read(ask):
    err = ask("What is there?", "--set", "answer.name=extract", "--set", "models.generation=llamacpp:smollm2",
              "--set", "query.hyde_n=2")[2]  # fmt: skip
    assert "Note: Nothing reads query.hyde_n where query.hyde is none." in err
    assert "Nothing reads models.generation where answer.name is extract; set answer.name=llm to ask the model." in err
    assert "Nothing reads" not in ask("What is there?", "--set", "retrieval.base_k=5")[2]
