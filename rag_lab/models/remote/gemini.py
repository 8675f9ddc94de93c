"""Google's Gemini through langchain-google-genai. The key comes from GOOGLE_API_KEY or GEMINI_API_KEY."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rag_lab.errors import ModelError
from rag_lab.models import requirements
from rag_lab.models.protocols import ChatRequest
from rag_lab.models.remote import http, replies
from rag_lab.models.remote.langchain_models import TOKENS_OF, USUAL_LEVELS, LangChainChat, highest_within
from rag_lab.models.remote.retries import RemoteModel, RemoteOptions

KEY_VARIABLES = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
_VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")


@dataclass(frozen=True, slots=True)
class GeminiThinking:
    """What one model can be asked for: a budget from `smallest` to `largest` tokens, or one of `levels`."""

    smallest: int
    largest: int
    can_stop: bool = False
    levels: tuple[str, ...] = ()

    def options(self, tokens: int) -> dict[str, Any]:
        """Return the client's options for so many tokens of thinking; what is below the smallest budget is that."""
        shown: dict[str, Any] = {"include_thoughts": True} if tokens else {}
        if self.levels:
            return {"thinking_level": highest_within(self.levels, tokens), **shown}
        return {"thinking_budget": max(tokens, self.smallest) if tokens else 0, **shown}


def gemini_thinking(name: str) -> GeminiThinking | None:
    """Return how the model of this name is asked to think; None for one that does not think."""
    family = name.removeprefix("models/").lower()
    found = _VERSION.match(family)
    version = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    if "flash" in family or "pro" in family:
        version = version if found else (3, 0)  # `gemini-flash-latest`
    if version < (2, 5):
        return None
    if version == (2, 5):
        if "pro" in family:
            return GeminiThinking(128, 32_768)
        return GeminiThinking(512 if "lite" in family else 1, 24_576, can_stop=True)
    if "flash" in family:
        return GeminiThinking(TOKENS_OF["minimal"], 65_536, levels=("minimal", *USUAL_LEVELS))
    levels = ("low", "high") if family.startswith("gemini-3-pro") else USUAL_LEVELS
    return GeminiThinking(TOKENS_OF["low"], 65_536, levels=levels)


class GeminiModel(RemoteModel):
    """A model of the service, of any kind."""

    provider = "gemini"

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name and the address where it is not Google's own; never the key."""
        return {**super().identity(), "base_url": self.options.base_url}

    def problem(self, within_s: float) -> str:
        """Return why it cannot answer now, in one sentence, or ''."""
        key = {"x-goog-api-key": requirements.require_key(KEY_VARIABLES)}
        endpoint = http.Endpoint(self.options.base_url or "https://generativelanguage.googleapis.com", within_s, key)
        return endpoint.problem(f"/v1beta/models/{self.name.removeprefix('models/')}", must_exist=True)

    def _langchain(self, name: str, max_bytes: int, check: Callable[[bytes], None], **more: Any) -> Any:
        """Return the object of langchain-google-genai's class `name`."""
        return getattr(requirements.require_package("langchain_google_genai", "langchain-google-genai"), name)(
            model=self.name,
            google_api_key=requirements.require_key(KEY_VARIABLES),
            base_url=self.options.base_url or None,
            client_args={"event_hooks": http.event_hooks(self.options.timeout_s, max_bytes, check)},
            vertexai=False,
            **more,
        )


class GeminiChat(GeminiModel, LangChainChat):
    """A Gemini model, e.g. `gemini-2.5-flash`. JSON schemas are enforced by the service."""

    constrains_json = True
    takes = ("top_p", "top_k")
    defaults = RemoteOptions(context=1_000_000)

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._thinking = gemini_thinking(name)
        if self._thinking and not self._thinking.can_stop:
            self.least_thinking_tokens = self._thinking.smallest

    def check(self, requests: Sequence[ChatRequest]) -> None:
        """Refuse a budget that the model does not take, too."""
        super().check(requests)
        most = max(request.thinking_tokens for request in requests)
        if self._thinking and most > self._thinking.largest:
            raise ModelError(
                f"{self.name} thinks with at most {self._thinking.largest:,} tokens, and {most:,} were asked for; set "
                "answer.thinking_tokens to no more."
            )

    def call_options(self, request: ChatRequest) -> dict[str, Any]:
        """Return sampling, thinking and the JSON schema as Gemini names them."""
        options: dict[str, Any] = {
            "max_output_tokens": request.most_tokens_out,
            "temperature": request.temperature,
            "seed": request.seed,
            **request.sampling,
        }
        if request.json_schema is not None:
            options["response_mime_type"] = "application/json"
            options["response_json_schema"] = dict(request.json_schema)
        return options | (self._thinking.options(request.thinking_tokens) if self._thinking else {})

    @cached_property
    def _client(self) -> Any:
        more = {"timeout": self.options.timeout_s, "max_retries": 1}  # 0 would mean the service's default of several
        return self._langchain("ChatGoogleGenerativeAI", http.CHAT_BYTES, replies.check_candidates, **more)
