"""Which providers there are, as data, and names of models: `provider:name?option=value`. A provider is one entry.

Options (`?context=8192&device=cpu`) are typed; a secret is never an option.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import unquote

from rag_lab._kit.registry import BuiltIn, Kind
from rag_lab.errors import ModelError, unknown_name
from rag_lab.models.local.gguf import KV_TYPES, WEIGHTS
from rag_lab.models.requirements import check_url
from rag_lab.redaction import names_secret, redact_value

Value = str | int | float | bool
_SHOWN_CHARS = 40
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its type, its smallest and its largest value, its allowed values, and the argument it sets."""

    kind: type[str] | type[int] | type[float] | type[bool]
    minimum: int = 1
    maximum: int = 10_000_000
    choices: tuple[str, ...] = ()
    argument: str = ""  # the constructor's argument, where it cannot have the option's name


def parse_options(text: str, allowed: Mapping[str, Option]) -> dict[str, Value]:
    """Return the options written in `text` (`key=value&key=value`), typed, in the order given."""
    values: dict[str, Value] = {}
    for part in filter(None, text.split("&")):
        key, equals, raw = part.partition("=")
        if key not in allowed:
            if not equals:
                raise ModelError("An option of a model is written name=value, and one of them is not.")
            if names_secret(key):
                raise ModelError(
                    f"A model name must not hold secrets ({key!r}); set the provider's environment variable instead."
                )
            unknown = unknown_name("option of this model", key, allowed) if allowed else ""
            raise ModelError(unknown or f"This model has no option {key!r}.")
        if key in values:
            raise ModelError(f"The option {key!r} of a model is given twice; give it once.")
        values[key] = _typed(key, unquote(raw), allowed[key])
    return values


def _typed(key: str, raw: str, option: Option) -> Value:
    if option.kind is bool:
        if (value := _TRUTH.get(raw.lower())) is None:
            raise ModelError(f"The option {key} must be true or false, got {raw!r}.")
        return value
    if option.kind is str:
        if option.choices and raw not in option.choices:
            raise ModelError(unknown_name(f"value of the option {key}", raw, option.choices))
        if not raw:
            raise ModelError(f"The option {key} is empty; give it a value or leave it out.")
        if key == "base_url":
            check_url(raw, "The option base_url")
        return raw
    is_whole = option.kind is int
    try:
        number = int(raw) if is_whole else float(raw)
    except ValueError:
        number = -1
    if not option.minimum <= number <= option.maximum or number <= 0:
        noun = "whole number" if is_whole else "number"
        bound = f"of at least {option.minimum}" if option.minimum else "above 0"
        shown = raw if len(raw) <= _SHOWN_CHARS else f"{raw[:_SHOWN_CHARS]}…"
        raise ModelError(f"The option {key} must be a {noun} {bound} and at most {option.maximum:,}, got {shown!r}.")
    return number


