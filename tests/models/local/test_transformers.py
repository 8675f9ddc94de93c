"""Tokens are counted as transformers counts them, without it and without torch."""

import dataclasses
import importlib.util
import json
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

from rag_lab.errors import ModelError
from rag_lab.models import weights
from rag_lab.models.local import causal
from rag_lab.models.local import transformers as room
from rag_lab.models.local.causal import CausalLM, named_context
from rag_lab.models.local.transformers import TransformersChat, UnslothChat
from rag_lab.models.protocols import ChatRequest, Message


def ask(text, **settings):
    return ChatRequest((Message("user", text),), **{"max_tokens": 12, **settings})


TEXTS = [
    "what pressure does the press need ?",
    "grease",
    "how often is the filter of the oven changed by maintenance " * 3,
]


@pytest.fixture(scope="module")
def model(tiny_causal):
    return TransformersChat(str(tiny_causal), device="cpu", batch_size=4)


def check_batches(model, requests):
    together = [dataclasses.replace(reply, seconds=0, machine=None) for reply in model.generate(requests)]
    alone = [dataclasses.replace(model.generate([request])[0], seconds=0, machine=None) for request in requests]
    assert together == alone
    assert all(reply.text and not reply.error for reply in together)
    return together


def test_a_request_has_one_reply_in_any_batch(model):
    replies = check_batches(model, [ask(text) for text in TEXTS])
    assert len({reply.text for reply in replies}) == 3


