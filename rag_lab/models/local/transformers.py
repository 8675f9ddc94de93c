"""Causal models of the transformers library, called with their chat template, and the same in 4 bits through unsloth.

The model itself and not a HuggingFacePipeline: the pipeline hides token counts, the padding side and the thinking
switch of the template.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from rag_lab.errors import ModelError
from rag_lab.models import protocols, requirements, weights
from rag_lab.models.local import causal, generation

_PACKAGE = "rag_lab[unsloth]"


class TransformersChat(causal.OnCausalLM):
    """`smollm2`, `qwen3-8b`, `gemma-3-4b`, a folder, a GGUF file or a hub name; 4 bits and thinking where possible."""

    constrains_json = True
    counts_alone = True  # no weights are loaded to count tokens

    def __init__(
        self, name: str, *, four_bit: bool = False, dtype: str = "", device: str = "", batch_size: int = 8
    ) -> None:
        super().__init__(causal.CausalSettings(name, four_bit, dtype, device))
        self.batch_size = batch_size

    @cached_property
    def context_tokens(self) -> int:
        """How much the model can read and write together: by default, what its configuration says."""
        return self.settings.context_tokens()

    def identity(self) -> Mapping[str, Any]:
        """Return provider, weights, how they are held, batch size and how replies are decoded."""
        return {
            "provider": "transformers",
            **self.settings.identity(),
            "batch_size": self.batch_size,  # arithmetic on a padded batch differs in the last digits
            **generation.decoding_identity(),
        }

    def generate(self, requests: Sequence[protocols.ChatRequest]) -> list[protocols.ChatReply]:
        """Return one reply for each request, in order, held to its `json_schema` where it has one."""
        if not requests:
            return []
        return generation.generate_replies(self._lm, requests, self.batch_size, self.context_tokens)

    def count_tokens(self, text: str) -> int:
        """Return the exact number of tokens; the tokenizer counts alone, from the second process on without torch."""
        return self._count(text)

    @cached_property
    def _count(self) -> Callable[[str], int]:
        return lru_cache(65_536)(causal.token_counter(weights.find(self.settings.name), self.settings.tokenizer))

    @cached_property
    def _lm(self) -> causal.CausalLM:
        lm = self._loaded()
        if not lm.tokenizer.chat_template:
            name = weights.find(self.settings.name).name
            raise ModelError(
                f"The tokenizer of {name!r} has no chat template, so the model cannot be asked "
                "anything; choose one that was tuned for chats, often called Instruct or it."
            )
        return lm

    def _loaded(self) -> causal.CausalLM:
        return self.settings.load()


class UnslothChat(TransformersChat):
    """`gemma-3-4b`, `qwen3-8b`, a folder or a hub name, in 4 bits. Qwen3 thinks where a request asks for it."""

    def __init__(self, name: str, *, context: int = 8192, batch_size: int = 8) -> None:
        super().__init__(name, four_bit=True, batch_size=batch_size)
        self.context_tokens = context

    @property
    def weights_held(self) -> str:
        """The weights with their context, as this library holds them."""
        return f"unsloth {self.name} {self.context_tokens}"

    def identity(self) -> Mapping[str, Any]:
        """Return provider, weights, quantization, context size, batch size and how replies are decoded."""
        source = weights.find(self.name)
        return {
            "provider": "unsloth",
            "name": source.name,
            "weights": source.digest(),
            "four_bit": True,
            "context_tokens": self.context_tokens,
            "batch_size": self.batch_size,
            **generation.decoding_identity(),
        }

    def _loaded(self) -> causal.CausalLM:
        problem = requirements.missing_package("unsloth", _PACKAGE) or requirements.cuda_problem("unsloth")
        if problem:  # before the import: unsloth patches torch and transformers as it loads
            raise ModelError(problem)
        library = requirements.require_package("unsloth", _PACKAGE)
        source = weights.find(self.name)
        with weights.loading(source):  # of which unsloth may take another repository's: no revision is pinned
            model, processor = library.FastLanguageModel.from_pretrained(
                model_name=source.location, max_seq_length=self.context_tokens, load_in_4bit=True
            )
            library.FastLanguageModel.for_inference(model)
        tokenizer = getattr(processor, "tokenizer", processor)  # multimodal models such as Gemma 3 bring a processor
        if tokenizer.chat_template is None:
            tokenizer.chat_template = processor.chat_template
        return causal.CausalLM(model, tokenizer)
