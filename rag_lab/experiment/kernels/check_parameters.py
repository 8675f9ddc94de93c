"""What a notebook may be given: the parameters that it declares, and scalars."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_lab.errors import ConfigError, unknown_name


def check_parameters(notebook: Path, parameters: Mapping[str, Any]) -> None:
    """Refuse what papermill would only warn of, or turn into text.

    Raises:
        ConfigError: naming every parameter that the notebook does not declare, and every value that is no scalar.
    """
    import papermill

    declared = papermill.inspect_notebook(str(notebook))
    problems = [
        unknown_name(f"parameter of {notebook.name}", name, declared) for name in parameters if name not in declared
    ]
    problems += [
        f"{name} must be text, a number, true, false or null, got a {type(value).__name__}"
        for name, value in parameters.items()
        if not isinstance(value, str | int | float | bool | None)
    ]
    if problems:
        raise ConfigError("; ".join(problems))
