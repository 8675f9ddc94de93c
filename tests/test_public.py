"""The public names, and how little importing the package costs."""

import subprocess
import sys

import rag_lab

PUBLIC = [
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
    "sweep",
]
HEAVY = ["torch", "transformers", "sentence_transformers", "langchain", "langchain_core", "chromadb", "ragas", "pandas"]


def test_the_public_names_are_these_and_all_resolve():
    assert rag_lab.__all__ == PUBLIC
    assert all(getattr(rag_lab, name) is not None for name in PUBLIC)


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
