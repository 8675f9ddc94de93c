"""Tokens are counted as transformers counts them, without it and without torch."""

import json
import subprocess
import sys

import pytest

from rag_lab.models.local.causal import named_context
from rag_lab.models.local.transformers import TransformersChat

TEXTS = ["", "what pressure does the press need ?", " grease\n\ngrease ", "</s> who <s>", "Öl, 140 bar", "👍 <unk>"]
SCRIPT = """
import json, sys
from rag_lab.models.local.transformers import TransformersChat
model = TransformersChat(sys.argv[1], device="cpu")
counts = [model.count_tokens(text) for text in json.loads(sys.argv[2])]
found = {"counts": counts, "context": model.context_tokens, "identity": dict(model.identity())}
found["imported"] = [name for name in ("torch", "transformers", "sentence_transformers") if name in sys.modules]
print(json.dumps(found))
"""


def test_counts_are_those_of_transformers_chat_template_included_and_no_later_process_imports_it(tiny_causal):
    model = TransformersChat(str(tiny_causal), device="cpu")
    tokenizer = model.settings.tokenizer()
    messages = [{"role": "user", "content": text} for text in TEXTS if text]
    prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    texts = [*TEXTS, prompt]
    expected = [len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts]
    assert expected[-1] == len(tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"])
    assert [model.count_tokens(text) for text in texts] == expected

    command = [sys.executable, "-c", SCRIPT, str(tiny_causal), json.dumps(texts)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert found["counts"] == expected
    assert found["context"] == 96
    assert found["identity"] == dict(model.identity())
    assert found["imported"] == []


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"max_position_embeddings": 96}, 96),
        ({"max_position_embeddings": 96, "text_config": {"max_position_embeddings": 7}}, None),
        ({"n_positions": 96}, None),
        ({"max_position_embeddings": "many"}, None),
    ],
)
def test_a_context_that_the_file_does_not_name_itself_is_left_to_the_library(tmp_path, config, expected):
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert named_context(tmp_path / "config.json") == expected


def test_a_kept_tokenizer_that_is_damaged_is_not_used(tiny_causal, monkeypatch, tmp_path):
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path))
    model = TransformersChat(str(tiny_causal), device="cpu")
    before = model.count_tokens(TEXTS[1])
    [kept] = tmp_path.glob("weights/*-tokenizer.json")
    kept.write_text(kept.read_text()[:-9])
    assert TransformersChat(str(tiny_causal), device="cpu").count_tokens(TEXTS[1]) == before