def test_greedy_text_is_that_of_a_loop_without_padding_or_cache(model):
    import torch

    lm = model.settings.load()
    for text, reply in zip(TEXTS, model.generate([ask(text) for text in TEXTS]), strict=True):
        ids = lm.tokenizer(f"{text} what ", add_special_tokens=False)["input_ids"]
        start = len(ids)
        while len(ids) - start < 12:
            with torch.no_grad():
                token = lm.model(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax().item()
            if token == lm.tokenizer.eos_token_id:
                break
            ids.append(token)
        assert reply.text == lm.tokenizer.decode(ids[start:], skip_special_tokens=True).strip()


def test_a_sampled_reply_follows_its_seed_and_not_its_batch(model):
    sampled = [ask("grease", temperature=1.5, seed=seed) for seed in (1, 2, 3, 1)]
    texts = [reply.text for reply in model.generate([ask("who"), *sampled])][1:]
    assert texts[0] == texts[3]
    assert len(set(texts)) > 1
    assert texts[1] == model.generate([sampled[1]])[0].text


def test_sampling_leaves_the_callers_random_numbers_alone(model):
    import torch

    torch.manual_seed(5)
    expected = torch.rand(3).tolist()
    torch.manual_seed(5)
    model.generate([ask("grease", temperature=1.0)])
    assert torch.rand(3).tolist() == expected


def test_the_template_is_told_to_think(model):
    replies = model.generate([ask("grease", thinking_tokens=64), ask("grease")])
    assert replies[0].text != replies[1].text


def test_a_schema_that_a_tokenizer_cannot_follow_is_one_sentence(model):
    """It joins words by spaces of its own, so that what a token writes is not known."""
    held, free = model.generate([ask("grease", json_schema={"type": "object"}), ask("grease")])
    assert "tokenizer does not say which bytes its tokens write" in held.error
    assert free.text


def test_a_prompt_that_does_not_fit_fails_alone(model):
    fits, not_fits = model.generate([ask("grease"), ask("grease " * 200)])
    assert fits.text
    assert "context holds 96" in not_fits.error
    (full,) = model.generate([ask("grease " * 90, max_tokens=50)])
    assert full.tokens_in + full.tokens_out <= 96


def test_a_batch_that_the_gpus_memory_cannot_hold_is_asked_in_halves(model, monkeypatch):
    import torch

    requests, lm = [ask(text) for text in TEXTS], model.loaded
    expected = [reply.text for reply in model.generate(requests)]
    generate, sizes = lm.model.generate, list[int]()

    def full(input_ids, stopping_criteria, **options):
        sizes.append(len(input_ids))
        if len(input_ids) > 1:  # it ends in the middle, when guides have gone on
            stopping_criteria[0](input_ids, None)
            raise torch.OutOfMemoryError("CUDA out of memory")
        return generate(input_ids=input_ids, stopping_criteria=stopping_criteria, **options)

    monkeypatch.setattr(lm.model, "generate", full)
    assert [reply.text for reply in model.generate(requests)] == expected
    assert sizes == [3, 1, 2, 1, 1]

    def fuller(**_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(lm.model, "generate", fuller)
    errors = [reply.error for reply in model.generate(requests)]
    assert all(error.startswith("The memory of the GPU is too full for this prompt of ") for error in errors)


def test_weights_that_the_gpu_has_no_room_for_are_one_sentence(tmp_path):
    with (
        pytest.raises(
            ModelError, match=r"Cannot load the weights 'x' \(OutOfMemoryError: the GPU has no room for them"
        ),
        weights.loading(weights.Source("x", str(tmp_path), on_hub=False)),
    ):
        import torch

        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 348.00 MiB. GPU 0 has 79 GiB")


def test_weights_load_once_for_all_who_ask(model, tiny_causal):
    again = TransformersChat(str(tiny_causal), device="cpu")
    assert isinstance(again.settings.load(), CausalLM)
    assert again.settings.load() is model.settings.load()


def test_four_bits_need_a_gpu(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for four in (TransformersChat("smollm2", four_bit=True), TransformersChat("qwen3-8b")):
        with pytest.raises(ModelError, match="in 4 bits needs an NVIDIA GPU"):
            four.settings.load()


def test_four_bits_need_their_package(monkeypatch):
    monkeypatch.setattr(causal.requirements, "cuda_problem", lambda what: "")
    pytest.importorskip("torch")
    try:
        import bitsandbytes  # noqa: F401
    except ImportError:
        with pytest.raises(ModelError, match=r"pip install 'rag_lab\[quantized\]'"):
            TransformersChat("qwen3-8b").settings.load()


@pytest.mark.slow
def test_the_packaged_model_in_any_batch(real_home):
    model = TransformersChat("smollm2", device="cpu")
    texts = [
        "What is the capital of France?",
        "Hi.",
        "Name three colours and say at some length why you like each of them best.",
    ]
    check_batches(model, [ask(text, max_tokens=10) for text in texts])
    assert model.context_tokens == 8192
    assert model.count_tokens("Hello world") == 2


COUNTED = ["", "what pressure does the press need ?", " grease\n\ngrease ", "</s> who <s>", "Öl, 140 bar", "👍 <unk>"]
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
    messages = [{"role": "user", "content": text} for text in COUNTED if text]
    prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    texts = [*COUNTED, prompt]
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
    before = model.count_tokens(COUNTED[1])
    [kept] = tmp_path.glob("weights/*-tokenizer.json")
    kept.write_text(kept.read_text()[:-9])
    assert TransformersChat(str(tiny_causal), device="cpu").count_tokens(COUNTED[1]) == before


ASKED = ChatRequest((Message("user", "hello"),))


@pytest.mark.skipif(importlib.util.find_spec("unsloth") is not None, reason="unsloth is installed")
def test_a_missing_package_says_what_to_install():
    with pytest.raises(ModelError, match=r"pip install 'rag_lab\[unsloth\]'"):
        UnslothChat("qwen3-8b").generate([ASKED])


def test_a_missing_gpu_is_said_before_unsloth_is_imported(monkeypatch):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    monkeypatch.setattr(room.requirements, "missing_package", lambda module, package: "")
    with pytest.raises(ModelError, match="unsloth needs an NVIDIA GPU with CUDA"):
        UnslothChat("qwen3-8b").generate([ASKED])
    assert "unsloth" not in sys.modules


def test_it_loads_as_documented_and_answers(monkeypatch, tiny_causal):
    """With a stand-in for the library, which needs a GPU: its documented calls, and a real small model behind them."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    calls = []

    class FastLanguageModel:
        @staticmethod
        def from_pretrained(**options):
            calls.append(options)
            tokenizer = AutoTokenizer.from_pretrained(tiny_causal)
            tokenizer.pad_token = tokenizer.eos_token
            model = AutoModelForCausalLM.from_pretrained(tiny_causal)
            return model, SimpleNamespace(tokenizer=tokenizer, chat_template=tokenizer.chat_template)

        @staticmethod
        def for_inference(model):
            calls.append(model.eval())

    library = ModuleType("unsloth")
    library.FastLanguageModel = FastLanguageModel
    monkeypatch.setattr(room.requirements, "missing_package", lambda module, package: "")
    monkeypatch.setattr(room.requirements, "cuda_problem", lambda what: "")
    monkeypatch.setattr(room.requirements, "require_package", lambda module, package: library)
    (reply,) = UnslothChat("qwen3-8b", context=96).generate([ASKED])
    assert reply.error == ""
    assert calls[0] == {
        "model_name": "unsloth/Qwen3-8B-unsloth-bnb-4bit",
        "max_seq_length": 96,
        "load_in_4bit": True,
    }
    assert len(calls) == 2


def test_tokens_are_counted_without_unsloth_or_a_gpu(tiny_causal):
    assert UnslothChat(str(tiny_causal)).count_tokens("grease the ram guides") == 4


def test_the_identity_states_weights_and_how_replies_are_decoded(monkeypatch):
    monkeypatch.setattr(weights, "_hub_revision", lambda source: "1" * 40)
    identity = UnslothChat("qwen3-8b").identity()
    assert identity["schema_library"].startswith("llguidance ")
    assert identity["weights"].startswith("hub:unsloth/Qwen3-8B-unsloth-bnb-4bit@")
