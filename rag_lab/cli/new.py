"""`rag-lab new`: a project on your documents, or a custom module with its contract test and an experiment."""

import re
import shlex
import sys
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rag_lab._kit.config_file import read_shipped
from rag_lab.cli.shell import next_steps
from rag_lab.errors import ConfigError, unknown_name

COMMAND = "project"
_MODULE = Path(__file__).with_name("module.py.txt").read_text(encoding="utf-8")
_TEST = Path(__file__).with_name("test_module.py.txt").read_text(encoding="utf-8")
_KINDS = Path(__file__).with_suffix(".yaml")
_IMPORTS = read_shipped(Path(__file__).with_name("new_imports.yaml"))  # the module of each name in new.yaml


class ProjectByDefault(TyperGroup):
    """What names none of the group's commands is a project: `rag-lab new mine docs/`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command's name before its arguments, where it was left out."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [COMMAND, *args]
        return super().parse_args(ctx, args)


def new_project(
    folder: Annotated[Path, typer.Argument(metavar="DIR")],
    documents: Annotated[Path, typer.Argument(metavar="DOCUMENTS")],
    copy: Annotated[bool, typer.Option("--copy")] = False,
) -> None:
    """Begin with your own documents (`project` may be left out)."""
    from rag_lab.data.questions_file import QUESTIONS_FILE
    from rag_lab.experiment.new_project import EXPERIMENT_FILE
    from rag_lab.experiment.new_project import new_project as make
    from rag_lab.notebook.views.data_view import profile_page

    made = make(folder, documents, copy=copy)
    page = folder / "profile.html"
    page.write_text(profile_page(made.profile), encoding="utf-8")
    kept = "copied" if copy else "linked, not copied"
    typer.echo(
        f"{made.files[0]}  {made.profile.n_used} of {sum(made.profile.files.values())} files can be used ({kept})"
    )
    for path in (*made.files[1:], page):
        typer.echo(path)
    for setting in made.profile.settings:
        typer.echo(f"Set: {setting}={made.profile.settings[setting]}")
    for problem in made.profile.problems:
        typer.echo(f"  {problem}", err=True)
    if made.n_questions:
        were = "question was" if made.n_questions == 1 else "questions were"
        typer.echo(f"{made.n_questions} {were} drafted from the texts: put your own in their place.", err=True)
    elif not (folder / QUESTIONS_FILE).stat().st_size:
        typer.echo(f"No question could be drafted from the texts: a sweep needs yours in {QUESTIONS_FILE}.", err=True)
    where = shlex.quote(str(folder))
    next_steps(
        f"rag-lab sweep {where}/{EXPERIMENT_FILE}   compare the variants, write a report",
        f"rag-lab ask QUESTION --dataset {where}   one question",
        f"rag-lab questions draft {where} --model MODEL   questions that a chat model drafts, with labels",
        f"rag-lab profile {where}                  what the documents are like, and what to set",
    )


app = typer.Typer(
    cls=ProjectByDefault,
    help="Begin something of your own: a folder to experiment in with your documents, or a module.\n\n\b\nExamples:\n"
    "  rag-lab new mine docs/\n  rag-lab new module reranker my_reranker",
    short_help="Begin with your documents, or with a module.",
    subcommand_metavar="DIR DOCUMENTS | module KIND NAME",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command(COMMAND)(new_project)


@app.command("module")
def new_module(
    kind: Annotated[str, typer.Argument(autocompletion=lambda: list(read_shipped(_KINDS)))],
    name: Annotated[str, typer.Argument(metavar="NAME")],
    out: Path = Path(),
) -> None:
    """Write a module of your own, its contract test, and an experiment."""
    for path in write_module(kind, name, out):
        typer.echo(path)
    inside = f"cd {out}; " if out != Path() else ""
    typer.echo(
        f"\nNow:\n  {inside}python -m pytest test_{name}.py\n  {inside}rag-lab sweep {name}.yaml --dry-run\n"
        f"  {inside}rag-lab sweep {name}.yaml"
    )


def write_module(kind: str, name: str, out: Path) -> list[Path]:
    """Write the three files of a new module into `out` and return their paths."""
    import yaml

    kinds = read_shipped(_KINDS)
    if kind not in kinds:
        raise ConfigError(unknown_name("kind of module", kind, kinds))
    is_name = re.fullmatch("[a-z][a-z0-9_]*", name) and not iskeyword(name)
    found = find_spec(name) if is_name else None  # what Python would import; a file in `out` is refused by itself
    if not is_name or (found and Path(found.origin or "").resolve().parent != out.resolve()):
        raise ConfigError(
            f"A module cannot be called {name!r}: small letters, digits and _ are allowed, and no name of Python's or "
            "of an installed package."
        )
    class_name, parts = class_of(name), kinds[kind]
    code = "".join(f"    {line}" if line.strip() else line for line in parts["code"].splitlines(keepends=True))
    # What `code` names, and what every module needs, is imported: of Python's own, then what is installed.
    wanted: dict[str, list[str]] = {}
    for word, module in sorted(_IMPORTS.items(), key=lambda item: item[::-1]):
        if word in ("ClassVar", "dataclass") or re.search(rf"\b{word}\b", code):
            wanted.setdefault(module, []).append(word)
    groups = {True: "", False: ""}
    for module, words in wanted.items():
        groups[module.partition(".")[0] in sys.stdlib_module_names] += f"from {module} import {', '.join(words)}\n"
    imports = "\n".join(filter(None, groups.values()))
    values = {**parts, "name": name, "class_name": class_name, "code": code, "imports": imports}
    experiment = {
        "name": name,
        "question": f"What does {name} add?",
        "dataset": "plant_docs",
        "base": {"answer": {"name": "none"}},
        "metrics": ["retrieval.ndcg@10"],
        "limits": {"questions": 40},
        **parts["experiment"],
    }
    written = yaml.safe_dump(experiment, sort_keys=False, default_flow_style=None, width=120)
    paths = {
        out / f"{name}.py": _MODULE.format(**values),
        out / f"test_{name}.py": _TEST.format(**values),
        out / f"{name}.yaml": written.replace("MODULE", f"{name}:{class_name}"),
    }
    if there := [path for path in paths if path.exists()]:
        raise ConfigError(f"{there[0]} is there already and is not written over; choose another name, or --out.")
    out.mkdir(parents=True, exist_ok=True)
    for path, text in paths.items():
        path.write_text(text, encoding="utf-8")
    return list(paths)


def class_of(name: str) -> str:
    """Return the name of the class in the file of a module called `name`."""
    return "".join(part.capitalize() for part in name.split("_"))


def named_by(kind: str, name: str) -> str:
    """Return the line of an experiment that names a module called `name`, or '' where no module is written."""
    import yaml

    for part, value in read_shipped(_KINDS).get(kind, {}).get("experiment", {}).items():
        kept = {key: each for key, each in value.items() if "MODULE" in str(each)} if isinstance(value, dict) else value
        if "MODULE" in str(kept):
            line: str = yaml.safe_dump({part: kept}, default_flow_style=True, width=1000).strip()[1:-1]
            return line.replace("MODULE", f"{name}:{class_of(name)}")
    return ""
