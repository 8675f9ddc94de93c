"""What a server did not read of a prompt: what was sent, against the tokens that it reports having read.

Servers cut a prompt at their window without a word, at its beginning or in its middle. Nobody here has their tokenizer,
so what is found is what must have been lost: at least so many tokens.
"""

from __future__ import annotations

import re

from rag_lab.models.protocols import ChatRequest
from rag_lab.models.token_estimate import request_tokens

_CHARS_A_TOKEN = 24  # of one word; tokenizers for chat have hardly any longer ones
_OTHER_SCRIPTS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CHARS_OTHERWISE = 6  # of scripts that put no space between words
_WINDOWS = 1024  # tokens of which servers' windows are multiples
_TOKENS_AROUND = 64  # of a chat template: a prompt that fills a window has at least the window less these


def fewest_tokens(text: str) -> int:
    """Return a lower bound of a text's tokens: one a word with a letter or digit, more of very long ones."""
    return sum(_fewest(word) for word in text.split())


def unread_of_prompt(request: ChatRequest, tokens_in: int) -> int:
    """Return how many tokens of a request a server cannot have read that reports `tokens_in`; at least so many.

    Where it reports a whole window, and more may have been sent, at least one was lost.
    """
    fewest = sum(fewest_tokens(message.content) for message in request.messages)
    if fewest > tokens_in:
        return fewest - tokens_in
    is_window = tokens_in > 0 and tokens_in % _WINDOWS == 0
    return int(is_window and request_tokens(request) + _TOKENS_AROUND > tokens_in)


def _fewest(word: str) -> int:
    n_chars = sum(map(str.isalnum, word))  # of marks and control characters some tokenizers make nothing
    dense = len(_OTHER_SCRIPTS.findall(word))
    return max(int(n_chars > 0), dense // _CHARS_OTHERWISE + max(0, n_chars - dense) // _CHARS_A_TOKEN)
