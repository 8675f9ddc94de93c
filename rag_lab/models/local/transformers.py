"""Chats with causal models of the transformers library, by their chat template, and the same in 4 bits through unsloth.

Batches are padded on the left; greedy requests are answered in batches, sampled ones one by one by their seed. The
model itself is called and not a HuggingFacePipeline, which hides token counts, the padding side and the thinking switch
of the template.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from rag_lab.errors import ModelError
from rag_lab.models import requirements, weights
from rag_lab.models.local import causal
from rag_lab.models.local.guided_reply import PromptError, ReplyGuide, can_think, guided_prompt
from rag_lab.models.protocols import LISTENER, ChatModel, ChatReply, ChatRequest, split_thinking

_QWEN3 = ("qwen3", "qwen3_moe")
_QWEN3_PLAIN: Mapping[str, float] = {"temperature": 0.7, "top_p": 0.8, "top_k": 20}
"""Qwen3's `generation_config.json` is that of thinking; its model card documents these for replies without."""

_THINKING: Mapping[str, float] = {"temperature": 0.6, "top_p": 0.95, "top_k": 20}
"""Qwen3's documented settings of thinking, for cards that name no temperature: greedy thinking goes in circles."""

_GREEDY: Mapping[str, Any] = {"do_sample": False, "temperature": 1.0, "top_p": 1.0, "top_k": 50}
"""The library's own neutral values: it warns of a card's settings that greedy decoding does not use."""

_NEUTRAL: Mapping[str, float | None] = {"top_p": 1.0, "top_k": 0, "min_p": None}
# How a model samples follows from its weights: their card is one of their files.
_NO_MEMORY = (
    "The memory of the GPU is too full for this prompt of {} tokens alone: end what else holds it, give fewer "
    "tokens, or choose a smaller model or ?4bit=true."
)
_VERSION = 4  # of how replies are decoded; they depend on the library for schemas, too


def sampling_of(config: Any, card: Any, request: ChatRequest, thinks: bool) -> dict[str, Any]:
    """Return the arguments of `GenerationConfig` for a request, by a model's `config` and generation `card`.

    A temperature of 0 is greedy, but for thoughts, which then have the card's temperature.
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


def generate_replies(
    lm: causal.CausalLM, requests: Sequence[ChatRequest], batch_size: int, context_tokens: int
) -> list[ChatReply]:
    """Return one reply for each request, in order.

    Refused by a template or schema, or without room, it is an error reply. Where the GPU's memory is too full for a
    batch, it is asked in halves, down to one prompt, which is then an error reply.
    """
    import torch

    replies: dict[int, ChatReply] = {}
    groups: dict[tuple[int, bool], list[tuple[int, list[int], ReplyGuide]]] = defaultdict(list)
    named = lm.model.generation_config.eos_token_id  # by the model's card; the tokenizer names one, too
    named = named if isinstance(named, list) else [named]
    ends = tuple(sorted({end for end in [*named, lm.tokenizer.eos_token_id] if end is not None}))
    for index, request in enumerate(requests):
        try:
            ids, guide = guided_prompt(lm.tokenizer, ends, request, context_tokens)
        except PromptError as error:
            replies[index] = ChatReply(error=str(error))
        else:
            sampled = is_sampled(request, can_think(lm.tokenizer))
            groups[guide.most_tokens, sampled].append((index, ids, guide))
    for (_, sampled), prompts in groups.items():
        prompts.sort(key=lambda each: len(each[1]))  # neighbours of one length need little padding
        size = 1 if sampled else batch_size
        waiting = [prompts[start : start + size] for start in range(0, len(prompts), size)]
        while waiting:
            batch = waiting.pop(0)
            places = [index for index, _, _ in batch]
            try:
                written = _run(lm, requests[places[0]], [(ids, guide) for _, ids, guide in batch])
            except torch.OutOfMemoryError:
                torch.cuda.empty_cache()
                written = [ChatReply(error=_NO_MEMORY.format(f"{len(batch[0][1]):,}"))]
            if len(written) < len(batch):  # their guides have gone on with it
                again = [(at, *guided_prompt(lm.tokenizer, ends, requests[at], context_tokens)) for at in places]
                waiting[:0] = [again[: len(again) // 2], again[len(again) // 2 :]]
            else:
                replies.update(zip(places, written, strict=True))
    return [replies[index] for index in range(len(requests))]


def _run(lm: causal.CausalLM, request: ChatRequest, batch: Sequence[tuple[list[int], ReplyGuide]]) -> list[ChatReply]:
    """Return the replies to prompts of one length of reply, which are sampled as `request` is."""
    import torch
    from transformers import GenerationConfig

    start = time.perf_counter()
    rows, guides, pad = [ids for ids, _ in batch], [guide for _, guide in batch], lm.tokenizer.pad_token_id
    longest = max(map(len, rows))  # the prompts end together, where writing begins
    ids = torch.tensor([[pad] * (longest - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    model = lm.model
    config = GenerationConfig(
        max_new_tokens=max(guide.most_tokens for guide in guides),
        eos_token_id=list(guides[0].ends),
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
        if listener is not None and len(guides) == 1:
            listener(_decoded(lm.tokenizer, guides[0].reply_ids))
        return torch.tensor([guide.over for guide in guides], device=input_ids.device)

    device, listener = model.device, LISTENER.get()
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
    return [replace(_reply(lm.tokenizer, *prompt, seconds), machine=share) for prompt in batch]


def _decoded(tokenizer: Any, tokens: list[int]) -> str:
    return str(tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def _reply(tokenizer: Any, ids: list[int], guide: ReplyGuide, seconds: float) -> ChatReply:
    if guide.matcher is not None and guide.matcher.problem:
        return ChatReply(error=guide.matcher.problem, seconds=seconds)
    decoded, thought = _decoded(tokenizer, guide.reply_ids), _decoded(tokenizer, guide.thought_ids)
    text, unmarked = split_thinking(decoded)
    return ChatReply(
        text=text,
        thinking=thought.removeprefix("<think>").strip().removesuffix("</think>").strip() or unmarked,
        tokens_in=len(ids),
        tokens_out=len(guide.thought_ids) + len(guide.reply_ids),
        seconds=seconds,
        truncated=guide.truncated,
        thinking_tokens=len(guide.thought_ids),
    )


def check_batch(model: ChatModel, requests: Sequence[ChatRequest]) -> list[tuple[ChatReply, ChatReply]]:
    """Ask `model` everything together and then one at a time; return each request's reply alone and in the batch."""
    if any(request.temperature > 0 or request.thinking for request in requests):
        raise ModelError("Batches are checked with greedy requests: temperature 0 and no thinking.")
    model.generate(requests[:1])  # loads the model, which belongs to neither way
    together = model.generate(requests)
    alone = [model.generate([request])[0] for request in requests]
    if failed := next((reply.error for reply in [*together, *alone] if reply.error), ""):
        raise ModelError(f"The model gave no reply to compare: {failed}")
    return list(zip(alone, together, strict=True))


