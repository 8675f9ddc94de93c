"""The profile of a corpus: what it is like, what to set and why, and what is wrong with its files."""

from __future__ import annotations

import shlex
from typing import Any

import yaml

from rag_lab._kit.wording import counted, some_of
from rag_lab.config import nested
from rag_lab.corpus_profile.corpus_profile import CorpusProfile
from rag_lab.notebook.views.text_view import TextView
from rag_lab.report.page.templates import asset, render
from rag_lab.stores.analyzer import analyzer_for


def to_html(profile: CorpusProfile) -> str:
    """Return the profile as a notebook shows it; everything from outside is escaped."""
    return render("profile.html", **_shown(profile))


def to_page(profile: CorpusProfile) -> str:
    """Return it as a page that needs nothing else."""
    return render("profile_page.html", **_shown(profile))


def to_text(profile: CorpusProfile) -> str:
    """Return it in at most 100 columns, but for what is to be pasted."""
    view = TextView()
    view.line(profile.name)
    for name, text in _facts(profile):
        view.fact(f"  {name}", text)
    for title, items in _advised(profile).items():
        for number, item in enumerate(items):
            view.fact("" if number else title, str(item))
    if profile.settings:
        view.block("Paste", _flags(profile))
    if profile.problems:
        view.block(f"Problems: {len(profile.problems)}", "\n".join(map(str, profile.problems)))
    return view.text()


def _shown(profile: CorpusProfile) -> dict[str, Any]:
    advised = _advised(profile)
    return {
        "profile": profile,
        "style": asset("card.css"),
        "facts": _facts(profile),
        "settings": advised["Set"],
        "factors": advised["Compare"],
        "to_do": advised["Do"],
        "flags": _flags(profile),
        "yaml": yaml.safe_dump(nested(profile.settings), sort_keys=False),
    }


def _advised(profile: CorpusProfile) -> dict[str, list[Any]]:
    return {
        "Set": [item for item in profile.advice if item.key],
        "Compare": [item for item in profile.advice if item.factor],
        "Do": [item for item in profile.advice if not item.key and not item.factor],
    }


def _flags(profile: CorpusProfile) -> str:
    return " ".join(f"--set {shlex.quote(f'{key}={value}')}" for key, value in profile.settings.items())


def _facts(profile: CorpusProfile) -> list[tuple[str, str]]:
    types = ", ".join(
        f"{count:,} {suffix.removeprefix('.') or 'without a suffix'}" for suffix, count in profile.files.items()
    )
    unused = sum(profile.files.values()) - profile.n_used
    said = "as dataset.yaml says" if profile.declared else "detected"
    languages = ", ".join(
        f"{name.capitalize() or 'not told'} in {counted(n, 'file')}" for name, n in profile.languages.items()
    )
    return [
        ("files", f"{types}{f'; {unused:,} of them cannot be used' if unused else ''}"),
        ("text", f"{profile.n_pages:,} pages (with files without pages), {profile.n_words:,} words"),
        ("language", f"{_language(profile.language) or 'none of most texts'}, {said}; {languages}"),
        ("tables", f"on {profile.n_tables:,} of {profile.n_pages:,} pages, as far as their text tells"),
        ("headings", f"in {profile.n_headings:,} of {counted(profile.n_used, 'file')}"),
        ("scans", some_of([f"{name} ({pages})" for name, pages in profile.scans.items()]) or "none"),
        ("same content", "; ".join(" = ".join(names) for names in profile.same[:5]) or "none"),
        ("near copies", "; ".join(map(str, profile.similar[:5])) or "none"),
        *((length.what, str(length)) for length in profile.lengths),
    ]


def _language(declared: str) -> str:
    """Return the name of a language that may be given by its code."""
    analyzer = analyzer_for("auto", declared)
    return (declared if analyzer == "unicode" else analyzer).capitalize()
