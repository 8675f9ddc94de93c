"""`rag-lab models`, `judge` and `doctor`: what this machine has, how to get more, and whether a model can be used."""

from __future__ import annotations

import math
import os
import shutil
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_lab._kit.home import env_files_read, home
from rag_lab._kit.machine import NO_METER, bytes_on_disk, meters
from rag_lab._kit.wording import text_table
from rag_lab.cli import completion
from rag_lab.cli.shared_options import DEFAULT_DATASET
from rag_lab.errors import ModelError
from rag_lab.redaction import one_line, shown

if TYPE_CHECKING:
    from rag_lab.models.protocols import ChatRequest

app = typer.Typer(help="List, describe, download and check models.", no_args_is_help=True, rich_markup_mode=None)
judge_app = typer.Typer(help="Try a judge before its scores are believed.", no_args_is_help=True, rich_markup_mode=None)
judge_app.callback()(lambda: None)  # without a callback, a group of one command would be that command
_SHOWN = 3  # replies that changed
_MB = 1_000_000


@judge_app.command("check")
def check_judge(
    model: str,
    dataset: Annotated[str, typer.Option(autocompletion=completion.datasets)] = DEFAULT_DATASET,
    questions: Annotated[int, typer.Option(min=1)] = 20,
    metric: list[str] | None = None,
    embedding: str | None = None,
    language: str = "",
    seed: int = 0,
) -> None:
    """Find out whether a model can judge."""
    from rag_lab.data.dataset import Dataset
    from rag_lab.evaluation import judge_check, judge_trial
    from rag_lab.models import config, shared

    found = judge_trial.check_judge(
        shared.chat_model(model),
        Dataset.load(dataset),
        n_questions=questions,
        metrics=metric or None,
        embedder=shared.embedder(embedding or config.ModelsConfig().embedding),
        memory=home() / "scores.sqlite",
        language=language,
        seed=seed,
        progress=True,
    )
    path = judge_check.save_check(found)
    typer.echo(str(found))
    typer.echo(f"\nKept in {path}")


def _request(n: int, max_tokens: int) -> ChatRequest:
    """Return the n-th question about pumps, over one to six passages: requests of many lengths need padding."""
    from rag_lab.models.protocols import ChatRequest
    from rag_lab.records import Passage, Remembered
    from rag_lab.stages.generate import SCHEMA, answer_messages

    texts = [
        f"Pump {n + k}: bearing BR-{20 + n + k}, oil change every {500 + 250 * k} hours." for k in range(1 + n % 6)
    ]
    passages = [Passage(k + 1, f"p{k}", "pumps.md", None, 0, len(text), text) for k, text in enumerate(texts)]
    question = (f"How often does pump {n} get new oil?", f"Which bearing does pump {n} take?")[n % 2]
    return ChatRequest(answer_messages(question, Remembered(), passages), max_tokens, json_schema=SCHEMA)


@app.command("list")
def list_(server: Annotated[str, typer.Option("--ollama", metavar="ADDRESS")] = "") -> None:
    """List the models that need no download: packaged ones, those of the model hub, those of Ollama."""
    from huggingface_hub import CacheNotFound, scan_cache_dir

    from rag_lab.models.providers import MODEL_KINDS, providers_of
    from rag_lab.models.remote.ollama import OllamaServer
    from rag_lab.models.weights import packaged

    rows, note = [], ""
    providers: dict[str, list[str]] = {}  # of each packaged model
    for kind in MODEL_KINDS:
        for provider, each in providers_of(kind).items():
            if each.packaged and provider not in providers.setdefault(each.packaged, []):
                providers[each.packaged].append(provider)
    for name, those in sorted(providers.items()):
        with suppress(ModelError):  # `doctor` says how to install it
            also = "".join(f", also {other}:{name}" for other in those[1:])
            rows.append((f"{those[0]}:{name}", bytes_on_disk(packaged(name)), f"packaged{also}"))
    with suppress(CacheNotFound):
        for repository in sorted(scan_cache_dir().repos, key=lambda repository: repository.repo_id):
            if repository.repo_type == "model":
                about = "of the model hub, for the provider that loads it"
                rows.append((repository.repo_id, repository.size_on_disk, about))
    try:
        found = OllamaServer(server).models()
        rows += [(f"ollama:{one.name}", one.size_bytes, f"{one.parameters} {one.quantization}") for one in found]
        note = "" if found else "Ollama has no models; `rag-lab models pull ollama:llama3.2:3b` downloads one."
    except ModelError as error:
        note = str(error)
    table = [(shown(name), f"{size / _MB:,.0f}", shown(about)) for name, size, about in rows]
    typer.echo(text_table(("model", "MB", ""), table))
    if note:
        typer.echo(note)


