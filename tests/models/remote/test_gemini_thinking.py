import pytest

from rag_lab.models.remote.thinking_options import gemini_thinking


@pytest.mark.parametrize(
    ("name", "tokens", "options"),
    [
        ("gemini-2.5-pro", 128, {"thinking_budget": 128, "include_thoughts": True}),
        ("gemini-2.5-pro", 5000, {"thinking_budget": 5000, "include_thoughts": True}),
        ("models/gemini-2.5-flash", 0, {"thinking_budget": 0}),
        ("gemini-2.5-flash", 16, {"thinking_budget": 16, "include_thoughts": True}),
        ("gemini-2.5-flash-lite", 0, {"thinking_budget": 0}),
        ("gemini-2.5-flash-lite", 16, {"thinking_budget": 512, "include_thoughts": True}),
        ("gemini-3-flash-preview", 1023, {"thinking_level": "minimal", "include_thoughts": True}),
        ("gemini-3-flash-preview", 8192, {"thinking_level": "medium", "include_thoughts": True}),
        ("gemini-3-pro-preview", 8192, {"thinking_level": "low", "include_thoughts": True}),
        ("gemini-3.1-pro-preview", 30_000, {"thinking_level": "high", "include_thoughts": True}),
        ("gemini-flash-latest", 2048, {"thinking_level": "low", "include_thoughts": True}),
        ("gemini-4-argon", 2048, {"thinking_level": "low", "include_thoughts": True}),
    ],
)
def test_a_budget_becomes_what_the_family_takes(name, tokens, options):
    assert gemini_thinking(name).options(tokens) == options


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("gemini-2.5-pro", 128),
        ("gemini-2.5-flash", 0),
        ("gemini-2.5-flash-lite", 0),
        ("gemini-3-pro-preview", 1024),
        ("gemini-3.5-flash", 128),
    ],
)
def test_what_cannot_stop_thinking_has_a_least(name, least):
    assert gemini_thinking(name).least_tokens == least


@pytest.mark.parametrize("name", ["gemini-2.0-flash", "gemini-1.5-pro", "gemma-3-27b-it", "learnlm"])
def test_what_does_not_think_is_not_asked_to(name):
    assert gemini_thinking(name) is None


def test_the_levels_are_those_of_the_installed_librarys_profiles(monkeypatch):
    library = pytest.importorskip("langchain_google_genai")
    for name in ("gemini-3-flash-preview", "gemini-3-pro-preview", "gemini-3.1-pro-preview", "gemini-3.5-flash"):
        profile = library.ChatGoogleGenerativeAI(model=name, google_api_key="none").profile
        assert list(gemini_thinking(name).levels) == profile["reasoning_effort_levels"]
