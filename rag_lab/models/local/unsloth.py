"""4-bit models through unsloth's FastLanguageModel. Needs an NVIDIA GPU.

Written against the documented interface of unsloth 2026.10; it has not been run on a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_lab.errors import ModelError
from rag_lab.models.local.causal import CausalLM
from rag_lab.models.local.generation import decoding_identity
from rag_lab.models.local.transformers import TransformersChat
from rag_lab.models.requirements import cuda_problem, missing_package, require_package
from rag_lab.models.weights import find, loading_error

_PACKAGE = "rag_lab[unsloth]"


class UnslothChat(TransformersChat):
    """`gemma-3-4b`, `qwen3-8b`, a folder or a hub name, in 4 bits. Qwen3 thinks where a request asks for it."""

    def __init__(self, name: str, *, context: int = 8192, batch_size: int = 8) -> None:
        super().__init__(name, four_bit=True, batch_size=batch_size)
        self.name = name
        self.context_tokens = context

    @property
    def weights_held(self) -> str:
        """The weights with their context, as this library holds them."""
        return f"unsloth {self.name} {self.context_tokens}"

    def identity(self) -> Mapping[str, Any]:
        """Return provider, weights, quantization, context size, batch size and how replies are decoded."""
        source = find(self.name)
        return {
            "provider": "unsloth",
            "name": source.name,
            "weights": source.digest(),
            "four_bit": True,
            "context_tokens": self.context_tokens,
            "batch_size": self.batch_size,
            **decoding_identity(),
        }

    def _load(self) -> CausalLM:
        problem = missing_package("unsloth", _PACKAGE) or cuda_problem("unsloth")
        if problem:  # before the import: unsloth patches torch and transformers as it loads
            raise ModelError(problem)
        library = require_package("unsloth", _PACKAGE)
        source = find(self.name)  # unsloth may take another repository's weights for it, so no revision is pinned
        try:
            model, processor = library.FastLanguageModel.from_pretrained(
                model_name=source.location, max_seq_length=self.context_tokens, load_in_4bit=True
            )
            library.FastLanguageModel.for_inference(model)
        except Exception as error:
            raise loading_error(source, error) from error
        tokenizer = getattr(processor, "tokenizer", processor)  # multimodal models such as Gemma 3 bring a processor
        if tokenizer.chat_template is None:
            tokenizer.chat_template = processor.chat_template
        return CausalLM(model, tokenizer)
