"""The report writer: its calls, its passages, its citations, and that it goes on where it was."""

import json

import pytest

import rag_lab as rl
from rag_lab.assistant import report_writer
from rag_lab.config import PipelineConfig
from rag_lab.corpus.rules import permissions_of, read_users
from rag_lab.errors import ConfigError, DatasetError, RagLabError
from rag_lab.models.protocols import ChatReply
from rag_lab.pipeline import Pipeline
from rag_lab.testing import HashEmbedder, ScriptedChat

FILES = {
    "press.txt": "The press runs at 140 bar.",
    "oven.txt": "The oven cures at 180 degrees. <b>Hot</b>",
    "secret.txt": "The oven costs 99 euros.",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    corpus = tmp_path / "set" / "corpus"
    corpus.mkdir(parents=True)
    for name, text in FILES.items():
        (corpus / name).write_text(text)
    (corpus.parent / "attributes.yaml").write_text("- {files: secret.txt, permissions: [board]}\n")
    return corpus


def pipeline(folder, model, **settings):
    config = PipelineConfig().override({"retrieval.mode": "bm25", "rerank.final_k": 1} | settings)
    made = Pipeline(folder, config, home=folder.parent / "home", progress=False)
    return made.replace(report_model=model, embedding_model=HashEmbedder())


def outline(*titles):
    return json.dumps({"entries": titles})


def test_a_report_is_an_outline_and_a_draft_and_a_review_for_each_section(folder):
    replies = [
        outline("press bar", "oven degrees"),
        "The press runs at 140 bar [1] [9].", "It runs at 140 bar [1] [9].",
        "The oven cures at 180 degrees [1].", "It cures at 180 degrees [1]. <script>",
    ]  # fmt: skip
    model, seen = ScriptedChat(replies), []
    report = rl.write(pipeline(folder, model), "Machines", parts=3, progress=lambda *done: seen.append(done))
    assert len(model.requests) == report.n_calls == 1 + 2 * 2
    assert (seen[-1][1:], seen[0][1:]) == ((5, 5), (0, 7))
    sent = [request.messages[-1].content for request in model.requests]
    assert "140 bar" in sent[1] and "180 degrees" not in sent[1]
    assert sent[2] == "Report: Machines\nSection: press bar\n\nDraft:\nThe press runs at 140 bar [1] [9]."
    assert [one.text for one in report.sections] == ["It runs at 140 bar [1].", "It cures at 180 degrees [2]. <script>"]
    assert report.sections[0].rejected == ("9",)
    assert [(one.number, one.source) for one in report.sources] == [(1, "press.txt"), (2, "oven.txt")]
    text = report.to_markdown()
    assert text.startswith("TECHNICAL REPORT\nTITLE: Machines\n\n## Contents\n\n1. press bar\n2. oven degrees\n")
    assert text.endswith("## Sources\n\n- [1] press.txt\n- [2] oven.txt\n")
    page = report.to_html()
    assert "<script>" not in page and "<b>Hot" not in page and '<a href="#c2">[2]</a>' in page
    assert (folder.parent.parent / report.folder / "report.md").read_text() == text
    assert report_writer.earlier_reports()[0][1] == "Machines"


def test_a_report_that_was_killed_goes_on(folder, monkeypatch):
    replies = [outline("press", "oven"), "draft [1]", "review [1]", "draft 2 [1]", "review 2 [1]"]
    monkey, run_stage = ScriptedChat(replies), report_writer.run_stage
    for killed_at in range(1, 6):
        calls = []

        def killing(stage, traces, memory, killed_at=killed_at, calls=calls):
            calls.append(stage.name)
            if len(calls) == killed_at:
                raise KeyboardInterrupt
            return run_stage(stage, traces, memory)

        monkeypatch.setattr(report_writer, "run_stage", killing)
        with pytest.raises(KeyboardInterrupt):
            rl.write(pipeline(folder, monkey), "Machines", parts=2)
    monkeypatch.setattr(report_writer, "run_stage", run_stage)
    report = rl.write(pipeline(folder, monkey), "Machines", parts=2)
    assert [one.text for one in report.sections] == ["review [1]", "review 2 [2]"]
    assert len(monkey.requests) == 5


@pytest.mark.parametrize(("titles", "kept"), [(100, 2), (1, 1)])
def test_an_outline_of_a_hundred_titles_is_cut_to_the_parts(folder, titles, kept):
    model = ScriptedChat(lambda request: outline(*(f"t{n}" for n in range(titles))) if request.json_schema else "text")
    report = rl.write(pipeline(folder, model), "Machines", parts=2)
    assert len(report.sections) == kept


def test_an_empty_outline_ends_the_report(folder):
    with pytest.raises(RagLabError, match="The outline of a report on 'Ships' is empty"):
        rl.write(pipeline(folder, ScriptedChat([outline("", " ")])), "Ships")
    with pytest.raises(RagLabError, match="could not be begun: there is no outline"):
        rl.write(pipeline(folder, ScriptedChat(["no object"])), "Cars")
    for topic, parts in (("", 2), ("Ships", 0), ("Ships", 21)):
        with pytest.raises(ConfigError, match="A report takes a topic and 1 to 20 parts"):
            rl.write(pipeline(folder, ScriptedChat([])), topic, parts=parts)


def test_a_review_that_fails_leaves_the_draft_and_a_draft_that_fails_leaves_the_rest(folder):
    down = ChatReply(error="down", transient=True)
    replies = [outline("press", "oven"), "draft [1]", down, down]
    report = rl.write(pipeline(folder, ScriptedChat(replies)), "Machines", parts=2)
    first, second = report.sections
    assert (first.text, first.problem) == ("draft [1]", "the draft stands, as its review failed: down")
    assert (second.text, second.problem) == ("", "no draft: down")
    assert "*no draft: down*" in report.to_markdown()


def test_a_report_reads_what_its_asker_may_see(folder):
    model = ScriptedChat(lambda request: outline("oven costs euros") if request.json_schema else "text [1]")
    made = pipeline(folder, model, **{"rerank.final_k": 5})
    rl.write(made, "oven costs", may_see=())
    assert not any("99 euros" in message.content for request in model.requests for message in request.messages)
    rl.write(made, "oven costs", may_see=("board",))
    assert any("99 euros" in message.content for request in model.requests for message in request.messages)


def test_users_are_read_from_a_file_beside_the_rules(folder):
    assert read_users(folder) == {}
    with pytest.raises(ConfigError, match=r"There is no .*users.yaml; users.yaml names who may see what"):
        permissions_of(folder, "anna")
    path = folder.parent / "users.yaml"
    path.write_text("anna: [board, staff]\nguest: []\n")
    assert (permissions_of(folder, "anna"), permissions_of(folder, "guest")) == (("board", "staff"), ())
    with pytest.raises(ConfigError, match=r"Unknown person 'ana'.*anna"):
        permissions_of(folder, "ana")
    for text in ("anna: board\n", "- anna\n", "anna: ['']\n"):
        path.write_text(text)
        with pytest.raises(DatasetError, match=r"users.yaml"):
            read_users(folder)
