"""Where an OpenAI-compatible server is, its key, and whether it answers.

The address is the option base_url or OPENAI_BASE_URL, the key OPENAI_API_KEY; a server on loopback needs none.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from rag_lab.models.options import check_url, on_loopback
from rag_lab.models.remote.json_endpoint import Endpoint, bearer
from rag_lab.models.requirements import require_key

_OFFICIAL = "https://api.openai.com/v1"
_KEY = "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True)
class OpenAIServer:
    """The server at `base_url`, else at OPENAI_BASE_URL, else OpenAI's own."""

    base_url: str = ""

    @property
    def address(self) -> str:
        """Its address, checked to carry no secret."""
        address = self.base_url or os.environ.get("OPENAI_BASE_URL") or _OFFICIAL
        check_url(address, "OPENAI_BASE_URL")
        return address

    @property
    def is_official(self) -> bool:
        """Whether it is OpenAI's own."""
        return self.address == _OFFICIAL

    def key(self) -> str:
        """Return the key; the client insists on one, a server on loopback does not.

        Raises:
            ModelError: if none is set for a server that is not on loopback.
        """
        if on_loopback(self.address) and not os.environ.get(_KEY):
            return "none"
        return require_key([_KEY])

    def problem(self, within_s: float) -> str:
        """Return why it cannot be asked now, in one sentence, or ''; whether it has a model, it is not asked."""
        return Endpoint(self.address, within_s, bearer(self.key())).problem("/models")
