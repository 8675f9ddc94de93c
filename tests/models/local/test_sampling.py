import pytest

from rag_lab.models.local.generation import is_sampled, sampling_of
from rag_lab.models.protocols import ChatRequest


def settings(model_type="qwen3", card=(), thinks=True, **asked):
    from transformers import GenerationConfig, PretrainedConfig

    config = PretrainedConfig()
    config.model_type = model_type
    return sampling_of(config, GenerationConfig(do_sample=True, **dict(card)), ChatRequest((), **asked), thinks)


QWEN3 = {"temperature": 0.6, "top_p": 0.95, "top_k": 20}


def test_a_temperature_of_zero_is_greedy():
    assert settings(card=QWEN3)["do_sample"] is False
    assert not is_sampled(ChatRequest(()), thinks=True)
    assert not is_sampled(ChatRequest((), thinking_tokens=64), thinks=False)


def test_thinking_is_sampled_as_the_card_says():
    found = settings(card={**QWEN3, "min_p": 0.05}, thinking_tokens=64)
    assert found == {"do_sample": True, **QWEN3, "min_p": 0.05}


def test_thinking_without_a_card_is_never_greedy():
    assert settings("llama", thinking_tokens=64) == {"do_sample": True, **QWEN3, "min_p": None}
    assert settings("llama", {"top_k": 40}, thinking_tokens=64)["top_k"] == 40


def test_qwen3_without_thinking_has_settings_that_its_file_does_not_name():
    found = settings(card=QWEN3, temperature=0.7)
    assert (found["temperature"], found["top_p"], found["top_k"]) == (0.7, 0.8, 20)


def test_other_models_have_what_their_card_names_and_nothing_by_chance():
    gemma = settings("gemma3", {"top_k": 64, "top_p": 0.95}, thinks=False, temperature=1.0)
    assert gemma == {"do_sample": True, "temperature": 1.0, "top_k": 64, "top_p": 0.95, "min_p": None}
    bare = settings("llama", thinks=False, temperature=0.5)
    assert bare == {"do_sample": True, "temperature": 0.5, "top_k": 0, "top_p": 1.0, "min_p": None}


@pytest.mark.parametrize("thinking_tokens", [0, 64])
def test_what_a_request_says_goes_first(thinking_tokens):
    asked = {"temperature": 0.3, "top_p": 0.5, "top_k": 7, "min_p": 0.1}
    assert settings(card=QWEN3, thinking_tokens=thinking_tokens, **asked) == {"do_sample": True, **asked}