@app.command()
def pull(model: str) -> None:
    """Download a model onto an Ollama server. Models of the hub download when they are first used."""
    from tqdm import tqdm

    from rag_lab.models.providers import EMBEDDERS, ModelSpec, split_name
    from rag_lab.models.remote.ollama import OllamaServer

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


@app.command()
def show(
    model: str,
    batch: Annotated[int, typer.Option(min=1)] = 1,
    measure: Annotated[bool, typer.Option("--measure")] = False,
) -> None:
    """Say what a model is, can do and will need of this machine; nothing is loaded unless it is measured."""
    from rag_lab.models import model_card
    from rag_lab.models.shared import chat_model

    card = model_card.model_card(model, batch)
    if measure:
        card = replace(card, measured=model_card.measure(chat_model(model)))
    typer.echo(str(card))


@app.command()
def check(
    model: Annotated[str, typer.Argument(show_default=False)],
    replies: Annotated[int, typer.Option(min=2, max=1000)] = 20,
    max_tokens: Annotated[int, typer.Option(min=1, max=4096)] = 48,
) -> None:
    """Say how many greedy replies change when a model answers in batches."""
    from rag_lab.models.local.transformers import check_batch
    from rag_lab.models.shared import chat_model

    found = chat_model(model)
    size = int(getattr(found, "batch_size", 1))
    if size == 1:
        raise ModelError(
            f"{shown(model)} answers one request at a time, so no reply can depend on a batch; models of transformers "
            "and unsloth take batch_size."
        )
    pairs = check_batch(found, [_request(n, max_tokens) for n in range(replies)])
    changed = [(n, *pair) for n, pair in enumerate(pairs, start=1) if pair[0].text != pair[1].text]
    alone, together = (
        sum(reply.tokens_out for reply in written) / (sum(reply.seconds for reply in written) or math.inf)
        for written in zip(*pairs, strict=True)
    )
    typer.echo(f"{len(changed)} of {len(pairs)} greedy replies change with the batch size (1 or {size}).")
    typer.echo(f"Tokens a second: {alone:.1f} one at a time, {together:.1f} in batches.")
    for number, one, other in changed[:_SHOWN]:
        typer.echo(f"request {number}")
        typer.echo(f"  alone     {shown(one.text)}")
        typer.echo(f"  in batch  {shown(other.text)}")


def doctor() -> None:
    """Say what works on this machine."""
    import torch

    from rag_lab.data.dataset import list_datasets
    from rag_lab.experiment import manifest, stage_identities
    from rag_lab.models import providers, requirements, shared
    from rag_lab.stores.config import STORE_NAMES, STORES

    typer.echo(f"Python     {sys.version.split()[0]} at {sys.executable}")
    typer.echo("Packages   " + ", ".join(f"{name} {version}" for name, version in manifest.package_versions().items()))
    typer.echo("Models")
    known = [
        (kind.name, name, each) for kind in providers.MODEL_KINDS for name, each in providers.providers_of(kind).items()
    ]
    for kind_name, name, provider in known:
        typer.echo(f"  {f'{name} ({kind_name})':<44} {shared.provider_problem(name, provider) or 'ready'}")
    typer.echo("Stores")
    for store in STORE_NAMES:
        typer.echo(f"  {store:<44} {requirements.missing_package(STORES[store].needs, 'rag_lab[stores]') or 'ready'}")
    typer.echo("Keys")
    for name in sorted({name for _, _, provider in known for name in provider.env}):
        typer.echo(f"  {name:<44} {'set' if os.environ.get(name) else 'not set'}")
    for path, (taken, refused) in env_files_read.items():
        typer.echo(f"  from {path}: {', '.join(taken) or 'nothing that the environment does not name itself'}")
        if refused:
            typer.echo(f"  never from a file .env: {', '.join(refused)}")
    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    gpu = ", ".join(gpus) if torch.cuda.is_available() else "none that torch sees; models run on the CPU"
    typer.echo(f"GPU        {gpu}")
    typer.echo("Energy     " + (", ".join(meter.device for meter in meters()) or NO_METER))
    typer.echo(f"Home       {home()} ({bytes_on_disk(home()) // 10**6} MB)")
    typer.echo(f"Disk       {shutil.disk_usage(Path.cwd()).free // 10**9} GB free")
    typer.echo("Datasets   " + (", ".join(name for name, _ in list_datasets()) or "none"))
    typer.echo("Presets    of experiments, as this machine is")
    for preset, problems in stage_identities.shipped_presets().items():
        for number, problem in enumerate(problems or ("ready",)):
            typer.echo(f"  {'' if number else preset:<44} {problem}")
    typer.echo("Modules    rag-lab modules lists what each part of a pipeline can be")