_DEVICE = {"device": Option(str)}
_DTYPE = {"dtype": Option(str, choices=("float32", "bfloat16", "float16"))}
_BATCH = {"batch_size": Option(int, maximum=100_000)}
_CONTEXT = {"context": Option(int, minimum=16)}
_MAX_TOKENS = {"max_tokens": Option(int, minimum=16)}
_REMOTE = {
    "base_url": Option(str),
    "concurrency": Option(int, maximum=1024),
    "max_attempts": Option(int, maximum=100),
    "timeout_s": Option(float, minimum=0, maximum=86_400),
}
_SERVICE = {
    **_REMOTE,
    "requests_per_minute": Option(int, maximum=10_000_000),
    "tokens_per_minute": Option(int, maximum=100_000_000),
}
_OLLAMA = {**_REMOTE, **_CONTEXT, "keep_alive": Option(str)}
_VECTORS = {**_BATCH, "dimensions": Option(int), "document_prefix": Option(str), "query_prefix": Option(str)}
_FOUR_BIT = {"4bit": Option(bool, argument="four_bit")}
_RERANK = "rag_lab.models.remote.rerankers"
_GEMINI: dict[str, Any] = {
    "is_server": True,
    "needs": "langchain_google_genai",
    "install": "langchain-google-genai",
    "env": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
}
_OLLAMA_SERVER: dict[str, Any] = {
    "is_server": True,
    "install": "langchain-ollama",
    "problem": "rag_lab.models.remote.ollama:OllamaServer.server_problem",
}
_OPENAI: dict[str, Any] = {
    "is_server": True,
    "install": "langchain-openai",
    "env": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
}
_RERANKER: dict[str, Any] = {"is_server": True, "needs": "httpx"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider(BuiltIn):
    """One way to get one kind of model; `target` takes a model's name and its options."""

    example: str
    options: Mapping[str, Option] = field(default_factory=dict)
    env: tuple[str, ...] = ()  # environment variables of which one must be set
    is_server: bool = False  # its weights are elsewhere
    problem: str = ""  # `module:function` that returns what keeps it from answering now, where it can be asked at once
    check: str = ""  # `module:function` that returns why weights of this name cannot be used, where they are here
    needs_cuda: bool = False
    packaged: str = ""  # the short name whose weights arrive as a package
    sees_images: bool = False  # passes images on; whether the model can see them is the model's own


CHAT_MODELS = Kind(
    "chat model",
    "rag_lab.chat_models",
    {
        "llamacpp": Provider(
            "rag_lab.models.local.llamacpp:LlamaCppChat", "GGUF weights on the CPU", "xllamacpp",
            example="llamacpp:smollm2",
            options={**_CONTEXT, **_MAX_TOKENS, "threads": Option(int, maximum=1024),
                     "weights": Option(str, choices=WEIGHTS),
                     "kv": Option(str, choices=KV_TYPES), "batch": Option(int, maximum=65_536)},
            packaged="smollm2"),
        "transformers": Provider(
            "rag_lab.models.local.transformers:TransformersChat", "causal models of the hub, on the CPU or a GPU",
            "transformers", example="transformers:qwen3-8b?4bit=true",
            options={**_FOUR_BIT, **_DTYPE, **_DEVICE, **_BATCH}, packaged="smollm2"),
        "unsloth": Provider(
            "rag_lab.models.local.transformers:UnslothChat", "models of the hub in 4 bits, on an NVIDIA GPU",
            "unsloth", "rag_lab[unsloth]", example="unsloth:qwen3-8b", options={**_CONTEXT, **_BATCH}, needs_cuda=True),
        "gemini": Provider(
            "rag_lab.models.remote.gemini:GeminiChat", "Google's Gemini", example="gemini:gemini-2.5-flash",
            options=_SERVICE, **_GEMINI, sees_images=True),
        "ollama": Provider(
            "rag_lab.models.remote.ollama:OllamaChat", "models of an Ollama server, on this machine or another",
            "langchain_ollama", example="ollama:llama3.2:3b", options=_OLLAMA, **_OLLAMA_SERVER, sees_images=True),
        "openai": Provider(
            "rag_lab.models.remote.openai:OpenAIChat",
            "OpenAI, and every server with its interface (vLLM, llama.cpp, TGI)", "langchain_openai",
            example="openai:qwen3-8b?base_url=http://127.0.0.1:8000/v1",
            options={**_SERVICE, **_CONTEXT, "answers_as": Option(str)}, **_OPENAI, sees_images=True),
    },
    call="generate(self, requests)",
)  # fmt: skip

EMBEDDERS = Kind(
    "embedder",
    "rag_lab.embedders",
    {
        "sentence_transformers": Provider(
            "rag_lab.models.local.sentence_transformers:SentenceTransformerEmbedder",
            "embedding models of the hub, on the CPU or a GPU", "sentence_transformers", "sentence-transformers",
            example="sentence_transformers:minilm", options={**_DEVICE, **_BATCH}, packaged="minilm"),
        "gemini": Provider(
            "rag_lab.models.remote.embedders:GeminiEmbedder", "Google's embedding models",
            example="gemini:gemini-embedding-001", options={**_SERVICE, **_BATCH}, **_GEMINI),
        "ollama": Provider(
            "rag_lab.models.remote.embedders:OllamaEmbedder", "embedding models of an Ollama server", "ollama",
            example="ollama:bge-m3", options={**_OLLAMA, **_VECTORS}, **_OLLAMA_SERVER),
        "openai": Provider(
            "rag_lab.models.remote.embedders:OpenAIEmbedder",
            "OpenAI's embedding models, and those of every server with its interface (vLLM, TEI, llama.cpp)",
            "openai", example="openai:text-embedding-3-small?dimensions=512",
            options={**_SERVICE, **_VECTORS, **_CONTEXT}, **_OPENAI),
    },
    call="embed_documents(self, texts)",
)  # fmt: skip

CROSS_ENCODERS = Kind(
    "cross-encoder",
    "rag_lab.cross_encoders",
    {
        "sentence_transformers": Provider(
            "rag_lab.models.local.sentence_transformers:CrossEncoderScorer",
            "cross-encoders of the hub with one output", "sentence_transformers", "sentence-transformers",
            example="sentence_transformers:bge-reranker-v2-m3", options={**_DEVICE, **_BATCH, **_MAX_TOKENS}),
        "tei": Provider(
            f"{_RERANK}:TeiScorer", "the cross-encoder of a Text Embeddings Inference server",
            example="tei:BAAI/bge-reranker-v2-m3?base_url=http://gpu:8080", options={**_REMOTE, **_BATCH},
            **_RERANKER, problem=f"{_RERANK}:TeiScorer.server_problem"),
        "vllm": Provider(
            f"{_RERANK}:VllmScorer",
            "a cross-encoder of a vLLM server, or of another with its route /rerank (llama.cpp, Infinity)",
            example="vllm:BAAI/bge-reranker-v2-m3?base_url=http://gpu:8000",
            options={**_REMOTE, **_BATCH, **_MAX_TOKENS}, **_RERANKER, problem=f"{_RERANK}:VllmScorer.server_problem"),
        "cohere": Provider(
            f"{_RERANK}:CohereScorer", "Cohere's rerankers", example="cohere:rerank-v3.5",
            options={**_SERVICE, **_BATCH, **_MAX_TOKENS}, env=("CO_API_KEY", "COHERE_API_KEY"), **_RERANKER),
        "jina": Provider(
            f"{_RERANK}:JinaScorer", "Jina's rerankers", example="jina:jina-reranker-v2-base-multilingual",
            options={**_SERVICE, **_BATCH}, env=("JINA_API_KEY",), **_RERANKER),
    },
    call="score(self, pairs)",
)  # fmt: skip

QUERY_LIKELIHOODS = Kind(
    "query-likelihood scorer",
    "rag_lab.query_likelihoods",
    {
        "transformers": Provider(
            "rag_lab.models.local.causal:QueryLikelihoodScorer",
            "causal models of the hub: how likely the question is, given the passage", "transformers",
            example="transformers:smollm2",
            options={**_FOUR_BIT, **_DTYPE, **_DEVICE, **_BATCH, "passage_tokens": Option(int, minimum=8)},
            packaged="smollm2")
    },
    call="score(self, pairs)",
)  # fmt: skip

LATE_INTERACTIONS = Kind(
    "late-interaction model",
    "rag_lab.late_interactions",
    {
        "sentence_transformers": Provider(
            "rag_lab.models.local.late_interaction:MaxSimScorer",
            "the vectors of a passage's tokens: of an embedding model, or of a ColBERT", "sentence_transformers",
            "sentence-transformers", example="sentence_transformers:minilm",
            options={**_DEVICE, **_BATCH, "pool": Option(int, maximum=64)}, packaged="minilm",
            check="rag_lab.models.local.late_interaction:without_tokens")
    },
    call="score(self, pairs)",
)  # fmt: skip

SCORERS = {  # by the role that they play
    "cross_encoder": CROSS_ENCODERS,
    "likelihood": QUERY_LIKELIHOODS,
    "late_interaction": LATE_INTERACTIONS,
}
MODEL_KINDS = (CHAT_MODELS, EMBEDDERS, *SCORERS.values())


def providers_of(kind: Kind) -> Mapping[str, Provider]:
    """Return what is built in of one kind of model, by name, the default first."""
    return cast(Mapping[str, Provider], kind.built_in)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The parsed name of a model that a built-in provider gives. `options` holds only what was given."""

    provider: str
    name: str  # may hold colons and slashes
    options: Mapping[str, Value]

    @classmethod
    def parse(cls, text: str, kind: Kind = CHAT_MODELS) -> "ModelSpec":
        """Parse `text` as a model of this `kind`.

        Example:
            >>> ModelSpec.parse("openai:llama3.2:3b?concurrency=2").name
            'llama3.2:3b'
        """
        provider, name, options = split_name(text, kind)
        known = providers_of(kind)
        if provider not in known:
            raise ModelError(unknown_name(f"{kind.name} provider", provider, kind.names()))
        return cls(provider, name, parse_options(options, known[provider].options))

    def arguments(self, provider: Provider) -> dict[str, Value]:
        """Return the options as arguments of the provider's class."""
        return {provider.options[key].argument or key: value for key, value in self.options.items()}


def split_name(text: str, kind: Kind) -> tuple[str, str, str]:
    """Return provider, name and options of `provider:name?options`."""
    provider, colon, rest = text.strip().partition(":")
    name, _, options = rest.partition("?")
    if not (colon and provider and name):
        example = next(iter(providers_of(kind).values())).example
        raise ModelError(f"A model is named provider:name, for example {example}; got {redact_value(text)!r}.")
    return provider, name, options
