import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError, ModelError
from rag_lab.models.config import alternatives
from rag_lab.models.providers import MODEL_KINDS, ModelSpec, providers_of


def test_a_name_may_hold_colons_and_slashes():
    spec = ModelSpec.parse("openai:team/llama3.2:3b?base_url=http://127.0.0.1:8000/v1&concurrency=2&timeout_s=1.5")
    assert (spec.provider, spec.name) == ("openai", "team/llama3.2:3b")
    assert spec.options == {"base_url": "http://127.0.0.1:8000/v1", "concurrency": 2, "timeout_s": 1.5}


def test_percent_signs_escape_what_separates():
    address = "http%3A%2F%2F127.0.0.1%3A1%2Fa%26b"
    assert ModelSpec.parse(f"openai:m?base_url={address}").options["base_url"] == "http://127.0.0.1:1/a&b"


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in MODEL_KINDS for name in kind.built_in])
def test_every_example_parses(kind, name):
    provider = providers_of(kind)[name]
    spec = ModelSpec.parse(provider.example, kind)
    assert spec.provider == name
    assert all(key.isidentifier() for key in spec.arguments(provider))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "provider:name"),
        ("smollm2", "provider:name"),
        ("llamacpp:", "provider:name"),
        (":smollm2", "provider:name"),
        ("lamacpp:smollm2", "did you mean 'llamacpp'"),
        ("llamacpp:smollm2?contxt=1", "did you mean 'context'"),
        ("llamacpp:smollm2?context=many", "whole number of at least 16"),
        ("llamacpp:smollm2?context=-1", "whole number of at least 16"),
        ("llamacpp:smollm2?context=64&context=65", "twice"),
        ("transformers:smollm2?4bit=maybe", "true or false"),
        ("transformers:smollm2?dtype=float8", "float32"),
        ("transformers:smollm2?device=", "empty"),
        ("openai:m?timeout_s=0", "above 0"),
        ("openai:m?timeout_s=nan", "above 0"),
        ("openai:m?timeout_s=inf", "above 0"),
        ("openai:m?base_url=ftp://x", "address"),
        ("openai:m?base_url=http://[", "address"),
    ],
)
def test_a_mistake_is_one_sentence(text, said):
    with pytest.raises(ModelError) as caught:
        ModelSpec.parse(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "openai:m?api_key=hunter2",
        "openai:m?token=hunter2",
        "openai:m?base_url=http://me:hunter2@host/v1",
        "openai:m?base_url=http://host/v1%3Fkey=hunter2",
    ],
)
def test_a_secret_is_refused_and_not_repeated(text):
    with pytest.raises(ModelError) as caught:
        ModelSpec.parse(text)
    assert "environment variable" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused(text):
    try:
        spec = ModelSpec.parse(text)
    except ModelError:
        return
    assert spec.name
    assert text.strip().startswith(f"{spec.provider}:{spec.name}")


BOTH = "ollama:qwen3:8b | gemini:gemini-2.5-flash"


def test_a_text_of_one_model_is_that_model():
    assert alternatives("ollama:qwen3:8b?context=512") == ("ollama:qwen3:8b?context=512",)
    assert alternatives("mine:Model?pattern=a|b") == ("mine:Model?pattern=a|b",)
    assert alternatives(" a:b   |  c:d ") == ("a:b", "c:d")
    assert " | ".join(alternatives(BOTH)) == BOTH


@pytest.mark.parametrize(
    "given", [BOTH, " ollama:qwen3:8b  |  gemini:gemini-2.5-flash ", {"failover": BOTH.split(" | ")}]
)
def test_every_way_of_writing_it_is_one_configuration(given):
    config = PipelineConfig().override({"models.generation": given})
    assert config.models.generation == BOTH
    assert PipelineConfig.parse(yaml.safe_load(config.to_yaml())) == config


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"failover": ["ollama:a"]}, r"\{failover: \[first, second\]\}"),
        ({"failover": "ollama:a"}, r"\{failover: \[first, second\]\}"),
        ({"failover": ["ollama:a", "ollama:a"]}, r"\{failover: \[first, second\]\}"),
        ({"failover": ["ollama:a", 3]}, r"\{failover: \[first, second\]\}"),
        ({"fallback": ["ollama:a", "ollama:b"]}, r"\{failover: \[first, second\]\}"),
        ({"failover": ["ollama:a", "llama"]}, "a model is named provider:name"),
        ("ollama:a | ", "a model is named provider:name"),
        ("ollama:a | openai:b?api_key=hunter2secret", "must not hold secrets"),
    ],
)
def test_other_ways_are_refused_with_the_right_one(given, said):
    with pytest.raises(ConfigError, match=said) as caught:
        PipelineConfig().override({"models.generation": given})
    assert "hunter2secret" not in str(caught.value)
