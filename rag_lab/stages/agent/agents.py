"""Which agent a pipeline has, if any."""

from dataclasses import replace

from rag_lab.stages.agent.agent import AGENT, Agent
from rag_lab.stages.agent.corrective import Corrective
from rag_lab.stages.agent.search_tool import SearchTool
from rag_lab.stages.agent.self_search import SelfSearch
from rag_lab.stages.agent.supervisor import Supervisor
from rag_lab.stages.context import Assemble, context_budget
from rag_lab.stages.stage import Parts, Stage

_KINDS: dict[str, type[Agent]] = {"supervisor": Supervisor, "corrective": Corrective, "search": SelfSearch}


def agent_stage(parts: Parts, retrieval: tuple[Stage, ...], answering: tuple[Stage, ...]) -> Agent:
    """Return the agent that the configuration names; it searches by `retrieval` and answers by `answering`."""
    limits = parts.agent
    context = Assemble(parts.index, context_budget(parts), 1)
    tool = SearchTool(
        parts.index, retrieval, limits.results, lambda n: replace(context, final_k=n), parts.answer.context_tokens
    )
    return _KINDS[parts.answer.agent](
        parts.chat("generation", AGENT), answering, tool, limits, parts.seed, parts.memory, parts.replayed
    )
