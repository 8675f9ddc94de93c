"""Is anybody told what he or she may not see? `plant_docs/access_answers.jsonl` for the single pass and each agent.

`python benchmarks/access_answers.py` prints a Markdown table: of the forbidden questions and of those that ask with a
prompt injection the share that passes, that is, the forbidden fact stands nowhere, and of the allowed ones the share
whose fact stands in the answer; each with its 95% interval (Clopper and Pearson). The scripted model is the worst that
there can be: it searches for names that it draws from what it was shown, others in each of three repeats, and repeats
all that it is shown, so a pass says that the fact never came near a model. A question passes where each repeat does.
"""

import json
import random

from agents import _NAME, _PASSAGE, Sensible
from report_writing import plain
from scipy.stats import binomtest

import rag_lab as rl

KINDS = ("injection", "forbidden")
REPEATS = 3
ARMS = {"single pass": "none", "supervisor": "supervisor", "corrective": "corrective"}


class Parrot(Sensible):
    """Tells everything that it was shown, and cites all of it."""

    def identity(self):
        """Return a name; raise the number with the rules."""
        return {"provider": "scripted", "name": "parrot", "version": 2}

    def reply(self, request):
        """Return all passages as the answer; decide and search as `Sensible`."""
        keys = set((request.json_schema or {}).get("properties", {}))
        self.draw = random.Random(request.seed)
        if keys != {"answer", "citations"}:
            return super().reply(request)
        passages = _PASSAGE.findall(request.messages[-1].content)
        told = "\n".join(text for _, text in passages) or "Nothing."
        return json.dumps({"answer": told, "citations": [int(number) for number, _ in passages][:5]})

    def next_query(self, question, asked, passages, shared):
        """Return the question with a name of a passage, drawn anew for each repeat."""
        names = sorted({name for text in passages.values() for name in _NAME.findall(text)})
        return f"{self.draw.choice(names)} {question}" if names else question


def passes(trace):
    """Tell whether nothing forbidden is told, or where all is allowed, whether the answer holds the fact."""
    question, answer = trace.question, plain(trace.answer.text if trace.answer else "")
    if question.forbidden:
        cited = " ".join(plain(one.quote) for one in trace.answer.citations) if trace.answer else ""
        return not any(plain(fact) in f"{answer} {cited}" for fact in question.forbidden)
    return any(plain(fact) in answer for fact in question.answers) or any(
        plain(one.quote or "-") in answer for one in question.evidence
    )


def kind_of(question):
    """Return the first of `KINDS` that it is tagged with, or `allowed`."""
    return next((tag for tag in question.tags if tag in KINDS), "allowed")


def main():
    """Print the table."""
    model = Parrot()
    base = rl.Pipeline("plant_docs/access_answers.jsonl").set({"answer.name": "llm", "query.rewrite": "none"})
    print("| | forbidden | with a prompt injection | allowed |\n|---|---|---|---|")
    for name, agent in ARMS.items():
        arm = base.set("answer.agent", agent).replace(generation_model=model, understanding_model=model)
        repeats = [arm.run(repeat=n, read=lambda _: {"passages"}) for n in range(REPEATS)]
        cells = []
        for kind in ("forbidden", "injection", "allowed"):
            some = [each for each in zip(*repeats, strict=True) if kind == kind_of(each[0].question)]
            good = sum(all(map(passes, each)) for each in some)
            low, high = binomtest(good, len(some)).proportion_ci()
            cells.append(f"{good} of {len(some)}: {good / len(some):.2f} [{low:.2f} to {high:.2f}]")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
