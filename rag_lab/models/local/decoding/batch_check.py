"""Whether replies depend on the batch they were written in: batch == single, asked of a model before it is trusted.

Greedy replies of one model to one request should be equal whatever stands beside them. Padding and other shapes change
the last digits of the arithmetic, though, and where two tokens are almost as likely the reply goes another way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_lab.errors import ModelError
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest


@dataclass(frozen=True, slots=True)
class BatchCheck:
    """Replies to the same requests, one at a time and together, in the order of the requests."""

    alone: tuple[ChatReply, ...]
    together: tuple[ChatReply, ...]

    @property
    def changed(self) -> tuple[int, ...]:
        """The positions of the requests whose text is another one in the batch."""
        pairs = enumerate(zip(self.alone, self.together, strict=True))
        return tuple(n for n, (alone, together) in pairs if alone.text != together.text)

    @property
    def tokens_a_second(self) -> tuple[float, float]:
        """Tokens written a second, one at a time and together."""
        return _speed(self.alone), _speed(self.together)


def check_batch(model: ChatModel, requests: Sequence[ChatRequest]) -> BatchCheck:
    """Ask `model` everything together and then one at a time.

    Raises:
        ModelError: if a request has no reply, or is not greedy: a sampled reply is written alone anyway.
    """
    if any(request.temperature > 0 or request.thinking for request in requests):
        raise ModelError("Batches are checked with greedy requests: temperature 0 and no thinking.")
    model.generate(requests[:1])  # loads the model, which belongs to neither way
    together = model.generate(requests)
    alone = [model.generate([request])[0] for request in requests]
    failed = next((reply.error for reply in [*together, *alone] if reply.error), "")
    if failed:
        raise ModelError(f"The model gave no reply to compare: {failed}")
    return BatchCheck(tuple(alone), tuple(together))


def _speed(replies: Sequence[ChatReply]) -> float:
    seconds = sum(reply.seconds for reply in replies)
    return sum(reply.tokens_out for reply in replies) / seconds if seconds else 0.0
