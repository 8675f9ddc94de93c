"""A pipeline as a `BaseRetriever` of LangChain's."""

from collections.abc import Callable

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from rag_lab.errors import RagLabError
from rag_lab.records import Hit, Trace


class PipelineRetriever(BaseRetriever):
    """Returns what a pipeline ranks, best first, with ids, scores and the trace in the metadata."""

    ask: Callable[[str], Trace]
    text: Callable[[Hit], str]

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        trace = self.ask(query)
        if trace.failure:
            raise RagLabError(f"The stage {trace.failure.stage} failed: {trace.failure.reason}")
        return [
            Document(
                page_content=self.text(hit),
                metadata={
                    "chunk_id": hit.chunk_id,
                    "parent_id": hit.parent_id,
                    "source": hit.source,
                    "page": hit.page,
                    "score": hit.score,
                    "scores": dict(hit.scores),
                    "trace": trace,
                },
            )
            for hit in trace.ranked
        ]
