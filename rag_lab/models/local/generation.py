"""Batched generation with a causal language model: left padding, greedy in batches, sampled one by one by seed."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rag_lab.models.local.causal import CausalLM
from rag_lab.models.local.decoding.guided_batch import Follow, Restrict
from rag_lab.models.local.decoding.guided_prompt import GuidedPrompt, PromptError, can_think, guided_prompt
from rag_lab.models.local.decoding.sampling import is_sampled, sampling_of
from rag_lab.models.local.decoding.schema_matcher import SchemaError
from rag_lab.models.protocols import ChatReply, ChatRequest
from rag_lab.models.requirements import library
from rag_lab.models.thinking import split_thinking

_VERSION = 3


def decoding_identity() -> dict[str, Any]:
    """Return what replies depend on besides weights and request: our version and that of the library for schemas.

    How a model samples follows from its weights: their card is one of their files.
    """
    return {"decoding": _VERSION, "schema_library": library("llguidance")}


def generate_replies(
    lm: CausalLM, requests: Sequence[ChatRequest], batch_size: int, context_tokens: int
) -> list[ChatReply]:
    """Return one reply for each request, in order.

    A prompt that leaves no room for a reply or that the template refuses is an error reply, and so is a schema that
    cannot be followed.
    """
    replies: dict[int, ChatReply] = {}
    groups: dict[tuple[int, bool], list[tuple[int, GuidedPrompt]]] = defaultdict(list)
    for index, request in enumerate(requests):
        try:
            prompt = guided_prompt(lm.tokenizer, _end_tokens(lm), request, context_tokens)
        except (SchemaError, PromptError) as error:
            replies[index] = ChatReply(error=str(error))
        else:
            sampled = is_sampled(request, can_think(lm.tokenizer))
            groups[prompt.guide.most_tokens, sampled].append((index, prompt))
    for (_, sampled), prompts in groups.items():
        prompts.sort(key=lambda each: len(each[1].ids))  # neighbours of one length need little padding
        size = 1 if sampled else batch_size
        for start in range(0, len(prompts), size):
            batch = prompts[start : start + size]
            written = _run(lm, [prompt for _, prompt in batch])
            replies.update(zip((index for index, _ in batch), written, strict=True))
    return [replies[index] for index in range(len(requests))]


def _run(lm: CausalLM, batch: Sequence[GuidedPrompt]) -> list[ChatReply]:
    import torch
    from transformers import GenerationConfig

    start = time.perf_counter()
    ids, mask = _left_padded([prompt.ids for prompt in batch], lm.tokenizer.pad_token_id)
    guides = [prompt.guide for prompt in batch]
    request, model = batch[0].request, lm.model
    config = GenerationConfig(
        max_new_tokens=max(guide.most_tokens for guide in guides),
        eos_token_id=list(_end_tokens(lm)),
        pad_token_id=lm.tokenizer.pad_token_id,
        **sampling_of(model.config, model.generation_config, request, can_think(lm.tokenizer)),
    )
    device = model.device
    devices = [device] if device.type == "cuda" else []
    with lm.lock, torch.inference_mode(), torch.random.fork_rng(devices):
        torch.manual_seed(request.seed)
        _, machine = lm.meter.measured(
            lambda: model.generate(
                input_ids=ids.to(device),
                attention_mask=mask.to(device),
                generation_config=config,
                logits_processor=[Restrict(guides)],
                stopping_criteria=[Follow(guides)],
            )
        )
    seconds = (time.perf_counter() - start) / len(batch)
    share = machine.share(len(batch))
    return [replace(_reply(lm.tokenizer, prompt, seconds), machine=share) for prompt in batch]


def _end_tokens(lm: CausalLM) -> tuple[int, ...]:
    """Return the tokens that end a reply: the tokenizer's and those that the model's card names."""
    ends = lm.model.generation_config.eos_token_id
    ends = ends if isinstance(ends, list) else [ends]
    return tuple(sorted({end for end in [*ends, lm.tokenizer.eos_token_id] if end is not None}))


def _left_padded(rows: Sequence[list[int]], pad: int) -> tuple[Any, Any]:
    """Return ids and mask of shape (n_rows, longest): the prompts end together, where writing begins."""
    import torch

    longest = max(map(len, rows))
    ids = torch.tensor([[pad] * (longest - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    return ids, mask


def _reply(tokenizer: Any, prompt: GuidedPrompt, seconds: float) -> ChatReply:
    guide = prompt.guide
    if guide.problem:
        return ChatReply(error=guide.problem, seconds=seconds)
    text, unmarked = split_thinking(_decoded(tokenizer, guide.reply_ids))
    thinking = _decoded(tokenizer, guide.thought_ids).removeprefix("<think>").strip().removesuffix("</think>").strip()
    return ChatReply(
        text=text,
        thinking=thinking or unmarked,
        tokens_in=len(prompt.ids),
        tokens_out=len(guide.thought_ids) + len(guide.reply_ids),
        seconds=seconds,
        truncated=guide.truncated,
        closed_early=guide.closed_early,
        thinking_tokens=len(guide.thought_ids),
    )


def _decoded(tokenizer: Any, ids: list[int]) -> str:
    text: str = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return text
