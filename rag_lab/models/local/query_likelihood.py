"""Query likelihood as relevance: how likely a causal language model finds the question, given the passage.

UPR: Sachan, Lewis, Joshi, Aghajanyan, Yih, Pineau, Zettlemoyer, *Improving Passage Retrieval with Zero-Shot Question
Generation*, EMNLP 2022, section 2.2: the mean log-probability of the question's tokens.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from rag_lab.models.local import causal, gguf_file
from rag_lab.models.weights import find

_BEFORE = "Passage: "
_AFTER = "\nPlease write a question based on this passage.\nQuestion:"
_DECIMALS = 6  # the last digits of float32 depend on what shares a batch


class QueryLikelihoodScorer(causal.OnCausalLM):
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
        super().__init__(causal.CausalSettings(name, four_bit, dtype, device))
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
        if not pairs:
            return []
        with_marks, bare = self._tokenizer("x")["input_ids"][:1], self._tokens("x")[:1]
        leading = with_marks if with_marks != bare else []  # what some models (Gemma, Llama) expect before everything
        before, after = leading + self._tokens(_BEFORE), self._tokens(_AFTER)
        passages = {text: self._tokens(text)[: self.passage_tokens] for text in {passage for _, passage in pairs}}
        questions = {text: self._tokens(f" {text.strip()}") for text in {question for question, _ in pairs}}
        rows = []  # tokens, and the position of the question's first one
        for question, passage in pairs:
            prompt = before + passages[passage] + after
            rows.append((prompt + questions[question], len(prompt)))
        order = sorted(range(len(rows)), key=lambda index: (len(rows[index][0]), rows[index][1], rows[index][0]))
        scores: dict[int, float] = {}
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            scores.update(zip(batch, self._likelihoods([rows[index] for index in batch]), strict=True))
        return [round(scores[index], _DECIMALS) for index in range(len(pairs))]

    @property
    def most_tokens(self) -> int:
        """The most tokens of a passage that it reads; questions are read whole."""
        return self.passage_tokens

    def pair_tokens(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return how many tokens each pair's passage has; the tokenizer counts alone, that of a GGUF file at once."""
        source = find(self.name)
        quick = gguf_file.gguf_tokenizer(Path(source.location)) if source.location.endswith(".gguf") else None
        if quick is not None:
            count: causal.Count = lambda text: len(quick.encode(text, add_special_tokens=False).ids)  # noqa: E731
        else:
            count = self._count
        lengths = {text: count(text) for text in {passage for _, passage in pairs}}
        return [lengths[passage] for _, passage in pairs]

    def _likelihoods(self, batch: Sequence[tuple[list[int], int]]) -> list[float]:
        """Return the mean log-likelihoods of one batch.

        Rows are padded on the right: causal attention never looks there, so no mask is needed and the fast kernel
        runs. Logits are computed only from the first question of the batch on: the vocabulary is the dear part.
        """
        import torch

        first = min(asked for _, asked in batch) - 1  # the position that predicts a question's first token
        longest = max(len(ids) for ids, _ in batch)
        ids = torch.tensor([row + [row[-1]] * (longest - len(row)) for row, _ in batch])
        ids = ids.to(self._lm.model.device)
        with self._lm.lock, torch.inference_mode():
            kept = torch.arange(first, longest - 1, device=ids.device)
            logits = self._lm.model(input_ids=ids, use_cache=False, logits_to_keep=kept).logits.float()
            chosen = logits.gather(2, ids[:, first + 1 :, None]).squeeze(2)
            likelihoods = (chosen - logits.logsumexp(2)).double().cpu()
        return [
            float(values[asked - 1 - first : len(row) - 1 - first].mean())
            for (row, asked), values in zip(batch, likelihoods, strict=True)
        ]

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    @cached_property
    def _count(self) -> causal.Count:
        return causal.token_counter(find(self.settings.name), self.settings.tokenizer)

    @cached_property
    def _tokenizer(self) -> Any:
        return self.settings.tokenizer()
