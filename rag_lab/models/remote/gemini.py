"""Google's Gemini through langchain-google-genai. The key comes from GOOGLE_API_KEY or GEMINI_API_KEY."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from rag_lab.errors import ModelError
from rag_lab.models.protocols import ChatRequest
from rag_lab.models.remote import http, replies
from rag_lab.models.remote.langchain_chat import LangChainChat
from rag_lab.models.remote.requests import RemoteModel, RemoteOptions
from rag_lab.models.remote.thinking_options import gemini_thinking
from rag_lab.models.requirements import require_key, require_package

KEY_VARIABLES = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
_SERVICE = "https://generativelanguage.googleapis.com"


class GeminiModel(RemoteModel):
    """A model of the service, of any kind."""

    provider = "gemini"

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name and the address where it is not Google's own; never the key."""
        return {**super().identity(), "base_url": self.options.base_url}

    def problem(self, within_s: float) -> str:
        """Return why it cannot answer now, in one sentence, or ''."""
        key = {"x-goog-api-key": require_key(KEY_VARIABLES)}
        endpoint = http.Endpoint(self.options.base_url or _SERVICE, within_s, key)
        return endpoint.problem(f"/v1beta/models/{self.name.removeprefix('models/')}", must_exist=True)

    def _langchain(self, name: str, bounds: http.HttpBounds, **more: Any) -> Any:
        """Return the object of langchain-google-genai's class `name`."""
        return getattr(require_package("langchain_google_genai", "langchain-google-genai"), name)(
            model=self.name,
            google_api_key=require_key(KEY_VARIABLES),
            base_url=self.options.base_url or None,
            client_args={"event_hooks": bounds.hooks()},
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

    @property
    def least_thinking_tokens(self) -> int:
        """What a model that cannot stop thinking takes at the least, by its family."""
        return self._thinking.least_tokens if self._thinking else 0

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
        bounds = http.HttpBounds(self.options.timeout_s, http.CHAT_BYTES, replies.check_candidates)
        # one attempt: max_retries of 0 would mean the service's default of several
        return self._langchain("ChatGoogleGenerativeAI", bounds, timeout=self.options.timeout_s, max_retries=1)
