import pytest
from typer.testing import CliRunner

from rag_lab.cli import app
from rag_lab.cli.models import check as room
from rag_lab.errors import ModelError
from rag_lab.models.local.decoding.batch_check import BatchCheck
from rag_lab.models.protocols import ChatReply
from tests.tiny_thinker import make_tiny_thinker


def call(*arguments):
    done = CliRunner().invoke(app, ["models", "check", *arguments])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0
    return done.output.splitlines()


@pytest.mark.slow
def test_a_model_is_asked_in_batches_and_alone(tmp_path):
    folder = make_tiny_thinker(tmp_path / "tiny", context=8192)
    told = call(f"transformers:{folder}?batch_size=4&device=cpu", "--replies", "6", "--max-tokens", "8")
    assert told[0] == "0 of 6 greedy replies change with the batch size (1 or 4)."
    assert told[1].startswith("Tokens a second: ")


@pytest.mark.parametrize("model", ["llamacpp:smollm2", "transformers:smollm2?batch_size=1"])
def test_a_model_without_batches_is_not_asked(model):
    with pytest.raises(ModelError, match="answers one request at a time, so no reply can depend on a batch"):
        call(model)


def test_replies_that_change_are_shown_without_what_a_terminal_obeys(monkeypatch):
    def changed(model, requests):
        alone = [ChatReply(f"{n}", tokens_out=4, seconds=2.0) for n in range(len(requests))]
        together = [ChatReply("\x1b[31mred", tokens_out=4, seconds=1.0), *alone[1:]]
        return BatchCheck(tuple(alone), tuple(together))

    monkeypatch.setattr("rag_lab.models.local.decoding.batch_check.check_batch", changed)
    told = "\n".join(call("transformers:smollm2", "--replies", "3"))
    assert "1 of 3 greedy replies change with the batch size (1 or 8)." in told
    assert "Tokens a second: 2.0 one at a time, 2.4 in batches." in told
    assert "in batch" in told and "\x1b" not in told


def test_the_requests_differ_in_length():
    lengths = {len(str(room._request(n, 8).messages)) for n in range(6)}
    assert len(lengths) == 6
