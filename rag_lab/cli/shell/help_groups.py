"""`rag-lab --help`: the first commands to type, then all of them by what people want to do."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from rag_lab.cli.completion import designs
from rag_lab.errors import ConfigError, nearest

FIRST = (
    ("rag-lab demo", "an ablation with its report"),
    ('rag-lab ask "Why?" --dataset DIR', "answers from your documents"),
    ("rag-lab new mine DIR", "experiments on your documents"),
    ("rag-lab vary rerank.name=none,query_likelihood", "does reranking pay?"),
)
GROUPS = {
    "Your documents": ("new", "profile", "index", "ask", "datasets"),
    "Experiments": ("demo", "run", "vary", "plan", "sweep", "worker"),
    "Results": ("status", "open", "compare", "report", "export"),
    "The workbench": ("modules", "models", "judge", "store", "doctor"),
}


class GroupedCommands(TyperGroup):
    """Lists commands by group; one that is in none stands with the others of the workbench."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command; a name that is a design's, or nearly, is answered with how a design is run."""
        is_known = ctx.resilient_parsing or args[0] in self.commands or nearest(args[0], self.commands)
        if not is_known and (design := nearest(args[0], designs(""))):
            meant = f"rag-lab vary KEY=A,B --design {design[0]}"
            raise ConfigError(f"There is no command {args[0]!r}; did you mean `{meant}`?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the first commands, then a section a group."""
        with formatter.section("Begin with"):
            formatter.write_dl(FIRST, col_max=50)
        known = [name for names in GROUPS.values() for name in names]
        others = tuple(name for name in self.list_commands(ctx) if name not in known)
        width = max(map(len, self.list_commands(ctx)))
        for title, names in GROUPS.items():
            names = names + others if title == "The workbench" else names
            commands = [(name, self.get_command(ctx, name)) for name in names]
            told = [
                (name.ljust(width), command.get_short_help_str(formatter.width - width - 4))
                for name, command in commands
                if command is not None and not command.hidden
            ]
            with formatter.section(title):
                formatter.write_dl(told)
