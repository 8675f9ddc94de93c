import pytest

from rag_lab.models.local.gguf_file import gguf_card
from rag_lab.models.protocols import ChatRequest

THINKING = {"tokenizer.chat_template": "{% if enable_thinking %}<think>{% endif %}"}


def sampling(metadata, **request):
    return gguf_card(metadata).sampling(ChatRequest((), **request))


@pytest.mark.parametrize(
    ("metadata", "request_", "expected"),
    [
        ({}, {}, {"temperature": 0.0}),
        ({}, {"temperature": 0.7}, {"temperature": 0.7}),
        ({}, {"temperature": 0.7, "top_k": 5}, {"temperature": 0.7, "top_k": 5}),
        ({}, {"thinking_tokens": 9}, {"temperature": 0.0}),
        (THINKING, {}, {"temperature": 0.0}),
        (THINKING, {"thinking_tokens": 9}, {"temperature": 0.6}),
        (THINKING, {"thinking_tokens": 9, "temperature": 0.2, "min_p": 0.1}, {"temperature": 0.2, "min_p": 0.1}),
    ],
)
def test_what_is_asked_goes_first_and_only_thoughts_are_never_greedy(metadata, request_, expected):
    assert sampling(metadata, **request_) == expected


def test_qwen3_has_its_cards_settings_for_thinking_and_for_plain_replies():
    qwen3 = {**THINKING, "general.architecture": "qwen3"}
    assert sampling(qwen3, thinking_tokens=9) == {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.0}
    assert sampling(qwen3, temperature=0.7) == {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "min_p": 0.0}
    assert sampling(qwen3, temperature=0.7, top_p=0.5)["top_p"] == 0.5


def test_what_the_file_carries_goes_before_what_is_known_of_its_family():
    carried = {**THINKING, "general.architecture": "qwen3", "general.sampling.temp": 0.9, "general.sampling.top_k": 7}
    assert sampling(carried, thinking_tokens=9) == {"temperature": 0.9, "top_p": 0.95, "top_k": 7, "min_p": 0.0}
