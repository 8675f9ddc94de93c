"""How often a judged metric asks its judge for one score, where every reply is usable."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JudgeCalls:
    """Calls for a score: `fixed`, and `a_passage` more for each passage of the context.

    `prompt_tokens` is what RAGAs' instructions and examples add to the texts that are judged in its longest call.
    """

    fixed: int
    a_passage: int
    prompt_tokens: int

    def of(self, n_passages: int) -> int:
        """Return the calls for one score whose context has `n_passages`."""
        return self.fixed + self.a_passage * n_passages


CALLS: dict[str, JudgeCalls] = {
    "ragas.faithfulness": JudgeCalls(2, 0, 1400),
    "ragas.answer_relevancy": JudgeCalls(3, 0, 800),
    "ragas.context_precision": JudgeCalls(0, 1, 1700),
    "ragas.context_utilization": JudgeCalls(0, 1, 1700),
    "ragas.context_recall": JudgeCalls(1, 0, 2400),
    "ragas.context_entity_recall": JudgeCalls(2, 0, 1000),
    "ragas.context_relevance": JudgeCalls(2, 0, 900),
    "ragas.noise_sensitivity": JudgeCalls(3, 2, 1300),
    "ragas.noise_sensitivity_irrelevant": JudgeCalls(3, 2, 1300),
    "ragas.answer_correctness": JudgeCalls(3, 0, 2300),
    "ragas.answer_accuracy": JudgeCalls(2, 0, 1000),
    "ragas.factual_correctness": JudgeCalls(4, 0, 1300),
    "ragas.factual_correctness_precision": JudgeCalls(2, 0, 1300),
    "ragas.factual_correctness_recall": JudgeCalls(4, 0, 1300),
    "ragas.response_groundedness": JudgeCalls(2, 0, 900),
}
