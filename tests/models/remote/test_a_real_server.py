"""llama.cpp's own server, asked as any OpenAI-compatible one, with a model that thinks."""

import json

import pytest
from tiny_models import ALWAYS_THINKING, SWITCHED, write_thinking_gguf

from rag_lab.models.local.llamacpp import LlamaCppChat
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.remote.openai import OpenAIChat

pytestmark = pytest.mark.slow

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 20}},
    "required": ["answer"],
    "additionalProperties": False,
}


@pytest.fixture(params=[SWITCHED, ALWAYS_THINKING], ids=["switched", "always"])
def model(request, tmp_path, monkeypatch):
    path = write_thinking_gguf(tmp_path / "thinking.gguf", request.param)
    server = LlamaCppChat(str(path), context=1024).loaded[0]  # answers as long as it is held
    monkeypatch.setenv("OPENAI_API_KEY", server._key)
    address = server._server.listening_address
    yield OpenAIChat(str(path), base_url=f"{address}/v1", concurrency=1, max_attempts=1, timeout_s=300)


@pytest.mark.parametrize("thinking_tokens", [0, 20])
def test_a_thought_ends_at_its_budget_and_the_reply_is_held_to_its_form(model, thinking_tokens):
    asked = ChatRequest((Message("user", "What is 2 + 2?"),), 64, json_schema=SCHEMA, thinking_tokens=thinking_tokens)
    (reply,) = model.generate([asked])
    assert reply.error == ""
    assert list(json.loads(reply.text)) == ["answer"]
    if thinking_tokens:
        assert 0 < reply.thinking_tokens < reply.tokens_out <= 20 + 8 + 64
