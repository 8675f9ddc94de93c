"""`rag-lab questions draft`: the whole way on a server on loopback, and what it says where there is nothing to do."""

import json

import pytest
from loopback_models import Scripted, openai_server
from scripted_writer import FILES, scripted, write_folder

from rag_lab.models.protocols import ChatRequest, Message

FAST = ("--set", "retrieval.mode=bm25")


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    chat = scripted()

    def reply(body):
        messages = tuple(Message(one["role"], one["content"]) for one in body["messages"])
        return chat.generate([ChatRequest(messages)])[0].text

    with openai_server(reply) as server:
        yield server


@pytest.fixture
def docs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def spec(server):
    return f"openai:scripted?base_url={server.url}"


def test_from_a_folder_of_documents_to_a_set_that_can_be_checked(rag_lab, server, docs):
    arguments = ("questions", "draft", docs, "--out", "mine", "--model", spec(server), "--yes", *FAST)
    status, out, err = rag_lab(*arguments)
    assert status == 0, err
    assert "5 places in 4 files" in err and "At most " in err and "draft 6" in err
    assert "near_duplicates" in out and "drafts stood." in out and "2508.11758" in out
    assert "05_own_questions" in err and "rag-lab datasets check mine" in err
    n_calls = len(server.bodies)
    for same in (arguments, ("questions", "draft", "mine", *arguments[5:])):
        status, again, _ = rag_lab(*same)
        assert (status, again, len(server.bodies)) == (0, out, n_calls)
    assert " 0 problems" in " ".join(
        rag_lab("datasets", "check", "mine")[1].replace("problems      0", "0 problems").split()
    )


def test_a_dry_run_counts_the_calls_and_makes_none(rag_lab, server, docs):
    status, out, err = rag_lab("questions", "draft", docs, "--out", "mine", "--model", spec(server), "--dry-run", *FAST)
    assert status == 0 and "At most " in err and out == ""
    assert server.bodies == [] and not (docs.parent / "mine").exists()


def test_a_model_that_writes_nonsense_is_told_and_leaves_the_questions_alone(rag_lab, docs, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    folder = write_folder(docs.parent / "set")
    (folder / "questions.jsonl").write_text('{"question": "Mine?"}\n')
    with openai_server(lambda body: "Sure! Here is a question.") as server:
        status, out, err = rag_lab("questions", "draft", folder, "--model", spec(server), "--yes", *FAST)
    assert status == 2
    assert "0 of 6 drafts stood; openai:scripted" in err and "cannot write questions" in err
    assert "--by-hand" in err and "--set" not in err
    assert (folder / "questions.jsonl").read_text() == '{"question": "Mine?"}\n'
    assert "written" in out


def test_a_server_that_never_replies_is_no_bad_writer(rag_lab, docs, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with openai_server(lambda body: Scripted(status=400, raw="out of order")) as server:
        status, _, err = rag_lab("questions", "draft", docs, "--out", "mine", "--model", spec(server), "--yes", *FAST)
    assert status == 2 and "No draft could be written: " in err and "cannot write questions" not in err


@pytest.mark.slow
def test_the_packaged_model_cannot_write_questions(rag_lab, docs):
    folder = write_folder(docs.parent / "set")
    status, _, err = rag_lab("questions", "draft", folder, "--model", "llamacpp:smollm2", "--n", 1, "--yes", *FAST)
    assert status == 2 and "0 of 1 drafts stood; llamacpp:smollm2 cannot write questions. " in err


def test_by_hand_lists_places_and_asks_no_model(rag_lab, docs):
    folder = write_folder(docs.parent / "set")
    status, out, _ = rag_lab("questions", "draft", folder, "--by-hand", *FAST)
    assert status == 0 and "places worth asking about" in out
    assert len([json.loads(line) for line in (folder / "places.jsonl").read_text().splitlines()]) >= 5


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("docs", "--model", "openai:x"), "docs is no data set yet; give --out mine"),
        (("docs",), "Name the model that writes by --model, or give --by-hand."),
        (("docs", "--model", "nobody:x", "--out", "mine"), "nobody"),
        (("nowhere", "--model", "openai:x"), "nowhere"),
    ],
)
def test_what_is_missing_is_one_sentence(rag_lab, docs, arguments, sentence):
    status, _, err = rag_lab("questions", "draft", *arguments)
    assert status == 2 and sentence in err and not (docs.parent / "mine").exists()
