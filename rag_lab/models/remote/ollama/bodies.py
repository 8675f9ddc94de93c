"""What a successful reply of Ollama must look like; see `rag_lab.models.remote.reply_shapes`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, FiniteFloat, JsonValue, RootModel, StrictInt, StrictStr

from rag_lab.models.remote.failures import BadReply
from rag_lab.models.remote.reply_shapes import check_lengths, read_as


class _Message(BaseModel):
    role: StrictStr
    content: StrictStr | None = None
    thinking: StrictStr | None = None
    tool_calls: list[Any] | None = None


class _Chat(BaseModel):
    message: _Message
    done: Literal[True]
    done_reason: StrictStr | None = None
    prompt_eval_count: StrictInt | None = None
    eval_count: StrictInt | None = None


class _Embeddings(BaseModel):
    embeddings: Annotated[list[Annotated[list[FiniteFloat], Field(min_length=1)]], Field(min_length=1)]
    prompt_eval_count: StrictInt | None = None


class _Description(RootModel[dict[str, JsonValue]]):
    pass


def check_chat(content: bytes) -> None:
    """Check the body of a chat reply: whole, and not only the word that the model was loaded.

    Raises:
        BadReply: if it is anything else, in a user's words.
    """
    found = read_as(content, _Chat, "reply of Ollama")
    if found.done_reason == "load":
        raise BadReply("Ollama loaded the model and wrote no reply")


def check_embeddings(content: bytes) -> None:
    """Check the body of a batch of embeddings: finite vectors of one length; see `check_chat`."""
    check_lengths(read_as(content, _Embeddings, "batch of embeddings").embeddings)


def check_description(content: bytes) -> None:
    """Check the body of what tells of models: a JSON object; see `check_chat`."""
    read_as(content, _Description, "description of models")