_PACKAGE = "rag_lab[unsloth]"


class TransformersChat(causal.OnCausalLM):
    """`smollm2`, `qwen3-8b`, `gemma-3-4b`, a folder, a GGUF file or a hub name; 4 bits and thinking where possible."""

    constrains_json = True
    counts_alone = True  # no weights are loaded to count tokens

    def __init__(self, name: str, *, batch_size: int = 8, **held: Any) -> None:
        super().__init__(causal.CausalSettings(name, **held))
        self.batch_size = batch_size

    @cached_property
    def context_tokens(self) -> int:
        """How much the model can read and write together: by default, what its configuration says."""
        return self.settings.context_tokens()

    def identity(self) -> Mapping[str, Any]:
        """Return provider, weights, how they are held, batch size and how replies are decoded."""
        return {
            "provider": "transformers",
            **self.settings.identity(),
            "batch_size": self.batch_size,  # arithmetic on a padded batch differs in the last digits
            "decoding": _VERSION,
            "schema_library": requirements.library("llguidance"),
        }

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return one reply for each request, in order, held to its `json_schema` where it has one."""
        if not requests:
            return []
        return generate_replies(self.loaded, requests, self.batch_size, self.context_tokens)

    def count_tokens(self, text: str) -> int:
        """Return the exact number of tokens; the tokenizer counts alone, from the second process on without torch."""
        return self._count(text)

    @cached_property
    def loaded(self) -> causal.CausalLM:
        """The model with its tokenizer, which has a template for chats."""
        lm = self._load()
        if not lm.tokenizer.chat_template:
            name = weights.find(self.settings.name).name
            raise ModelError(
                f"The tokenizer of {name!r} has no chat template, so the model cannot be asked "
                "anything; choose one that was tuned for chats, often called Instruct or it."
            )
        return lm

    def _load(self) -> causal.CausalLM:
        return self.settings.load()


class UnslothChat(TransformersChat):
    """`gemma-3-4b`, `qwen3-8b`, a folder or a hub name, in 4 bits. Qwen3 thinks where a request asks for it."""

    def __init__(self, name: str, *, context: int = 8192, batch_size: int = 8) -> None:
        super().__init__(name, four_bit=True, batch_size=batch_size)
        self.context_tokens = context
        self.weights_held = f"unsloth {name} {context}"

    def identity(self) -> Mapping[str, Any]:
        """Return provider, weights, quantization, context size, batch size and how replies are decoded."""
        source = weights.find(self.name)
        return {
            "provider": "unsloth",
            "name": source.name,
            "weights": source.digest(),
            "four_bit": True,
            "context_tokens": self.context_tokens,
            "batch_size": self.batch_size,
            "decoding": _VERSION,
            "schema_library": requirements.library("llguidance"),
        }

    def _load(self) -> causal.CausalLM:
        problem = requirements.missing_package("unsloth", _PACKAGE) or requirements.cuda_problem("unsloth")
        if problem:  # before the import: unsloth patches torch and transformers as it loads
            raise ModelError(problem)
        library = requirements.require_package("unsloth", _PACKAGE)
        source = weights.find(self.name)
        with weights.loading(source):  # of which unsloth may take another repository's: no revision is pinned
            model, processor = library.FastLanguageModel.from_pretrained(
                model_name=source.location, max_seq_length=self.context_tokens, load_in_4bit=True
            )
            library.FastLanguageModel.for_inference(model)
        tokenizer = getattr(processor, "tokenizer", processor)  # multimodal models such as Gemma 3 bring a processor
        if tokenizer.chat_template is None:
            tokenizer.chat_template = processor.chat_template
        return causal.CausalLM(model, tokenizer)
