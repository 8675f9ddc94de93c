"""Our models in RAGAs' clothes. Importing this module imports RAGAs, which takes seconds: do it where it is used.

RAGAs' own cache leaves the model out of its key, and its default models are remote: neither is ever used.
"""

from collections import Counter
from contextlib import suppress
from typing import Any

from pydantic import BaseModel
from ragas.embeddings.base import BaseRagasEmbedding
from ragas.llms.base import InstructorBaseRagasLLM
from ragas.prompt.metrics.base_prompt import BasePrompt

from rag_lab.errors import RagLabError
from rag_lab.evaluation import judge_queue
from rag_lab.models.protocols import ChatReply, ChatRequest, Embedder, Message

MAX_REPLY_TOKENS = 1024  # RAGAs' own limit
MIN_REPLY_TOKENS = 64  # below this no judgement fits
_TRANSLATION_ATTEMPTS = 2  # the session samples the second


class JudgeSession(InstructorBaseRagasLLM):  # type: ignore[misc]  # RAGAs has no stubs
    """What one score asks of the judge, with the calls and seconds it took, and the tokens that the judge did not read.

    The first time a prompt is asked it is decoded greedily. Where RAGAs asks the same again (answer relevancy samples
    three questions, context relevance retries) or a reply was unusable, it is sampled with another seed, or the reply
    would be the same.
    """

    def __init__(
        self, queue: judge_queue.JudgeQueue, repeat: int, attempts: int = 1, max_tokens: int = MAX_REPLY_TOKENS
    ) -> None:
        self.calls = 0
        self.seconds = 0.0
        self.truncated_tokens = 0
        self._attempts = attempts
        self._max_tokens = max_tokens
        self._queue = queue
        self._first_seed = judge_queue.SEEDS_PER_REPEAT * repeat
        self._asked: Counter[str] = Counter()
        self._open: dict[str, judge_queue.JudgeError] = {}  # by prompt: what no later reply has cured
        self._replies: dict[tuple[str, int], dict[str, Any]] = {}  # by prompt and how often it was asked before

    @property
    def error(self) -> judge_queue.JudgeError | None:
        """Why a prompt got no usable reply, also where RAGAs swallowed the exception; None where all did."""
        return next(iter(self._open.values()), None)

    @property
    def replies(self) -> list[tuple[str, dict[str, Any]]]:
        """Prompt and fields of each usable reply; prompts in the order in which they were first asked."""
        order = {prompt: place for place, prompt in enumerate(self._asked)}
        keys = sorted(self._replies, key=lambda key: (order[key[0]], key[1]))
        return [(prompt, self._replies[prompt, nth]) for prompt, nth in keys]

    def generate(self, prompt: str, response_model: type[judge_queue.Reply]) -> judge_queue.Reply:
        """Ask the judge and wait."""
        request = self._request(prompt, response_model)
        return self._read(request, response_model, self._queue.judge.generate([request])[0])

    async def agenerate(self, prompt: str, response_model: type[judge_queue.Reply]) -> judge_queue.Reply:
        """Ask the judge, together with whatever other scores ask now; again, sampled, where the reply is unusable."""
        for _ in range(self._attempts - 1):
            with suppress(judge_queue.UnusableReply):
                return await self._ask(prompt, response_model)
        return await self._ask(prompt, response_model)

    async def _ask(self, prompt: str, response_model: type[judge_queue.Reply]) -> judge_queue.Reply:
        try:
            request = self._request(prompt, response_model)
            reply = await self._queue.ask(request)
        except judge_queue.JudgeError:
            raise
        except Exception as error:  # RAGAs may swallow it, so it is kept here
            raise self._give_up(prompt, judge_queue.JudgeError(str(error) or repr(error), permanent=False)) from error
        return self._read(request, response_model, reply)

    def _request(self, prompt: str, response_model: type[BaseModel]) -> ChatRequest:
        if self.error is not None and not self.error.permanent:
            raise self.error  # the judge is out of reach: do not let RAGAs knock five times
        room = self._queue.room_for_reply(prompt, self._max_tokens)
        if room < MIN_REPLY_TOKENS:
            reason = f"the judge reads {self._queue.judge.context_tokens} tokens and the prompt leaves {max(room, 0)}"
            raise self._give_up(
                prompt, judge_queue.JudgeError(f"{reason} for its reply; choose a judge that reads more")
            )
        nth = self._asked[prompt]
        self._asked[prompt] += 1
        self.calls += 1
        return ChatRequest(
            messages=(Message("user", prompt),),
            max_tokens=room,
            temperature=0.7 if nth else 0.0,
            seed=self._first_seed + nth,
            json_schema=judge_queue.strict_schema(response_model),
        )

    def _read(
        self, request: ChatRequest, response_model: type[judge_queue.Reply], reply: ChatReply
    ) -> judge_queue.Reply:
        prompt = request.messages[0].content
        self.seconds += reply.seconds
        self.truncated_tokens += reply.truncated_tokens
        try:
            result = judge_queue.read_reply(reply, response_model)
        except judge_queue.JudgeError as error:
            raise self._give_up(prompt, error) from None
        self._open.pop(prompt, None)
        self._replies[prompt, request.seed - self._first_seed] = result.model_dump()
        return result

    def _give_up(self, prompt: str, error: judge_queue.JudgeError) -> judge_queue.JudgeError:
        self._open[prompt] = error
        return error


class RagasEmbeddings(BaseRagasEmbedding):  # type: ignore[misc]  # RAGAs has no stubs
    """An embedder for RAGAs; a text is embedded once, as a passage: RAGAs compares like with like."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(cache=None)
        self._embedder = embedder
        self._vectors: dict[str, list[float]] = {}
        self._broken: RagLabError | None = None

    def embed_text(self, text: str, **_: Any) -> list[float]:
        """Return the text's unit vector."""
        return self.embed_texts([text])[0]

    async def aembed_text(self, text: str, **_: Any) -> list[float]:
        """Return the text's unit vector."""
        return self.embed_text(text)

    def embed_texts(self, texts: list[str], **_: Any) -> list[list[float]]:
        """Return the texts' unit vectors, in order."""
        if self._broken is not None:
            raise self._broken
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        try:
            vectors = self._embedder.embed_documents(new) if new else ()
        except RagLabError as error:
            self._broken = error  # the model cannot be used: do not load it again for every text
            raise
        self._vectors |= {text: vector.tolist() for text, vector in zip(new, vectors, strict=True)}
        return [self._vectors[text] for text in texts]

    async def aembed_texts(self, texts: list[str], **_: Any) -> list[list[float]]:
        """Return the texts' unit vectors, in order."""
        return self.embed_texts(texts)


async def adapted_prompts(metric: Any, language: str, session: Any) -> dict[str, Any]:
    """Return the metric's prompts by attribute, the examples translated by RAGAs, the instructions in English."""
    adapted = {}
    for name, prompt in vars(metric).items():
        if not isinstance(prompt, BasePrompt):
            continue
        problem = ""
        for _ in range(_TRANSLATION_ATTEMPTS):
            try:
                adapted[name] = await prompt.adapt(language, session)
                break
            except judge_queue.JudgeError as error:
                reason = f"the prompts could not be put into {language}: {error.reason}"
                raise judge_queue.JudgeError(reason, permanent=error.permanent) from None
            except ValueError as error:  # RAGAs counts the translated strings
                problem = str(error)
        else:
            raise judge_queue.JudgeError(f"the prompts could not be put into {language}: {problem}")
    return adapted
