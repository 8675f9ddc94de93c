"""`rag-lab models show`: a model's card."""

from __future__ import annotations

from typing import Annotated

import typer


def show(
    model: Annotated[str, typer.Argument(help="provider:name, with its options.")],
    batch: Annotated[int, typer.Option(min=1, help="Sequences at a time, each of which needs a cache.")] = 1,
    measure: Annotated[bool, typer.Option("--measure", help="Load it and ask a few questions.")] = False,
) -> None:
    """Say what a model is, can do and will need of this machine; nothing is loaded unless it is measured.

    \b
    Examples:
      rag-lab models show "llamacpp:smollm2?weights=q4_0&kv=q8_0" --measure
      rag-lab models show unsloth:qwen3-8b --batch 8
    """
    from dataclasses import replace

    from rag_lab.models.card.measure import measure as measured
    from rag_lab.models.card.write_card import model_card
    from rag_lab.models.shared import chat_model

    card = model_card(model, batch)
    if measure:
        card = replace(card, measured=measured(chat_model(model)))
    typer.echo(str(card))
