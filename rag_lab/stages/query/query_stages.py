"""The stages that a configuration asks for, from the question to what is searched."""

from __future__ import annotations

from rag_lab.stages.choose import stage_of
from rag_lab.stages.kinds import HYDE_WRITERS, REWRITINGS, UNDERSTANDINGS
from rag_lab.stages.parts import Parts
from rag_lab.stages.query.own_hyde import HydePlace
from rag_lab.stages.query.own_rewriting import RewritePlace
from rag_lab.stages.query.own_understanding import UnderstandPlace
from rag_lab.stages.query.rephrase import Rephrase
from rag_lab.stages.query.rewrite import proposed
from rag_lab.stages.query.route import SUGGESTED, RouteHyde
from rag_lab.stages.stage import Stage
from rag_lab.stages.switched_off import Off


def query_stages(parts: Parts) -> tuple[Stage, ...]:
    """Return what understands the question, rewrites it, and writes a hypothetical document."""
    return (_understand(parts), *_rewrite(parts), _rephrase(parts), _route(parts), _hyde(parts))


def _understand(parts: Parts) -> Stage:
    if not parts.query.understands and "understand" not in parts.given:
        return Off("understand")
    return stage_of(UNDERSTANDINGS, "understand", parts.query.understanding, parts, UnderstandPlace)


def _rewrite(parts: Parts) -> tuple[Stage, ...]:
    stage = stage_of(REWRITINGS, "rewrite", parts.query.rewrite, parts, RewritePlace)
    return (stage,) if "search_query" in stage.writes else (stage, proposed(parts))


def _rephrase(parts: Parts) -> Stage:
    n = parts.query.phrasings
    if not n:
        return Off("rephrase")
    return Rephrase(parts.chat("understanding", Rephrase.name), n, parts.seed, parts.prompts.get("phrasings"))


def _route(parts: Parts) -> Stage:
    query = parts.query
    rules = {"always": None, "suggested": SUGGESTED, "classified": query.class_to_hyde}
    return Off("route") if query.hyde == "none" else RouteHyde(rules[query.hyde])


def _hyde(parts: Parts) -> Stage:
    if parts.query.hyde == "none":
        return Off("hyde")
    return stage_of(HYDE_WRITERS, "hyde", parts.query.hyde_writer, parts, HydePlace)
