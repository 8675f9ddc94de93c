"""What a model needs before it can load: a package, a key, a GPU. Each absence is one sentence."""

import importlib
import importlib.util
import os
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from types import ModuleType

from rag_lab.errors import ModelError


def missing_package(module: str, package: str) -> str:
    """Return the sentence for a package that is not installed, or ''."""
    if importlib.util.find_spec(module) is not None:
        return ""
    return f"The package {module} is not installed; run: pip install {package!r}."


@cache
def library(package: str) -> str:
    """Return an installed package with its version, as `torch 2.9`; asked once, since models say it for every stage."""
    return f"{package} {metadata.version(package)}"


def require_package(module: str, package: str) -> ModuleType:
    """Import and return a package."""
    problem = missing_package(module, package)
    if problem:
        raise ModelError(problem)
    try:
        return importlib.import_module(module)
    except (ImportError, NotImplementedError, RuntimeError, OSError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"The package {module} is installed but does not import here: {reason}") from error


def cuda_problem(what: str) -> str:
    """Return the sentence for a machine without a CUDA GPU, or ''."""
    torch = require_package("torch", "torch")
    if torch.cuda.is_available():
        return ""
    return f"{what} needs an NVIDIA GPU with CUDA, and torch sees none; choose llamacpp:smollm2, which runs on a CPU."


def missing_key(names: Sequence[str]) -> str:
    """Return the sentence for environment variables of which none is set, or ''."""
    if not names or any(os.environ.get(name) for name in names):
        return ""
    return f"No key is set; put it in the environment variable {' or '.join(names)}."


def require_key(names: Sequence[str]) -> str:
    """Return the first of these environment variables that is set."""
    problem = missing_key(names)
    if problem:
        raise ModelError(problem)
    return next(value for name in names if (value := os.environ.get(name)))
