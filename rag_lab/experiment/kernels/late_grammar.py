"""jsonschema without the second that building a grammar for addresses in other alphabets takes, until one is checked.

papermill reads notebooks by way of jsonschema, which builds that grammar when it is imported, where the library is
installed. No notebook holds such an address.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType

_GRAMMAR = "rfc3987_syntax"


def import_jsonschema() -> None:
    """Import jsonschema, whose checks are all there; the grammar is built when one of them needs it."""
    if "jsonschema" in sys.modules or _GRAMMAR in sys.modules or importlib.util.find_spec(_GRAMMAR) is None:
        return
    stand_in = ModuleType(_GRAMMAR)
    stand_in.is_valid_syntax = _is_valid_syntax  # type: ignore[attr-defined]
    sys.modules[_GRAMMAR] = stand_in
    try:
        importlib.import_module("jsonschema")
    finally:
        del sys.modules[_GRAMMAR]  # whoever else imports it gets the library itself


def _is_valid_syntax(term: str, value: str) -> bool:
    return bool(importlib.import_module(_GRAMMAR).is_valid_syntax(term, value))
