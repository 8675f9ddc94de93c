"""What a notebook was given: stock papermill warns of a name that no cell knows, and runs with the default."""

import ast
from collections.abc import Mapping
from typing import Any

from rag_lab.errors import ConfigError, unknown_name

_INJECTED = "# Parameters\n"  # how papermill begins the cell that it injects
_KINDS = {str: "text", int: "a whole number", bool: "true or false"}


def parameters(namespace: Mapping[str, Any], declared: Mapping[str, type]) -> dict[str, Any]:
    """Return the parameters of a notebook out of its `globals()`, in the order of `declared`: name to str, int or bool.

    A whole number given for text is its digits, because `papermill -p QUESTIONS 8` sends a number.
    """
    # The names that the last cell of papermill's sets, among the cells that IPython has run.
    source = next((cell for cell in reversed(namespace.get("In", ())) if cell.startswith(_INJECTED)), "")
    assigned = [target for line in ast.parse(source).body if isinstance(line, ast.Assign) for target in line.targets]
    injected = [one.id for one in assigned if isinstance(one, ast.Name) and one.id not in declared]
    problems = [unknown_name("parameter", name, declared) for name in injected]
    for name, value in namespace.items():
        # Classes and modules in capitals are no constants.
        is_constant = value is None or isinstance(value, str | int | float | list | dict)
        if name.isupper() and not name.startswith("_") and is_constant and name not in (*declared, *injected):
            sentence = unknown_name("parameter", name, declared)
            problems.append(f"{sentence} (Correct it, and `del {name}` in a notebook that stays open.)")
    missing = [name for name in declared if name not in namespace]
    if missing:
        problems.append(f"{', '.join(missing)} must be set: run the cell with the parameters first")
    values = {name: namespace[name] for name in declared if name in namespace}
    values |= {name: str(value) for name, value in values.items() if declared[name] is str and type(value) is int}
    problems += [
        f"{name} must be {_KINDS[kind]}, got {values[name]!r}"
        for name, kind in declared.items()
        if name in values and type(values[name]) is not kind
    ]
    if problems:
        raise ConfigError("; ".join(problems))
    return values
