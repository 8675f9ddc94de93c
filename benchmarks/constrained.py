"""Replies held to the answer's schema while decoding beside free ones, under transformers; prints JSON.

    python benchmarks/constrained.py [--model smollm2] [--replies 100] [--batch 8]

Questions of the demo set over three of its quotes. Both ways take turns batch by batch, so that a slow moment of the
machine meets both. Targets: all held replies are valid, those that were cut off at their length, too; `ratio` (CPU
seconds of held over free replies) is at most 1.3. `ratio_a_token` leaves aside that the lengths of replies differ.
"""

import argparse
import dataclasses
import json
import time
from collections.abc import Sequence

import jsonschema

from rag_lab.data.dataset import Dataset, find_dataset
from rag_lab.models.local.transformers import TransformersChat
from rag_lab.models.protocols import ChatReply, ChatRequest
from rag_lab.records import Passage, Remembered
from rag_lab.stages.generate import SCHEMA, answer_messages

QUOTES = 3
MAX_TOKENS = 160  # the default of answer.max_tokens


def requests(n: int) -> list[ChatRequest]:
    questions = [
        each for each in Dataset.load(find_dataset("plant_docs")).questions if each.evidence and each.evidence[0].quote
    ]
    quotes = [each.evidence[0] for each in questions]
    made = []
    for first, question in enumerate(questions[:n]):
        near = [quotes[(first + step) % len(quotes)] for step in range(QUOTES)]
        passages = tuple(Passage(1 + k, f"c{k}", e.source, e.page, 0, 0, e.quote or "") for k, e in enumerate(near))
        made.append(ChatRequest(answer_messages(question.text, Remembered(), passages), MAX_TOKENS, json_schema=SCHEMA))
    return made


def is_valid(reply: ChatReply) -> bool:
    try:
        jsonschema.validate(json.loads(reply.text), SCHEMA)
    except (ValueError, jsonschema.ValidationError):
        return False
    return True


def timed(model: TransformersChat, batch: Sequence[ChatRequest]) -> tuple[list[ChatReply], float]:
    started = time.process_time()
    return model.generate(batch), time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--replies", type=int, default=100)
    parser.add_argument("--batch", type=int, default=8)
    args = parser.parse_args()
    model = TransformersChat(args.model, batch_size=args.batch)
    asked = requests(args.replies)
    for request in (asked[0], dataclasses.replace(asked[0], json_schema=None)):
        model.generate([dataclasses.replace(request, max_tokens=4)])  # loading is not what is measured
    replies: dict[str, list[ChatReply]] = {"held": [], "free": []}
    seconds = {"held": 0.0, "free": 0.0}
    for start in range(0, len(asked), args.batch):
        held = asked[start : start + args.batch]
        for way, batch in (("free", [dataclasses.replace(r, json_schema=None) for r in held]), ("held", held)):
            written, took = timed(model, batch)
            replies[way] += written
            seconds[way] += took
    tokens = {way: sum(reply.tokens_out for reply in found) for way, found in replies.items()}
    ratio = seconds["held"] / seconds["free"]
    print(
        json.dumps(
            {
                "benchmark": "constrained",
                "model": args.model,
                "replies": len(asked),
                "batch": args.batch,
                "valid": {way: sum(map(is_valid, found)) for way, found in replies.items()},
                "cut_off": {way: sum(reply.truncated for reply in found) for way, found in replies.items()},
                "cpu_s": {way: round(took, 1) for way, took in seconds.items()},
                "tokens_out": tokens,
                "ratio": round(ratio, 3),
                "ratio_a_token": round(ratio * tokens["free"] / tokens["held"], 3),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
