"""`rag-lab models pull`: download a model onto an Ollama server."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer


def pull(
    model: Annotated[str, typer.Argument(help="ollama:NAME, with its tag and, elsewhere, ?base_url=ADDRESS.")],
) -> None:
    """Download a model onto an Ollama server. Models of the hub download when they are first used.

    \b
    Examples:
      rag-lab models pull ollama:llama3.2:3b
      rag-lab models pull "ollama:bge-m3?base_url=http://gpu-box:11434"
    """
    from tqdm import tqdm

    from rag_lab.errors import ModelError
    from rag_lab.models.providers import EMBEDDERS
    from rag_lab.models.remote.ollama.server import OllamaServer
    from rag_lab.models.spec import ModelSpec, split_name
    from rag_lab.redaction import one_line

    if split_name(model, EMBEDDERS)[0] != "ollama":
        raise ModelError(
            "Only Ollama's models are pulled, as ollama:NAME; those of the hub download when they are first used."
        )
    spec = ModelSpec.parse(model, EMBEDDERS)
    server = OllamaServer(str(spec.options.get("base_url", "")))
    last = ""
    with ExitStack() as bars:
        bar = None
        for status, done, due in server.pull(spec.name):
            if status != last:
                bars.close()
                last, bar = status, None
                typer.echo(one_line(status))
            if due and bar is None:
                bar = bars.enter_context(tqdm(total=due, unit="B", unit_scale=True, disable=None, leave=False))
            if bar is not None:
                bar.update(done - bar.n)
    take = f"--set answer.name=llm --set models.generation=ollama:{spec.name}"
    typer.echo(f"ollama:{spec.name} is at {server.address}; take it with {take}")
