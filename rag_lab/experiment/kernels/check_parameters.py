"""What a notebook may be given: the parameters that it declares, and scalars."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_lab.errors import ConfigError, unknown_name

TAG = "parameters"  # of the cell that declares them, as papermill has it


def check_parameters(notebook: Path, parameters: Mapping[str, Any]) -> None:
    """Refuse what papermill would only warn of, or turn into text.

    Raises:
        ConfigError: if the notebook has no cell with parameters; else naming every parameter that it does not declare,
            and every value that is no scalar.
    """
    declared = _declared(notebook)
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


def _declared(notebook: Path) -> list[str]:
    """Return the names that the cell tagged `parameters` assigns; the library for notebooks takes seconds to import."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        source = next(cell["source"] for cell in cells if TAG in cell["metadata"].get("tags", ()))
        statements = ast.parse(source if isinstance(source, str) else "".join(source)).body
    except StopIteration:
        raise ConfigError(
            f"{notebook} has no cell with the tag {TAG!r}, so nothing can be given to it; tag one."
        ) from None
    except (OSError, ValueError, SyntaxError, AttributeError, LookupError, TypeError) as error:
        raise ConfigError(f"{notebook} cannot be read as a notebook with parameters: {error}.") from None
    assigned = [statement for statement in statements if isinstance(statement, ast.Assign | ast.AnnAssign)]
    targets = [target for one in assigned for target in (one.targets if isinstance(one, ast.Assign) else [one.target])]
    return [target.id for target in targets if isinstance(target, ast.Name)]
