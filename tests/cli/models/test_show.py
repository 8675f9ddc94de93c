import pytest
from tiny_gguf import write_tiny_gguf
from typer.testing import CliRunner

from rag_lab.cli import app


def call(*arguments):
    done = CliRunner().invoke(app, ["models", "show", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_card_is_told_without_loading_anything():
    told = call("llamacpp:smollm2?weights=q4_0&kv=q8_0", "--batch", "4")
    assert "135 million" in told
    assert "4 at a time x 8.5 bits" in told
    assert "Measured here" not in told


@pytest.mark.slow
def test_what_is_measured_stands_on_it(tmp_path):
    tiny = write_tiny_gguf(tmp_path / "tiny.gguf")
    assert "tokens a second" in call(f"llamacpp:{tiny}?context=2048", "--measure")
