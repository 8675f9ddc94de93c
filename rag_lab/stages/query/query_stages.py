"""The stages that a configuration asks for, from the question to what is searched."""

from __future__ import annotations

from rag_lab.stages.choose import stage_of
from rag_lab.stages.parts import Parts
from rag_lab.stages.query.own_hyde import HydePlace
from rag_lab.stages.query.own_rewriting import RewritePlace
from rag_lab.stages.query.own_understanding import UnderstandPlace
from rag_lab.stages.query.query_kinds import HYDE_WRITERS, REWRITINGS, UNDERSTANDINGS
from rag_lab.stages.query.rephrase import Rephrase
from rag_lab.stages.query.rewrite import guarded
from rag_lab.stages.query.route import RouteHyde
from rag_lab.stages.stage import Stage
from rag_lab.stages.switched_off import Off


def query_stages(parts: Parts) -> tuple[Stage, ...]:
    """Return what understands the question, rewrites it, and writes a hypothetical document."""
    return (_understand(parts), *_rewrite(parts), _rephrase(parts), _route(parts), _hyde(parts))


def _understand(parts: Parts) -> Stage:
    if parts.query.rewrite != "llm" and parts.query.hyde != "classified" and "understand" not in parts.given:
        return Off("understand")
    return stage_of(UNDERSTANDINGS, "understand", parts.query.understanding, parts, UnderstandPlace)


def _rewrite(parts: Parts) -> tuple[Stage, ...]:
    stage = stage_of(REWRITINGS, "rewrite", parts.query.rewrite, parts, RewritePlace)
    return (stage,) if "search_query" in stage.writes else (stage, guarded(parts))


def _rephrase(parts: Parts) -> Stage:
    n = parts.query.phrasings
    return Rephrase(parts.chat("understanding", Rephrase.name), n, parts.seed) if n else Off("rephrase")


def _route(parts: Parts) -> Stage:
    query = parts.query
    if query.hyde == "none":
        return Off("route")
    return RouteHyde(query.class_to_hyde if query.hyde == "classified" else None)


def _hyde(parts: Parts) -> Stage:
    if parts.query.hyde == "none":
        return Off("hyde")
    return stage_of(HYDE_WRITERS, "hyde", parts.query.hyde_writer, parts, HydePlace)
