"""All three notebooks, executed by papermill with the packaged models on a dataset of four documents."""

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
