"""RAGAs' own values, with a real judge's replies: recorded once, and replayed by test_recorded.py.

To record anew, after a change of RAGAs: `python tests/evaluation/ragas_recorded.py`. It asks the packaged model,
for about ten minutes, what the file does not hold yet. The model is small: where it gives no usable reply,
`doubles.py` does, and the reply's key stands under `made_up`.
"""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rag_lab.evaluation.judge_queue import JudgeError, read_reply, strict_schema
from rag_lab.evaluation.ragas_metrics import COLLECTIONS, RAGAS_NAME, SPECS
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.records import Answer, Evidence, Passage, Question, StageRecord, Trace
from rag_lab.testing import HashEmbedder

FILE = Path(__file__).with_suffix(".json")
JUDGE = "llamacpp:smollm2"
ATTEMPTS = 3
SAMPLES = [
    {
        "user_input": "At what pressure does the relief valve of press P-1 open?",
        "response": "The relief valve RV1 opens at 290 bar. It is checked every 2,000 hours.",
        "reference": "The relief valve of press P-1 opens at 290 bar.",
        "retrieved_contexts": [
            "Press P-1. The relief valve RV1 opens at 290 bar. The oil is changed every 2,000 hours.",
            "The curing oven runs at 180 degrees Celsius. Alarm A7 means that the burner is locked out.",
        ],
        "reference_contexts": ["Press P-1. The relief valve RV1 opens at 290 bar. The oil lasts for 2,000 hours."],
        "retrieved_context_ids": ["press.pdf#3", "oven.pdf#1"],
        "reference_context_ids": ["press.pdf#3"],
    },
    {
        "user_input": "What does alarm A7 of the curing oven mean?",
        "response": "It means “the burner is locked out”. Reset it after 10 minutes at 80 °C.",
        "reference": "The burner is locked out. Reset it after 10 minutes.",
        "retrieved_contexts": [
            "The canteen opens at 11:30 and closes at 14:00. On Fridays there is fish.",
            "Alarm A7: the burner is locked out. Reset it after 10 minutes; call Frau Müller if it comes back.",
        ],
        "reference_contexts": ["Alarm A7: the burner is locked out. Reset it after 10 minutes.", "Who: Frau Müller."],
        "retrieved_context_ids": ["canteen.pdf#1", "oven.pdf#1"],
        "reference_context_ids": ["oven.pdf#1", "people.pdf#9"],
    },
]
Source = Callable[[str, int, Any], str]  # prompt, how often it was asked before, what the reply must be


def reply_key(prompt: str, nth: int) -> str:
    """Return what a reply is recorded under."""
    return hashlib.sha256(f"{nth}:{prompt}".encode()).hexdigest()[:16]


def trace_of(sample: Mapping[str, Any]) -> Trace:
    """Return the trace of which our adapter makes `sample` again."""
    places = [_place(each) for each in sample["retrieved_context_ids"]]
    passages = tuple(
        Passage(number, f"parent {number}", source, page, 0, len(text), text)
        for number, (text, (source, page)) in enumerate(zip(sample["retrieved_contexts"], places, strict=True), 1)
    )
    evidence = tuple(
        Evidence(source, page, context=text)
        for text, (source, page) in zip(
            sample["reference_contexts"], map(_place, sample["reference_context_ids"]), strict=True
        )
    )
    question = Question("q", sample["user_input"], (sample["reference"],), evidence=evidence)
    stages = (StageRecord("context"), StageRecord("generate"))
    return Trace(question, passages=passages, answer=Answer(sample["response"]), stages=stages)


def _place(text: str) -> tuple[str, int]:
    source, _, page = text.partition("#")
    return source, int(page)


def own_value(metric: str, sample: Mapping[str, Any], source: Source) -> float:
    """Return what RAGAs says of a sample by itself, none of our code between its class and `source`."""
    spec = SPECS[metric]
    ragas_class = getattr(import_module(spec.module), spec.class_name)
    if spec.module != COLLECTIONS:
        from ragas.dataset_schema import SingleTurnSample

        return float(ragas_class().single_turn_score(SingleTurnSample(**sample)))
    models = {"judge": ("llm", _llm), "embeddings": ("embeddings", lambda _: _embeddings())}
    asked = {models[need][0]: models[need][1](source) for need in spec.models}
    arguments = {argument: sample[argument] for argument in (RAGAS_NAME.get(name, name) for name in spec.arguments)}
    return float(asyncio.run(ragas_class(**asked, **spec.settings).ascore(**arguments)).value)


