import pytest

from rag_lab.models.remote.langchain_chat import is_another


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06"),
        ("gemma-3", "/weights/Gemma-3.gguf"),
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("llama3.2:3b", "Llama-3.2-3B-Instruct"),
        ("chatgpt-4o-latest", "gpt-5"),
        ("llama3:latest", "llama3"),
        ("anything", ""),
    ],
)
def test_a_name_with_more_or_less_around_it_is_the_same_model(asked, told):
    assert not is_another(asked, told)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("qwen3-8b", "llama3"),
        ("gpt-4o", "gpt-4o-mini"),
        ("gpt-5-mini", "gpt-5"),
        ("gemini-2.5-pro", "gemini-2.5-flash"),
    ],
)
def test_another_family_or_size_is_another_model(asked, told):
    assert is_another(asked, told)
