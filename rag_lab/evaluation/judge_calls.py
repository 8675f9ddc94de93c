"""How often a judged metric asks its judge for one score, where every reply is usable."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JudgeCalls:
    """Calls for a score: `fixed`, and `a_passage` more for each passage of the context.

    `prompt_tokens` is what RAGAs' instructions and examples add to the texts that are judged, in a call.
    """

    fixed: int
    a_passage: int
    prompt_tokens: int

    def of(self, n_passages: int) -> int:
        """Return the calls for one score whose context has `n_passages`."""
        return self.fixed + self.a_passage * n_passages


CALLS: dict[str, JudgeCalls] = {
    "ragas.faithfulness": JudgeCalls(2, 0, 900),
    "ragas.answer_relevancy": JudgeCalls(3, 0, 500),
    "ragas.context_precision": JudgeCalls(0, 1, 900),
    "ragas.context_recall": JudgeCalls(1, 0, 900),
    "ragas.context_relevance": JudgeCalls(2, 0, 300),
    "ragas.answer_correctness": JudgeCalls(3, 0, 1200),
}
