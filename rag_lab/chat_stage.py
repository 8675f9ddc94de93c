"""What every stage that asks a chat model has in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_lab.models.base import ChatReply
from rag_lab.records import StageStatus
from rag_lab.stage import Outcome


def chat_outcome(reply: ChatReply, updates: Mapping[str, Any], status: StageStatus = "ok", reason: str = "") -> Outcome:
    """Return the outcome of one call: its tokens, seconds and cost, and whether another attempt may cure its error."""
    return Outcome(
        updates=updates,
        status=status,
        reason=reason,
        seconds=reply.seconds,
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        cost_usd=reply.cost_usd,
        lasting=not reply.transient,
    )
