"""What a model needs before it can be asked: a package, a key, a GPU, an address. Each absence is one sentence."""

import importlib
import os
from collections.abc import Callable, Sequence
from types import ModuleType
from urllib.parse import urlsplit

from rag_lab._kit.registry import missing_package as missing_package  # for what models need, too
from rag_lab._kit.registry import version
from rag_lab.errors import ModelError


def problem_of(call: Callable[[], object]) -> str:
    """Return the sentence of the `ModelError` that a call raises, or ''."""
    try:
        call()
    except ModelError as error:
        return str(error)
    return ""


def library(package: str) -> str:
    """Return an installed package with its version, as `torch 2.9`."""
    return f"{package} {version(package)}"


def require_package(module: str, package: str) -> ModuleType:
    """Import and return a package."""
    if problem := missing_package(module, package):
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
    if problem := missing_key(names):
        raise ModelError(problem)
    return next(value for name in names if (value := os.environ.get(name)))


def on_loopback(url: str) -> bool:
    """Tell whether an address is of this machine, where a server needs no key."""
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


def check_url(url: str, what: str) -> None:
    """Refuse an address that is not http(s) or that carries a secret, without repeating it."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ModelError(f"{what} must be an address such as http://127.0.0.1:8000/v1.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ModelError(f"{what} must not hold a user, password or query; set the provider's environment variable.")
