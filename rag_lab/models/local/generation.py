"""Batched generation with a causal language model: left padding, greedy in batches, sampled one by one by seed."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_lab.models.local.causal import CausalLM
from rag_lab.models.protocols import ChatReply, ChatRequest
from rag_lab.models.thinking import split_thinking

THINKING_SAMPLING: Mapping[str, float] = {"temperature": 0.6, "top_p": 0.95, "top_k": 20}
PLAIN_SAMPLING: Mapping[str, float] = {"top_p": 0.8, "top_k": 20}
"""Qwen3's documented settings. Thinking is always sampled with its own temperature: greedy thinking loops."""


@dataclass(frozen=True, slots=True)
class _Prompt:
    index: int
    ids: list[int]
    max_tokens: int
    request: ChatRequest


def generate_replies(
    lm: CausalLM, requests: Sequence[ChatRequest], batch_size: int, context_tokens: int
) -> list[ChatReply]:
    """Return one reply for each request, in order. A prompt that leaves no room for a reply is an error reply."""
    replies: dict[int, ChatReply] = {}
    groups: dict[tuple[int, bool], list[_Prompt]] = defaultdict(list)
    for index, request in enumerate(requests):
        ids = _prompt_ids(lm.tokenizer, request)
        room = context_tokens - len(ids)
        if room < 1:
            replies[index] = ChatReply(error=_too_long(len(ids), context_tokens))
            continue
        prompt = _Prompt(index, ids, min(request.max_tokens, room), request)
        groups[prompt.max_tokens, is_sampled(lm.tokenizer, request)].append(prompt)
    for (_, sampled), prompts in groups.items():
        prompts.sort(key=lambda prompt: len(prompt.ids))  # neighbours of one length need little padding
        size = 1 if sampled else batch_size
        for start in range(0, len(prompts), size):
            batch = prompts[start : start + size]
            replies.update(zip((prompt.index for prompt in batch), _run(lm, batch), strict=True))
    return [replies[index] for index in range(len(requests))]


def knows_thinking(tokenizer: Any) -> bool:
    """Return whether the chat template has a thinking switch."""
    return "enable_thinking" in str(tokenizer.chat_template or "")


def is_sampled(tokenizer: Any, request: ChatRequest) -> bool:
    """Return whether the reply is sampled: by temperature, or because the model thinks."""
    return request.temperature > 0 or (request.thinking and knows_thinking(tokenizer))


def sampling_of(tokenizer: Any, request: ChatRequest) -> dict[str, Any]:
    """Return the sampling settings of a request; models with a thinking switch get Qwen3's documented ones."""
    if not is_sampled(tokenizer, request):
        return {"do_sample": False}
    if not knows_thinking(tokenizer):
        return {"do_sample": True, "temperature": request.temperature}
    if request.thinking:
        return {"do_sample": True, **THINKING_SAMPLING}
    return {"do_sample": True, "temperature": request.temperature, **PLAIN_SAMPLING}


def _prompt_ids(tokenizer: Any, request: ChatRequest) -> list[int]:
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    switch = {"enable_thinking": request.thinking} if knows_thinking(tokenizer) else {}
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **switch)
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]  # the template wrote the special tokens
    return ids


def _too_long(tokens: int, context_tokens: int) -> str:
    return f"The prompt has {tokens} tokens and the context holds {context_tokens}; shorten it or choose another model."


def _run(lm: CausalLM, batch: Sequence[_Prompt]) -> list[ChatReply]:
    import torch
    from transformers import GenerationConfig

    start = time.perf_counter()
    ids, mask = _left_padded([prompt.ids for prompt in batch], lm.tokenizer.pad_token_id)
    config = GenerationConfig(
        max_new_tokens=batch[0].max_tokens,
        eos_token_id=_end_tokens(lm),
        pad_token_id=lm.tokenizer.pad_token_id,
        **sampling_of(lm.tokenizer, batch[0].request),
    )
    device = lm.model.device
    devices = [device] if device.type == "cuda" else []
    with lm.lock, torch.inference_mode(), torch.random.fork_rng(devices):
        torch.manual_seed(batch[0].request.seed)
        output = lm.model.generate(input_ids=ids.to(device), attention_mask=mask.to(device), generation_config=config)
    seconds = (time.perf_counter() - start) / len(batch)
    written = output[:, ids.shape[1] :].tolist()
    return [_reply(lm, prompt, row, seconds) for prompt, row in zip(batch, written, strict=True)]


def _left_padded(rows: Sequence[list[int]], pad: int) -> tuple[Any, Any]:
    """Return ids and mask of shape (n_rows, longest): the prompts end together, where writing begins."""
    import torch

    longest = max(map(len, rows))
    ids = torch.tensor([[pad] * (longest - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    return ids, mask


def _end_tokens(lm: CausalLM) -> list[int]:
    ends = lm.model.generation_config.eos_token_id
    ends = ends if isinstance(ends, list) else [ends]
    return sorted({end for end in [*ends, lm.tokenizer.eos_token_id] if end is not None})


def _reply(lm: CausalLM, prompt: _Prompt, row: list[int], seconds: float) -> ChatReply:
    ends = set(_end_tokens(lm))
    length = next((position for position, token in enumerate(row) if token in ends), len(row))
    text, thinking = split_thinking(lm.tokenizer.decode(row[:length], skip_special_tokens=True))
    return ChatReply(
        text=text,
        thinking=thinking,
        tokens_in=len(prompt.ids),
        tokens_out=min(length + 1, len(row)),
        seconds=seconds,
        truncated=length == len(row),
    )
