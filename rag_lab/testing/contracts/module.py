"""What every module keeps to, whatever its kind."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_lab._kit.registry import opened_files
from rag_lab.redaction import names_secret
from rag_lab.testing.sample_traces import sample_index


class ModuleContract:
    """The rules of all modules. A subclass whose name begins with `Test` is run by pytest."""

    def make(self) -> Any:
        """Return the module: a new one each time, with the same parameters."""
        raise NotImplementedError("make() returns the module that is tested.")

    def built(self) -> Any:
        """Return it as the workbench uses it."""
        return self.make()

    def identity(self) -> Mapping[str, Any]:
        """Return under what its results are remembered."""
        return dict(self.built().identity())

    def test_its_constructor_only_stores(self) -> None:
        sample_index()  # which make() may use
        with opened_files() as opened:
            self.make()
        searched = {Path(entry).resolve() for entry in sys.path}  # which a first import may open to look for packages
        assert not opened - searched, "files are read on the first call"

    def test_its_identity_is_json_and_the_same_each_time(self) -> None:
        identity = dict(self.identity())
        assert json.loads(json.dumps(identity)) == identity
        assert dict(self.identity()) == identity

    def test_it_shows_no_secret(self) -> None:
        secrets = [value for name, value in os.environ.items() if names_secret(name) and len(value) >= 8]
        shown = f"{json.dumps(dict(self.identity()))}{self.make()!r}"
        assert not [value for value in secrets if value in shown]
