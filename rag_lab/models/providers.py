"""Which providers there are: data only. Adding one is one file in this room and one entry here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rag_lab.models.options import Option

Kind = Literal["chat", "embedding", "cross_encoder", "query_likelihood"]

_DEVICE = {"device": Option(str)}
_DTYPE = {"dtype": Option(str, choices=("float32", "bfloat16", "float16"))}
_BATCH = {"batch_size": Option(int, maximum=100_000)}
_CONTEXT = {"context": Option(int, minimum=16)}
_THREADS = {"threads": Option(int, maximum=1024)}
_REMOTE = {
    "base_url": Option(str),
    "concurrency": Option(int, maximum=1024),
    "max_attempts": Option(int, maximum=100),
    "timeout_s": Option(float, minimum=0, maximum=86_400),
}
_FOUR_BIT = {"4bit": Option(bool, argument="four_bit")}
_GEMINI_KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")


@dataclass(frozen=True, slots=True)
class Provider:
    """One way to get one kind of model."""

    name: str
    kind: Kind
    target: str  # module:Class
    module: str  # what must be importable
    package: str  # what to install for it
    example: str
    options: Mapping[str, Option] = field(default_factory=dict)
    env: tuple[str, ...] = ()  # environment variables of which one must be set
    needs_cuda: bool = False
    packaged: str = ""  # the short name whose weights arrive as a package
    sees_images: bool = False  # passes images on; whether the model can see them is the model's own


PROVIDERS: tuple[Provider, ...] = (
    Provider(
        "llamacpp",
        "chat",
        "rag_lab.models.local.llamacpp:LlamaCppChat",
        "xllamacpp",
        "xllamacpp",
        "llamacpp:smollm2",
        {**_CONTEXT, **_THREADS, "max_tokens": Option(int, minimum=16)},
        packaged="smollm2",
    ),
    Provider(
        "transformers",
        "chat",
        "rag_lab.models.local.transformers:TransformersChat",
        "transformers",
        "transformers",
        "transformers:qwen3-8b?4bit=true",
        {**_FOUR_BIT, **_DTYPE, **_DEVICE, **_BATCH},
        packaged="smollm2",
    ),
    Provider(
        "unsloth",
        "chat",
        "rag_lab.models.local.unsloth:UnslothChat",
        "unsloth",
        "rag_lab[unsloth]",
        "unsloth:qwen3-8b",
        {**_CONTEXT, **_BATCH},
        needs_cuda=True,
    ),
    Provider(
        "gemini",
        "chat",
        "rag_lab.models.remote.gemini:GeminiChat",
        "langchain_google_genai",
        "langchain-google-genai",
        "gemini:gemini-2.5-flash",
        _REMOTE,
        _GEMINI_KEYS,
        sees_images=True,
    ),
    Provider(
        "openai",
        "chat",
        "rag_lab.models.remote.openai:OpenAIChat",
        "langchain_openai",
        "langchain-openai",
        "openai:llama3.2:3b?base_url=http://127.0.0.1:11434/v1",
        {**_REMOTE, **_CONTEXT},
        ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
        sees_images=True,
    ),
    Provider(
        "sentence_transformers",
        "embedding",
        "rag_lab.models.local.sentence_transformers:SentenceTransformerEmbedder",
        "sentence_transformers",
        "sentence-transformers",
        "sentence_transformers:minilm",
        {**_DEVICE, **_BATCH},
        packaged="minilm",
    ),
    Provider(
        "gemini",
        "embedding",
        "rag_lab.models.remote.gemini_embeddings:GeminiEmbedder",
        "langchain_google_genai",
        "langchain-google-genai",
        "gemini:gemini-embedding-001",
        {**_REMOTE, **_BATCH},
        _GEMINI_KEYS,
    ),
    Provider(
        "sentence_transformers",
        "cross_encoder",
        "rag_lab.models.local.cross_encoder:CrossEncoderScorer",
        "sentence_transformers",
        "sentence-transformers",
        "sentence_transformers:bge-reranker-v2-m3",
        {**_DEVICE, **_BATCH, "max_tokens": Option(int, minimum=16)},
    ),
    Provider(
        "transformers",
        "query_likelihood",
        "rag_lab.models.local.query_likelihood:QueryLikelihoodScorer",
        "transformers",
        "transformers",
        "transformers:smollm2",
        {**_FOUR_BIT, **_DTYPE, **_DEVICE, **_BATCH, "passage_tokens": Option(int, minimum=8)},
        packaged="smollm2",
    ),
)


def providers_of(kind: Kind) -> dict[str, Provider]:
    """Return the providers of one kind by name, the default first."""
    return {provider.name: provider for provider in PROVIDERS if provider.kind == kind}
