"""What is said beside a text that a packaged chat model wrote: whose it is, and what to set instead on this machine."""

import os
import shutil
from contextlib import suppress
from urllib.parse import urlsplit

from rag_lab.errors import ModelError
from rag_lab.models.providers import CHAT_MODELS, providers_of, split_name
from rag_lab.models.requirements import cuda_problem, missing_key, missing_package

KEY = "models.generation"
_PORT_OF_OLLAMA = 11434


def small_model_note(spec: object, what: str = "this") -> str:
    """Return the note on `what` this chat model wrote; '' for any but the packaged ones."""
    if not is_small_model(spec):
        return ""
    return (
        f"A toy model wrote {what}: the packaged SmolLM2 (135 million parameters) shows that everything runs, and is "
        f"often wrong. {better_model()}"
    )


def is_small_model(spec: object) -> bool:
    """Tell whether a configuration's chat model is a packaged one; what is no name was brought by the user."""
    if not isinstance(spec, str):
        return False
    try:
        provider, name, _ = split_name(spec, CHAT_MODELS)
    except ModelError:
        return False
    known = providers_of(CHAT_MODELS).get(provider)
    return known is not None and bool(known.packaged) and name == known.packaged


def better_model() -> str:
    """Return what to set on this machine for a model worth asking, as a sentence; no key is repeated."""
    chat = providers_of(CHAT_MODELS)
    if not missing_key(chat["gemini"].env):
        return f"Its key is set here, so take Gemini: --set {KEY}={chat['gemini'].example}"
    ollama = chat["ollama"].example
    port = None
    with suppress(ValueError):
        port = urlsplit(os.environ.get("OPENAI_BASE_URL", "")).port
    if os.environ.get("OLLAMA_HOST") or port == _PORT_OF_OLLAMA:
        return f"An Ollama server is named here, so take a model of it: --set {KEY}={ollama}"
    if os.environ.get("OPENAI_BASE_URL"):
        return f"OPENAI_BASE_URL is set here, so take a model of that server: --set {KEY}=openai:NAME"
    if os.environ.get("OPENAI_API_KEY"):
        return f"A key is set here, so take OpenAI: --set {KEY}=openai:gpt-4o-mini"
    # torch is loaded for the second question alone
    if not missing_package("unsloth", "unsloth") and not cuda_problem("unsloth"):
        return f"There is a GPU here, so take: --set {KEY}={chat['unsloth'].example}"
    install = "" if shutil.which("ollama") else "install Ollama (https://ollama.com), "
    return (
        f"No key and no GPU is set up here; {install}run `rag-lab models pull {ollama}`, then take --set {KEY}={ollama}"
    )
