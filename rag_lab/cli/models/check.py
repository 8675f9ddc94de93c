"""`rag-lab models check`: whether a model's replies change with the batch size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rag_lab.models.local.decoding.batch_check import BatchCheck
    from rag_lab.models.protocols import ChatRequest

_SHOWN = 3  # replies that changed


def check(
    model: Annotated[str, typer.Argument(help="As transformers:smollm2?batch_size=8.", show_default=False)],
    replies: Annotated[int, typer.Option(min=2, max=1000, help="How many requests to compare.")] = 20,
    max_tokens: Annotated[int, typer.Option(min=1, max=4096, help="Length of a reply.")] = 48,
) -> None:
    """Say how many greedy replies change when a model answers in batches.

    Each request is asked in a batch and alone. Replies that differ mean that scores depend on the batch size a little;
    with `?batch_size=1` they do not.

    \b
    Examples:
      rag-lab models check transformers:smollm2
      rag-lab models check "transformers:qwen3-8b?4bit=true&batch_size=4" --replies 50
    """
    from rag_lab.errors import ModelError
    from rag_lab.models.local.decoding.batch_check import check_batch
    from rag_lab.models.shared import chat_model
    from rag_lab.redaction import shown

    found = chat_model(model)
    size = int(getattr(found, "batch_size", 1))
    if size == 1:
        raise ModelError(
            f"{shown(model)} answers one request at a time, so no reply can depend on a batch; models of transformers "
            "and unsloth take batch_size."
        )
    for line in _told(check_batch(found, [_request(n, max_tokens) for n in range(replies)]), size):
        typer.echo(line)


def _told(found: BatchCheck, size: int) -> list[str]:
    from rag_lab.redaction import shown

    n, changed = len(found.alone), found.changed
    alone, together = found.tokens_a_second
    lines = [
        f"{len(changed)} of {n} greedy replies change with the batch size (1 or {size}).",
        f"Tokens a second: {alone:.1f} one at a time, {together:.1f} in batches.",
    ]
    for position in changed[:_SHOWN]:
        lines += [
            f"request {position + 1}",
            f"  alone     {shown(found.alone[position].text)}",
            f"  in batch  {shown(found.together[position].text)}",
        ]
    return lines


def _request(n: int, max_tokens: int) -> ChatRequest:
    """Return the n-th question about pumps, over one to six passages: requests of many lengths need padding."""
    from rag_lab.models.protocols import ChatRequest
    from rag_lab.records import Passage, Remembered
    from rag_lab.stages.answer.prompts import SCHEMA, answer_messages

    texts = [
        f"Pump {n + k}: bearing BR-{20 + n + k}, oil change every {500 + 250 * k} hours." for k in range(1 + n % 6)
    ]
    passages = [Passage(k + 1, f"p{k}", "pumps.md", None, 0, len(text), text) for k, text in enumerate(texts)]
    question = (f"How often does pump {n} get new oil?", f"Which bearing does pump {n} take?")[n % 2]
    return ChatRequest(answer_messages(question, Remembered(), passages), max_tokens, json_schema=SCHEMA)
