"""`rag-lab doctor`: what this machine has, and what it would take to have more."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import typer


def doctor() -> None:
    """Say what works on this machine.

    Packages, models, keys (set or not set, never what they are), which of them a file .env gave, GPU, disk, and which
    presets can run.
    """
    import torch

    from rag_lab._kit.env_file import env_files_read
    from rag_lab._kit.home import home
    from rag_lab._kit.machine import NO_METER, bytes_on_disk, meters
    from rag_lab.data.dataset import list_datasets
    from rag_lab.experiment.manifest import package_versions
    from rag_lab.experiment.model_checks import shipped_presets
    from rag_lab.models.providers import MODEL_KINDS, providers_of
    from rag_lab.models.requirements import missing_package
    from rag_lab.models.shared import provider_problem
    from rag_lab.stores.config import STORE_NAMES, STORES

    typer.echo(f"Python     {sys.version.split()[0]} at {sys.executable}")
    typer.echo("Packages   " + ", ".join(f"{name} {version}" for name, version in package_versions().items()))
    typer.echo("Models")
    providers = [(kind.name, name, each) for kind in MODEL_KINDS for name, each in providers_of(kind).items()]
    for kind_name, name, provider in providers:
        typer.echo(f"  {f'{name} ({kind_name})':<44} {provider_problem(name, provider) or 'ready'}")
    typer.echo("Stores")
    for store in STORE_NAMES:
        typer.echo(f"  {store:<44} {missing_package(STORES[store].module, 'rag_lab[stores]') or 'ready'}")
    typer.echo("Keys")
    for name in sorted({name for _, _, provider in providers for name in provider.env}):
        typer.echo(f"  {name:<44} {'set' if os.environ.get(name) else 'not set'}")
    for path, names in env_files_read().items():
        typer.echo(f"  from {path}: {', '.join(names.taken) or 'nothing that the environment does not name itself'}")
        if names.refused:
            typer.echo(f"  never from a file .env: {', '.join(names.refused)}")
    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    gpu = ", ".join(gpus) if torch.cuda.is_available() else "none that torch sees; models run on the CPU"
    typer.echo(f"GPU        {gpu}")
    typer.echo("Energy     " + (", ".join(meter.device for meter in meters()) or NO_METER))
    typer.echo(f"Home       {home()} ({bytes_on_disk(home()) // 10**6} MB)")
    typer.echo(f"Disk       {shutil.disk_usage(Path.cwd()).free // 10**9} GB free")
    typer.echo("Datasets   " + (", ".join(name for name, _ in list_datasets()) or "none"))
    typer.echo("Presets    of experiments, as this machine is")
    for preset in shipped_presets():
        for number, lack in enumerate(preset.lacks or ("ready",)):
            typer.echo(f"  {'' if number else preset.name:<44} {lack}")
    typer.echo("Modules    rag-lab modules lists what each part of a pipeline can be")


COMMANDS = (doctor,)
