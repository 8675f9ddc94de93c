"""Folders of weights that are spoilt in one way each: what is said of it, in one sentence."""

import json
import shutil

import pytest

from rag_lab.errors import ModelError
from rag_lab.models.local.transformers import TransformersChat
from rag_lab.models.protocols import ChatRequest, Message
from tests.tiny_models import make_tiny_thinker

ASKED = ChatRequest((Message("system", "Be brief."), Message("user", "hi")), max_tokens=4)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return make_tiny_thinker(tmp_path_factory.mktemp("whole") / "whole")


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "spoilt")


def said(folder):
    with pytest.raises(ModelError) as caught:
        TransformersChat(str(folder), device="cpu").generate([ASKED])
    told = str(caught.value)
    assert "\n" not in told
    assert str(folder) not in told
    return told


def edit_config(folder, **changes):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_a_missing_shard_is_named(whole, folder):
    from transformers import AutoModelForCausalLM

    (folder / "model.safetensors").unlink()
    AutoModelForCausalLM.from_pretrained(whole).save_pretrained(folder, max_shard_size="20KB")
    sorted(folder.glob("model-*.safetensors"))[1].unlink()
    assert "model-00002-of-00007.safetensors is missing: copy or download the whole model" in said(folder)


def test_a_part_that_no_shard_has_is_not_made_up(folder):
    from safetensors.torch import load_file, save_file

    file = folder / "model.safetensors"
    parts = load_file(file)
    del parts["model.layers.1.mlp.up_proj.weight"]
    save_file(parts, file, metadata={"format": "pt"})
    assert "lack 1 of the model's parts (model.layers.1.mlp.up_proj.weight, ...)" in said(folder)


def test_weights_that_are_cut_short(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:2000])
    assert "Cannot load the weights 'spoilt' (SafetensorError" in said(folder)


def test_the_configuration_of_another_model(folder):
    edit_config(folder, hidden_size=64)
    assert "other sizes than config.json says: it is another model's" in said(folder)


@pytest.mark.parametrize("tokens", [0, -1, 10**12])
def test_a_context_that_cannot_be(folder, tokens):
    edit_config(folder, max_position_embeddings=tokens)
    assert f"names a context of {tokens} tokens (max_position_embeddings)" in said(folder)


def test_a_tokenizer_without_a_chat_template(folder):
    (folder / "chat_template.jinja").unlink()
    assert "The tokenizer of 'spoilt' has no chat template, so the model cannot be asked anything" in said(folder)


def test_no_tokenizer(folder):
    for file in folder.glob("tokenizer*"):
        file.unlink()
    assert "have no tokenizer beside them" in said(folder)
    with pytest.raises(ModelError, match="have no tokenizer"):
        TransformersChat(str(folder)).count_tokens("hi")  # and not 0 tokens


def test_the_tokenizer_of_another_model(folder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens([f"<{n}>" for n in range(100)])
    tokenizer.save_pretrained(folder)
    assert "it is another model's" in said(folder)


@pytest.mark.parametrize(
    ("template", "reason"),
    [("{{ raise_exception('System role not supported') }}", "System role not supported"), ("{% for m in", "expected")],
)
def test_a_template_that_refuses_costs_the_reply_alone(folder, template, reason):
    (folder / "chat_template.jinja").write_text(template)
    (reply,) = TransformersChat(str(folder), device="cpu").generate([ASKED])
    assert reply.error.startswith("The model's chat template refuses the messages: ")
    assert reason.lower() in reply.error.lower()
