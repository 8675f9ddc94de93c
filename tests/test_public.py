"""The public names, and how little importing the package costs."""

import subprocess
import sys
from inspect import signature

import pytest

import rag_lab
from rag_lab._kit.config_file import read_mapping
from rag_lab.data.formats import export_dataset, import_dataset
from rag_lab.evaluation.judge_check import judge_banner, load_check, save_check
from rag_lab.evaluation.judge_trial import check_judge
from rag_lab.experiment.bundle import export_run
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.memory.results import Memory
from rag_lab.notebook.display import show_question
from rag_lab.report.page.report_page import write_report
from rag_lab.runs.run_folder import RunFolder

PUBLIC = [
    "Bench",
    "Chat",
    "Dataset",
    "Metric",
    "Pipeline",
    "PipelineConfig",
    "Question",
    "RagLabError",
    "Score",
    "Trace",
    "compare",
    "evaluate",
    "label",
    "prefer",
    "profile",
    "rate",
    "review",
    "status",
    "sweep",
    "talk",
    "traced",
    "write",
]
HEAVY = ["torch", "transformers", "sentence_transformers", "langchain", "langchain_core", "chromadb", "ragas"]
HEAVY += ["pandas", "matplotlib", "scipy", "pyarrow"]


def test_the_public_names_are_these_and_all_resolve():
    assert rag_lab.__all__ == PUBLIC
    assert all(getattr(rag_lab, name) is not None for name in PUBLIC)


@pytest.mark.parametrize(
    "function",
    [
        rag_lab.Dataset.load, rag_lab.Pipeline, rag_lab.PipelineConfig.load, rag_lab.compare, rag_lab.evaluate,
        ExperimentConfig.load, Memory, RunFolder.open, check_judge, export_dataset, export_run,
        import_dataset, judge_banner, load_check, read_mapping, save_check, show_question, write_report,
    ],
    ids=lambda function: function.__qualname__,
)  # fmt: skip
def test_whatever_takes_a_path_takes_it_as_text(function):
    hints = [str(parameter.annotation) for parameter in signature(function).parameters.values()]
    paths = [hint for hint in hints if "Path" in hint]
    assert paths
    assert all("str" in hint for hint in paths)


def test_paths_are_read_as_text(tmp_path):
    (tmp_path / "p.yaml").write_text("seed: 3")
    assert rag_lab.PipelineConfig.load(str(tmp_path / "p.yaml")).seed == 3
    (tmp_path / "t.csv").write_text("user_input,reference,reference_contexts\nHow hot?,180,\"['It is 180 hot.']\"\n")
    dataset, _ = import_dataset(None, str(tmp_path / "t.csv"), str(tmp_path / "made"))
    export_dataset(dataset, "beir", str(tmp_path / "out"))
    assert len(dataset.questions) == 1
    assert (tmp_path / "out/corpus.jsonl").is_file()


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(rag_lab, "nothing")


def loaded_by(statement):
    script = f"{statement}; import sys; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_the_package_loads_no_model_library():
    assert loaded_by("import rag_lab") == []


def test_importing_the_command_line_loads_no_model_library():
    assert loaded_by("import rag_lab.cli") == []


def test_a_sweep_that_finds_nothing_to_do_loads_what_makes_no_table():
    assert loaded_by("import rag_lab.cli.sweep, rag_lab.cli.execute") == []
