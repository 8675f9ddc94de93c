"""A `BaseRetriever` of LangChain's as a search of one's own."""

from __future__ import annotations

import sys
from typing import Any


class LangChainSearch:
    """Asks the retriever for k documents where it can be told how many; else it returns what it returns."""

    version = 1
    deterministic = False  # nobody has said that it is

    def __init__(self, retriever: Any) -> None:
        self.retriever = retriever

    def __call__(self, query: str, k: int) -> list[Any]:
        """Return the documents, best first."""
        return list(_with_k(self.retriever, k).invoke(query))


def is_retriever(given: Any) -> bool:
    """Tell whether `given` is a retriever of LangChain's, which is not imported to find out."""
    module = sys.modules.get("langchain_core.retrievers")
    return module is not None and isinstance(given, module.BaseRetriever)


def _with_k(retriever: Any, k: int) -> Any:
    fields = type(retriever).model_fields
    if "search_kwargs" in fields:
        return retriever.model_copy(update={"search_kwargs": {**(retriever.search_kwargs or {}), "k": k}})
    return retriever.model_copy(update={"k": k}) if "k" in fields else retriever
