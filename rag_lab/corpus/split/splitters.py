"""Splitters by name."""

from __future__ import annotations

from rag_lab._kit.registry import BuiltIn, Kind

_ROOM = "rag_lab.corpus.split"

SPLITTERS = Kind(
    "splitter",
    "rag_lab.splitters",
    {
        "recursive": BuiltIn(f"{_ROOM}.recursive:Recursive", "characters, at the coarsest boundary that fits"),
        "sentences": BuiltIn(f"{_ROOM}.sentences:Sentences", "whole sentences up to a number of words"),
        "markdown": BuiltIn(f"{_ROOM}.markdown:MarkdownSections", "sections, which no piece runs over"),
        "semantic": BuiltIn(f"{_ROOM}.semantic:Semantic", "sentences as long as they stay on their subject"),
    },
    call="__call__(self, text)",
)
