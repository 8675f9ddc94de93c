"""Query likelihood as relevance: how likely a causal language model finds the question, given the passage.

UPR: Sachan, Lewis, Joshi, Aghajanyan, Yih, Pineau, Zettlemoyer, *Improving Passage Retrieval with Zero-Shot Question
Generation*, EMNLP 2022, section 2.2: the mean log-probability of the question's tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rag_lab.models.local.causal import CausalSettings, Count, OnCausalLM, token_counter
from rag_lab.models.local.gguf_file import gguf_tokenizer
from rag_lab.models.weights import find

_BEFORE = "Passage: "
_AFTER = "\nPlease write a question based on this passage.\nQuestion:"
_DECIMALS = 6  # the last digits of float32 depend on what shares a batch


@dataclass(frozen=True, slots=True)
class _Row:
    index: int
    ids: list[int]
    asked: int  # position of the question's first token


class QueryLikelihoodScorer(OnCausalLM):
    """Scores in nats a token, at most 0. Weights: `smollm2`, a folder, a GGUF file or a hub name."""

    def __init__(
        self,
        name: str,
        *,
        four_bit: bool = False,
        dtype: str = "",
        device: str = "",
        batch_size: int = 16,
        passage_tokens: int = 160,
    ) -> None:
        super().__init__(CausalSettings(name, four_bit, dtype, device))
        self.batch_size = batch_size
        self.passage_tokens = passage_tokens

    def identity(self) -> Mapping[str, Any]:
        """Return provider, weights, how they are held, the prompt and the passage limit."""
        return {
            "provider": "transformers",
            **self.settings.identity(),
            "prompt": f"{_BEFORE}{{passage}}{_AFTER}",
            "passage_tokens": self.passage_tokens,
        }

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the mean log-likelihood a token of each question given its passage, in order, to six decimals."""
        rows = sorted(self._rows(pairs), key=lambda row: (len(row.ids), row.asked, row.ids))
        scores: dict[int, float] = {}
        for start in range(0, len(rows), self.batch_size):
            batch = rows[start : start + self.batch_size]
            scores.update(zip((row.index for row in batch), self._likelihoods(batch), strict=True))
        return [round(scores[index], _DECIMALS) for index in range(len(pairs))]

    @property
    def most_tokens(self) -> int:
        """The most tokens of a passage that it reads; questions are read whole."""
        return self.passage_tokens

    def pair_tokens(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return how many tokens each pair's passage has; the tokenizer counts alone, that of a GGUF file at once."""
        source = find(self.name)
        quick = gguf_tokenizer(Path(source.location)) if source.location.endswith(".gguf") else None
        if quick is not None:
            count: Count = lambda text: len(quick.encode(text, add_special_tokens=False).ids)  # noqa: E731
        else:
            count = self._count
        lengths = {text: count(text) for text in {passage for _, passage in pairs}}
        return [lengths[passage] for _, passage in pairs]

    def _rows(self, pairs: Sequence[tuple[str, str]]) -> list[_Row]:
        if not pairs:
            return []
        before, after = self._leading + self._tokens(_BEFORE), self._tokens(_AFTER)
        passages = {text: self._tokens(text)[: self.passage_tokens] for text in {passage for _, passage in pairs}}
        questions = {text: self._tokens(f" {text.strip()}") for text in {question for question, _ in pairs}}
        rows = []
        for index, (question, passage) in enumerate(pairs):
            prompt = before + passages[passage] + after
            rows.append(_Row(index, prompt + questions[question], len(prompt)))
        return rows

    def _likelihoods(self, batch: Sequence[_Row]) -> list[float]:
        """Return the mean log-likelihoods of one batch.

        Rows are padded on the right: causal attention never looks there, so no mask is needed and the fast kernel
        runs. Logits are computed only from the first question of the batch on: the vocabulary is the dear part.
        """
        import torch

        first = min(row.asked for row in batch) - 1  # the position that predicts a question's first token
        longest = max(len(row.ids) for row in batch)
        ids = torch.tensor([row.ids + [row.ids[-1]] * (longest - len(row.ids)) for row in batch])
        ids = ids.to(self._lm.model.device)
        with self._lm.lock, torch.inference_mode():
            kept = torch.arange(first, longest - 1, device=ids.device)
            logits = self._lm.model(input_ids=ids, use_cache=False, logits_to_keep=kept).logits.float()
            chosen = logits.gather(2, ids[:, first + 1 :, None]).squeeze(2)
            likelihoods = (chosen - logits.logsumexp(2)).double().cpu()
        return [
            float(values[row.asked - 1 - first : len(row.ids) - 1 - first].mean())
            for row, values in zip(batch, likelihoods, strict=True)
        ]

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    @cached_property
    def _leading(self) -> list[int]:
        """The token that some models (Gemma, Llama) expect before everything."""
        ids: list[int] = self._tokenizer("x")["input_ids"]
        return ids[:1] if ids[:1] != self._tokens("x")[:1] else []

    @cached_property
    def _count(self) -> Count:
        return token_counter(find(self.settings.name), self.settings.tokenizer)

    @cached_property
    def _tokenizer(self) -> Any:
        return self.settings.tokenizer()