def _llm(source: Source) -> Any:
    from ragas.llms.base import InstructorBaseRagasLLM

    class Llm(InstructorBaseRagasLLM):  # type: ignore[misc]  # RAGAs has no stubs
        asked: Counter[str] = Counter()

        def generate(self, prompt: str, response_model: Any) -> Any:
            nth = self.asked[prompt]
            self.asked[prompt] += 1
            return response_model.model_validate_json(source(prompt, nth, response_model))

        async def agenerate(self, prompt: str, response_model: Any) -> Any:
            return self.generate(prompt, response_model)

    llm = Llm()
    llm.asked = Counter()
    return llm


def _embeddings() -> Any:
    from ragas.embeddings.base import BaseRagasEmbedding

    class Embeddings(BaseRagasEmbedding):  # type: ignore[misc]  # RAGAs has no stubs
        def embed_text(self, text: str, **_: Any) -> list[float]:
            return [float(each) for each in HashEmbedder().embed_documents([text])[0]]

        async def aembed_text(self, text: str, **_: Any) -> list[float]:
            return self.embed_text(text)

    return Embeddings()


def record() -> None:
    """Write RAGAs' values with the judge's replies, after each metric."""
    from rag_lab.models.shared import chat_model

    judge = chat_model(JUDGE)
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    replies, made_up = kept.get("replies", {}), kept.get("made_up", [])
    values: dict[str, list[float]] = {}

    def ask(prompt: str, nth: int, response_model: Any) -> str:
        key = reply_key(prompt, nth)
        if key not in replies:
            reply = _usable_reply(judge, prompt, nth, response_model)
            replies[key] = reply or _made_up_reply(prompt, nth, response_model)
            made_up.extend([] if reply else [key])
        return str(replies[key])

    for metric in SPECS:
        values[metric] = [own_value(metric, sample, ask) for sample in SAMPLES]
        found = {"ragas": version("ragas"), "judge": dict(judge.identity()), "values": values}
        found |= {"made_up": made_up, "replies": replies}
        FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _usable_reply(judge: Any, prompt: str, nth: int, response_model: Any) -> str:
    """Return the first reply that fits, or nothing: the small model often repeats itself until it is cut off."""
    for attempt in range(ATTEMPTS):
        request = ChatRequest(
            (Message("user", prompt),),
            max_tokens=400,
            temperature=0.7 if nth + attempt else 0.0,
            seed=nth + 100 * attempt,
            json_schema=strict_schema(response_model),
        )
        reply = judge.generate([request])[0]
        with suppress(JudgeError):
            read_reply(reply, response_model)
            if judges_all(prompt, reply.text):
                return str(reply.text)
    return ""


def judges_all(prompt: str, reply: str) -> bool:
    """Tell whether a reply has a verdict for each statement that was given: RAGAs' noise sensitivity breaks without."""
    given = _statements(prompt)
    return not given or len(json.loads(reply).get("statements", given)) == len(given)


def _statements(prompt: str) -> list[str]:
    start, end = prompt.rfind("input: "), prompt.rfind("\nOutput:")
    if start < 0 or end < 0:
        return []
    return list(json.loads(prompt[start + len("input: ") : end]).get("statements", []))


def _made_up_reply(prompt: str, nth: int, response_model: Any) -> str:
    from doubles import good_reply  # beside this file, which runs as a script

    given = _statements(prompt)
    if given:
        verdicts = [{"statement": s, "reason": "", "verdict": int(reply_key(prompt + s, nth) < "8")} for s in given]
        return json.dumps({"statements": verdicts})
    return good_reply(ChatRequest((Message("user", prompt),), seed=nth, json_schema=strict_schema(response_model)))


if __name__ == "__main__":
    record()
