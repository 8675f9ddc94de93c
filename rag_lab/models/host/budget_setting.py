"""How much memory local models may take together, where a user says so in the environment."""

from __future__ import annotations

import os

from rag_lab.errors import ConfigError

BUDGET_VARIABLE = "RAG_LAB_MODEL_MEMORY_GB"
_MIB_A_GB = 1024.0


def model_budget_mb() -> float | None:
    """Return the MiB that all models of a sweep may take together here; None where the user leaves it to the machine.

    Raises:
        ConfigError: if it is no positive number.
    """
    given = os.environ.get(BUDGET_VARIABLE, "").strip()
    if not given:
        return None
    try:
        budget_gb = float(given)
    except ValueError:
        budget_gb = 0.0
    if not 0.0 < budget_gb < float("inf"):
        raise ConfigError(f"{BUDGET_VARIABLE} is {given!r}; give a positive number of gigabytes, such as 16, or none.")
    return budget_gb * _MIB_A_GB
