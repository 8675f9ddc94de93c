"""Batched generation with a causal language model: left padding, greedy in batches, sampled one by one by seed."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_lab.errors import ModelError
from rag_lab.models.local import causal, schema_matcher
from rag_lab.models.local.guided_reply import GuidedPrompt, PromptError, can_think, guided_prompt
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, split_thinking
from rag_lab.models.requirements import library

_QWEN3 = ("qwen3", "qwen3_moe")
_QWEN3_PLAIN: Mapping[str, float] = {"temperature": 0.7, "top_p": 0.8, "top_k": 20}
"""Qwen3's `generation_config.json` is that of thinking; its model card documents these for replies without."""

_THINKING: Mapping[str, float] = {"temperature": 0.6, "top_p": 0.95, "top_k": 20}
"""Qwen3's documented settings of thinking, for cards that name no temperature: greedy thinking goes in circles."""

_GREEDY: Mapping[str, Any] = {"do_sample": False, "temperature": 1.0, "top_p": 1.0, "top_k": 50}
"""The library's own neutral values: it warns of a card's settings that greedy decoding does not use."""

_NEUTRAL: Mapping[str, float | None] = {"top_p": 1.0, "top_k": 0, "min_p": None}
_VERSION = 4


def sampling_of(config: Any, card: Any, request: ChatRequest, thinks: bool) -> dict[str, Any]:
    """Return the arguments of `GenerationConfig` for a request that the model thinks about or not.

    `config` is the model's configuration, `card` its generation configuration. A temperature of 0 is greedy, but for
    thoughts, which then have the card's temperature.
    """
    thinking = thinks and request.thinking
    if not is_sampled(request, thinks):
        return dict(_GREEDY)
    found = {key: getattr(card, key, None) for key in ("temperature", "top_p", "top_k", "min_p")}
    named = {key: value for key, value in found.items() if value is not None}
    if thinking and "temperature" not in named:
        named = {**_THINKING, **named}
    elif thinks and not thinking and config.model_type in _QWEN3:
        named = {**named, **_QWEN3_PLAIN}
    temperature = request.temperature or named["temperature"]
    return {"do_sample": True, **_NEUTRAL, **named, **request.sampling, "temperature": temperature}


def is_sampled(request: ChatRequest, thinks: bool) -> bool:
    """Return whether the reply is sampled: by temperature, or because the model thinks."""
    return request.temperature > 0 or (thinks and request.thinking)


def decoding_identity() -> dict[str, Any]:
    """Return what replies depend on besides weights and request: our version and that of the library for schemas.

    How a model samples follows from its weights: their card is one of their files.
    """
    return {"decoding": _VERSION, "schema_library": library("llguidance")}


def generate_replies(
    lm: causal.CausalLM, requests: Sequence[ChatRequest], batch_size: int, context_tokens: int
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
        except (schema_matcher.SchemaError, PromptError) as error:
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


def _run(lm: causal.CausalLM, batch: Sequence[GuidedPrompt]) -> list[ChatReply]:
    import torch
    from transformers import GenerationConfig

    start = time.perf_counter()
    rows, pad = [prompt.ids for prompt in batch], lm.tokenizer.pad_token_id
    longest = max(map(len, rows))  # the prompts end together, where writing begins
    ids = torch.tensor([[pad] * (longest - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    guides = [prompt.guide for prompt in batch]
    request, model = batch[0].request, lm.model
    config = GenerationConfig(
        max_new_tokens=max(guide.most_tokens for guide in guides),
        eos_token_id=list(_end_tokens(lm)),
        pad_token_id=pad,
        **sampling_of(model.config, model.generation_config, request, can_think(lm.tokenizer)),
    )

    def restricted(_: Any, scores: Any) -> Any:
        """Take from scores of shape (n_rows, vocabulary) what a row's reply may not go on with."""
        scores = scores.clone()
        for guide, row in zip(guides, scores, strict=True):
            guide.restrict(row)
        return scores

    def is_over(input_ids: Any, _: Any, **__: Any) -> Any:
        """Tell each guide the token that was written, and which rows' replies are over."""
        for guide, token in zip(guides, input_ids[:, -1].tolist(), strict=True):
            guide.take(token)
        return torch.tensor([guide.over for guide in guides], device=input_ids.device)

    device = model.device
    devices = [device] if device.type == "cuda" else []
    with lm.lock, torch.inference_mode(), torch.random.fork_rng(devices):
        torch.manual_seed(request.seed)
        _, machine = lm.meter.measured(
            lambda: model.generate(
                input_ids=ids.to(device),
                attention_mask=mask.to(device),
                generation_config=config,
                logits_processor=[restricted],
                stopping_criteria=[is_over],
            )
        )
    seconds = (time.perf_counter() - start) / len(batch)
    share = machine.share(len(batch))
    return [replace(_reply(lm.tokenizer, prompt, seconds), machine=share) for prompt in batch]


def _end_tokens(lm: causal.CausalLM) -> tuple[int, ...]:
    """Return the tokens that end a reply: the tokenizer's and those that the model's card names."""
    ends = lm.model.generation_config.eos_token_id
    ends = ends if isinstance(ends, list) else [ends]
    return tuple(sorted({end for end in [*ends, lm.tokenizer.eos_token_id] if end is not None}))


def _reply(tokenizer: Any, prompt: GuidedPrompt, seconds: float) -> ChatReply:
    guide = prompt.guide
    if guide.problem:
        return ChatReply(error=guide.problem, seconds=seconds)
    decoded, thought = (
        str(tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))
        for ids in (guide.reply_ids, guide.thought_ids)
    )
    text, unmarked = split_thinking(decoded)
    return ChatReply(
        text=text,
        thinking=thought.removeprefix("<think>").strip().removesuffix("</think>").strip() or unmarked,
        tokens_in=len(prompt.ids),
        tokens_out=len(guide.thought_ids) + len(guide.reply_ids),
        seconds=seconds,
        truncated=guide.truncated,
        thinking_tokens=len(guide.thought_ids),
    )


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
        alone, together = (
            sum(reply.tokens_out for reply in replies) / seconds
            if (seconds := sum(r.seconds for r in replies))
            else 0.0
            for replies in (self.alone, self.together)
        )
        return alone, together


def check_batch(model: ChatModel, requests: Sequence[ChatRequest]) -> BatchCheck:
    """Ask `model` everything together and then one at a time."""
    if any(request.temperature > 0 or request.thinking for request in requests):
        raise ModelError("Batches are checked with greedy requests: temperature 0 and no thinking.")
    model.generate(requests[:1])  # loads the model, which belongs to neither way
    together = model.generate(requests)
    alone = [model.generate([request])[0] for request in requests]
    failed = next((reply.error for reply in [*together, *alone] if reply.error), "")
    if failed:
        raise ModelError(f"The model gave no reply to compare: {failed}")
    return BatchCheck(tuple(alone), tuple(together))
