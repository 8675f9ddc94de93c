"""`rag-lab models list`: models that are on this machine, or on its Ollama server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

_MB = 1_000_000


def list_(
    server: Annotated[
        str, typer.Option("--ollama", metavar="ADDRESS", help="An Ollama server; OLLAMA_HOST where left out.")
    ] = "",
) -> None:
    """List the models that need no download: packaged ones, those of the model hub, those of Ollama.

    \b
    Examples:
      rag-lab models list
      rag-lab models list --ollama http://gpu-box:11434
    """
    from rag_lab._kit.wording import text_table
    from rag_lab.errors import ModelError
    from rag_lab.models.remote.ollama.server import OllamaServer
    from rag_lab.redaction import shown

    rows, told = [*_packaged(), *_of_the_hub()], ""
    try:
        found = OllamaServer(server).models()
        rows += [
            (f"ollama:{model.name}", model.size_bytes, f"{model.parameters} {model.quantization}") for model in found
        ]
        told = "" if found else "Ollama has no models; `rag-lab models pull ollama:llama3.2:3b` downloads one."
    except ModelError as error:
        told = str(error)
    table = [(shown(name), f"{size / _MB:,.0f}", shown(about)) for name, size, about in rows]
    typer.echo(text_table(("model", "MB", ""), table))
    if told:
        typer.echo(told)


def _packaged() -> Iterator[tuple[str, int, str]]:
    from rag_lab._kit.machine import bytes_on_disk
    from rag_lab.errors import ModelError
    from rag_lab.models.providers import MODEL_KINDS, providers_of
    from rag_lab.models.weights import packaged

    providers: dict[str, list[str]] = {}
    for kind in MODEL_KINDS:
        for provider, each in providers_of(kind).items():
            if each.packaged and provider not in providers.setdefault(each.packaged, []):
                providers[each.packaged].append(provider)
    for name, those in sorted(providers.items()):
        try:
            path = packaged(name)
        except ModelError:
            continue  # `doctor` says how to install it
        also = "".join(f", also {other}:{name}" for other in those[1:])
        yield f"{those[0]}:{name}", bytes_on_disk(path), f"packaged{also}"


def _of_the_hub() -> Iterator[tuple[str, int, str]]:
    from huggingface_hub import CacheNotFound, scan_cache_dir

    try:
        cached = scan_cache_dir()
    except CacheNotFound:
        return
    for repository in sorted(cached.repos, key=lambda repository: repository.repo_id):
        if repository.repo_type == "model":
            yield repository.repo_id, repository.size_on_disk, "of the model hub, for the provider that loads it"
