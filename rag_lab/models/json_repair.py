"""Read the JSON object in a model's reply, by rules that are each named and tested; nothing is guessed beyond them.

Rules, in order: text around the object and code fences are dropped; a comma before a closing bracket is dropped; an
object cut off in the middle (the model ran out of tokens) has its open string and brackets closed, without a member
of which there is only the name, or half a value that is no text.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

_HALF_ESCAPE = re.compile(r"((?<!\\)(?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?\Z")
Model = TypeVar("Model", bound=BaseModel)


class RepairError(ValueError):
    """No rule makes an object of the text."""


def read_json(text: str) -> tuple[dict[str, Any], str]:
    """Return the object and the rule that was needed ('' for plain JSON)."""
    start = text.find("{")
    if start < 0:
        raise RepairError("there is no JSON object in the reply")
    inner = text[start : text.rfind("}") + 1] or text[start:]
    commas = [at for at, character, in_string in _walk(text[start:]) if character == "," and not in_string]
    without_last_member = text[start : start + commas[-1]] if commas else ""
    attempts = [
        (text.strip(), ""),
        (inner, "dropped the text around the object"),
        (re.sub(r",(\s*[}\]])", r"\1", inner), "dropped a trailing comma"),
        (_closed(text[start:].rstrip()), "closed an object that was cut off"),
        (_closed(without_last_member), "closed an object that was cut off"),
    ]
    for attempt, rule in attempts:
        try:
            value = json.loads(attempt, strict=False)
        except (json.JSONDecodeError, RecursionError):
            continue
        if isinstance(value, dict):
            # without lone surrogates (an escaped emoji cut in two), which no file could be written with
            return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "ignore")), rule
    raise RepairError("the reply is not JSON and no rule repairs it")


def read_as(text: str, model: type[Model]) -> Model:
    """Return the object as `model`."""
    try:
        return model.model_validate(read_json(text)[0])
    except ValidationError:
        raise RepairError(f"the object in the reply is no {model.__name__}") from None


def _closed(text: str) -> str:
    """Close the string and the brackets that are open at the end of `text`."""
    closers: list[str] = []
    in_string = False
    for _, character, in_string in _walk(text):
        if in_string:
            continue
        if character in "{[":
            closers.append("}" if character == "{" else "]")
        elif character in "}]" and closers:
            closers.pop()
    body = _HALF_ESCAPE.sub(r"\1", text) + '"' if in_string else re.sub(r"[,:]\s*$", "", text)
    return body + "".join(reversed(closers))


def _walk(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield position, character and whether a string is open after it."""
    in_string = escaped = False
    for position, character in enumerate(text):
        if escaped:
            escaped = False
        elif in_string:
            escaped = character == "\\"
            in_string = character != '"'
        else:
            in_string = character == '"'
        yield position, character, in_string
