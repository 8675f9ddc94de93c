"""Guides of several replies as transformers' `generate` asks for them: before a token is chosen, and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_lab.models.local.decoding.reply_guide import ReplyGuide


class Restrict:
    """A logits processor: scores of shape (n_rows, vocabulary) lose what a row's reply may not go on with."""

    def __init__(self, guides: Sequence[ReplyGuide]) -> None:
        self._guides = guides

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the scores of what may come next."""
        scores = scores.clone()
        for guide, row in zip(self._guides, scores, strict=True):
            guide.restrict(row)
        return scores


class Follow:
    """A stopping criterion: tells each guide the token that was written, and stops the rows whose replies are over."""

    def __init__(self, guides: Sequence[ReplyGuide]) -> None:
        self._guides = guides

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        """Return for each row whether it is over."""
        import torch

        for guide, token in zip(self._guides, input_ids[:, -1].tolist(), strict=True):
            guide.take(token)
        return torch.tensor([guide.over for guide in self._guides], device=input_ids.device)
