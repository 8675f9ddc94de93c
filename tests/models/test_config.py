import pytest
import yaml

from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError
from rag_lab.models.config import alternatives

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
