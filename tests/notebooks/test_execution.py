"""All three notebooks, executed by papermill with the packaged models on a dataset of four documents."""

import json

import nbformat
import papermill
import pytest
import yaml
from small_dataset import write_dataset

from rag_lab.experiment.config import checkout_file
from rag_lab.experiment.kernels.notebook_process import run_notebook
from rag_lab.experiment.run.outputs import failures
from rag_lab.experiment.run.sweep import sweep

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebooks")
    write_dataset(folder)
    return folder


@pytest.fixture(scope="module")
def _home(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAG_LAB_HOME", str(folder / "home"))
        yield


@pytest.fixture(scope="module")
def run(folder, _home):
    """A sweep of two variants: two executions of 02_run_variant."""
    experiment = {
        "name": "small",
        "question": "Does a rewrite help?",
        "dataset": str(folder / "small"),
        "base": {"query": {"rewrite": "none", "hyde": "none"}, "answer": {"max_tokens": 60}},
        "factors": {"query.rewrite": ["none", "llm"]},
        "metrics": ["retrieval.mrr@10", "ragas.semantic_similarity", "citations.precision", "cost.seconds"],
        "limits": {"answers": 1},
    }
    (folder / "experiment.yaml").write_text(yaml.safe_dump(experiment, sort_keys=False))
    return sweep(folder / "experiment.yaml", folder / "run", progress=False)


def execute(name, folder, **parameters):
    notebook = checkout_file(f"notebooks/{name}.ipynb")
    assert set(parameters) <= set(papermill.inspect_notebook(str(notebook)))
    output = folder / f"{name}.ipynb"
    assert run_notebook(str(notebook), str(output), parameters, str(folder), 60) == ""
    return nbformat.read(output, as_version=4)


def shown(book):
    """All that the notebook shows, as one text."""
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    texts = [output.get("text", "") for output in outputs]
    texts += [
        "".join(output.get("data", {}).get(kind, "")) for output in outputs for kind in ("text/plain", "text/html")
    ]
    return "\n".join(texts)


def test_01_tour_follows_one_question_from_setting_to_setting(folder, _home):
    question = "At what pressure does the relief valve of P-1 open?"
    text = shown(execute("01_tour", folder, QUESTION=question, DATASET=str(folder / "small")))
    for said in (question, "press.md", "first found at rank 1", "opens at 290 bar", "On 3 questions: A", "mode = rrf"):
        assert said in text


def test_02_run_variant_leaves_a_record_of_what_ran(run):
    assert [sentence for sentence in failures(run) if sentence.startswith("Variant")] == []
    for variant in ("baseline", "rewrite-llm"):
        book = nbformat.read(run.variant_dir(variant) / "notebook.ipynb", as_version=4)
        assert "retrieval.mrr@10" in shown(book)
        assert len(run.traces(variant)) == len(run.questions) == 3  # the unanswerable one is not among those answered
    assert all(trace.proposed_query is None for trace in run.traces("baseline"))
    assert any(record.stage == "understand" for record in run.traces("rewrite-llm")[0].stages)


def test_02_run_variant_runs_by_hand_on_a_sample(folder, _home):
    parameters = {"DATASET": str(folder / "small"), "QUESTIONS": "1", "METRICS": "retrieval.mrr@10", "USE_HYDE": "none"}
    text = shown(execute("02_run_variant", folder, USE_QUERY_REWRITER="none", **parameters))
    assert "1 questions asked, 1 answered" in text


def test_03_compare_shows_the_run_and_its_questions(folder, run):
    text = shown(execute("03_compare", folder, RUN_DIR=str(run.path)))
    for said in ("rewrite-llm", "retrieval.mrr@10", "q1"):
        assert said in text


def test_04_your_documents_goes_from_a_plain_folder_to_labels(folder, _home):
    documents = folder / "small" / "corpus"
    asked = "At what pressure does the relief valve of P-1 open?\nIs there fish on Fridays?"
    text = shown(execute("04_your_documents", folder, FOLDER=str(documents), QUESTIONS=asked))
    for said in (
        "None of the 2 questions has a label", "0 of 2 labelled", "Click the sentence, table row",
        "290 bar", "Set ",
    ):  # fmt: skip
        assert said in text
    assert not (documents / "questions.jsonl").exists()


def test_05_own_questions_asks_by_hand_where_nothing_is_drafted(folder, _home):
    documents = folder / "small" / "corpus"
    asked = "At what pressure does the relief valve of P-1 open?"
    text = shown(execute("05_own_questions", folder, DATASET=str(documents), QUESTIONS=asked))
    for said in ("No drafts: write by hand", "The oil is changed every 2,000 hours", "0 of 1 labelled", "has a label"):
        assert said in text
    assert not (documents / "questions.jsonl").exists()


def test_05_own_questions_shows_drafts_as_text_and_asks_them(folder, _home):
    path = write_dataset(folder, "drafted")
    lines = [json.loads(line) for line in (path / "questions.jsonl").read_text().splitlines()][:2]
    lines[0]["question"] = "What does alarm <img src=x onerror=alert(1)> mean?"
    drafted = "".join(json.dumps(line | {"tags": ["drafted", "single"], "draft": {}}) + "\n" for line in lines)
    (path / "questions.jsonl").write_text(drafted)
    text = shown(execute("05_own_questions", folder, DATASET=str(path)))
    for said in ("opens at 290 bar", "0 of 2 reviewed", "2 of 2 labelled", "&lt;img src=x"):
        assert said in text
    outputs = [cell.get("outputs", []) for cell in nbformat.read(folder / "05_own_questions.ipynb", 4).cells]
    pages = [each.get("data", {}).get("text/html", "") for cell in outputs for each in cell]
    assert not any("<img src=x" in "".join(page) for page in pages)
    assert (path / "questions.jsonl").read_text() == drafted
