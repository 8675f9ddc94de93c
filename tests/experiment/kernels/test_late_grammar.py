"""jsonschema imports no grammar of addresses before it checks one, and checks it then."""

import importlib.util
import subprocess
import sys

import pytest

SCRIPT = """
import sys
from rag_lab.experiment.kernels.late_grammar import import_jsonschema
import_jsonschema()
import jsonschema
found = ["rfc3987_syntax" in sys.modules]
checker = jsonschema.FormatChecker()
found += [checker.conforms(text, "iri") for text in ("https://example.org/ö", "no address")]
found.append(hasattr(sys.modules["rfc3987_syntax"], "__file__"))
print(found)
"""


@pytest.mark.skipif(importlib.util.find_spec("rfc3987_syntax") is None, reason="the grammar is not installed")
def test_the_grammar_is_built_when_an_address_is_checked():
    told = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "[False, True, False, True]"
