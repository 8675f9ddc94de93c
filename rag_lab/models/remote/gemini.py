"""Google's Gemini through langchain-google-genai. The key comes from GOOGLE_API_KEY or GEMINI_API_KEY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_lab.errors import ModelError
from rag_lab.models.protocols import ChatRequest
from rag_lab.models.remote.http import CHAT_BYTES, Endpoint, HttpBounds
from rag_lab.models.remote.langchain_chat import LangChainChat
from rag_lab.models.remote.reply_shapes import check_candidates
from rag_lab.models.remote.requests import RemoteOptions
from rag_lab.models.remote.thinking_options import GeminiThinking, gemini_thinking
from rag_lab.models.requirements import require_key, require_package

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

KEY_VARIABLES = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
_SERVICE = "https://generativelanguage.googleapis.com"
_CONTEXT_TOKENS = 1_000_000


class GeminiChat(LangChainChat):
    """A Gemini model, e.g. `gemini-2.5-flash`. JSON schemas are enforced by the service."""

    constrains_json = True
    provider = "gemini"
    takes = ("top_p", "top_k")
    defaults = RemoteOptions(context=_CONTEXT_TOKENS)

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name and the address where it is not Google's own; never the key."""
        return {**super().identity(), "base_url": self.options.base_url}

    @property
    def least_thinking_tokens(self) -> int:
        """What a model that cannot stop thinking takes at the least, by its family."""
        return self._thinking.least_tokens if self._thinking else 0

    def check(self, requests: Sequence[ChatRequest]) -> None:
        """Refuse a budget that the model does not take; see `LangChainChat.check`."""
        super().check(requests)
        most = max(request.thinking_tokens for request in requests)
        if self._thinking and most > self._thinking.largest:
            raise ModelError(
                f"{self.name} thinks with at most {self._thinking.largest:,} tokens, and {most:,} were asked for; set "
                "answer.thinking_tokens to no more."
            )

    def problem(self, within_s: float) -> str:
        """Return why it cannot answer now, in one sentence, or ''."""
        return service_problem(self.name, self.options.base_url, within_s)

    def build(self) -> BaseChatModel:
        """Return the client."""
        library = require_package("langchain_google_genai", "langchain-google-genai")
        bounds = HttpBounds(self.options.timeout_s, CHAT_BYTES, check_candidates)
        client: BaseChatModel = library.ChatGoogleGenerativeAI(
            model=self.name,
            google_api_key=require_key(KEY_VARIABLES),
            base_url=self.options.base_url or None,
            timeout=self.options.timeout_s,
            client_args={"event_hooks": bounds.hooks()},
            max_retries=1,  # one attempt: 0 would mean the service's default of several
            vertexai=False,
        )
        return client

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

    @property
    def _thinking(self) -> GeminiThinking | None:
        return gemini_thinking(self.name)


def service_problem(name: str, base_url: str, within_s: float) -> str:
    """Return why a model of the service cannot be asked now, in one sentence, or ''."""
    endpoint = Endpoint(base_url or _SERVICE, within_s, {"x-goog-api-key": require_key(KEY_VARIABLES)})
    return endpoint.problem(f"/v1beta/models/{name.removeprefix('models/')}", must_exist=True)
