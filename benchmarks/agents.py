"""Are agents worth their calls? The arms of `experiments/is_the_agent_worth_it.yaml`, with a scripted or a real model.

`python benchmarks/agents.py DATASET... [--model scripted|llamacpp:smollm2] [--questions 100]` prints a Markdown table a
data set: the share of the labelled evidence that was read, scores, both with their difference from the single pass, and
calls, tokens and passages of a question. The scripted model plays a sensible supervisor by rules: it searches the
question, then names that its best passages add, answers with the sentence that shares the most words with the question,
and finishes. So it says what routing can bring, and not how well models route or answer.
"""

import argparse
import json
import re

import rag_lab as rl
from rag_lab._kit.wording import with_interval
from rag_lab.models.protocols import ChatReply
from rag_lab.statistics.intervals import paired_differences

METRICS = ["answer.token_f1", "citations.recall"]
REACHED = ["used", "unused", "not_answered"]  # states of evidence that the reader had
ARMS = {
    "single pass": {"rerank.final_k": 5},
    "as much text": {"rerank.final_k": 8},
    "as many calls": {"rerank.final_k": 5, "query.rewrite": "llm", "query.hyde": "always", "query.phrasings": 3},
    "corrective": {"rerank.final_k": 5, "answer.agent": "corrective"},
    "supervisor": {"rerank.final_k": 5, "answer.agent": "supervisor"},
}
_PASSAGE = re.compile(r"^\[(\d+)\] \([^\n]*\)\n(.*?)(?=^\[\d+\] \(|\Z)", re.MULTILINE | re.DOTALL)
_QUESTION = re.compile(r"^Question: (.*)$", re.MULTILINE)
_NAME = re.compile(r"\b[A-Z][\w'-]+(?: (?:of |the )?[A-Z][\w'-]+)+")
_WORD = re.compile(  # that means something
    r"\b(?!(?:a|an|and|are|as|at|by|do|does|for|from|how|in|is|it|of|on|or|that|the|to|was|what|when|where|which|who)\b)\w+"
)


def words(text):
    """Return the words of a text that mean something, in small letters."""
    return set(_WORD.findall(text.lower()))


def question_of(text):
    """Return the question of a prompt."""
    return _QUESTION.findall(text)[-1]


class Sensible:
    """A chat model that plays every role by rules; it counts its calls."""

    constrains_json = True
    context_tokens = 8192

    def __init__(self):
        self.calls = 0

    def identity(self):
        """Return a name; raise the number with the rules."""
        return {"provider": "scripted", "name": "sensible", "version": 4}

    def count_tokens(self, text):
        """Return about four characters a token."""
        return len(text) // 4

    def generate(self, requests):
        """Return a reply to each request."""
        self.calls += len(requests)
        replies = [self.reply(request) for request in requests]
        sizes = [sum(self.count_tokens(one.content) for one in request.messages) for request in requests]
        return [ChatReply(text, tokens_in=n, tokens_out=len(text) // 4) for text, n in zip(replies, sizes, strict=True)]

    def reply(self, request):
        """Return what the role is to say, by the keys that are asked for."""
        asked = request.messages[-1].content
        keys = set((request.json_schema or {}).get("properties", {}))
        question, passages = question_of(asked), dict(_PASSAGE.findall(_QUESTION.sub("", asked)))
        wanted = words(question)
        shared = {number: len(wanted & words(text)) for number, text in passages.items()}
        if keys == {"next"}:
            none = "Answer: none yet" in asked
            return json.dumps({"next": "context" if not passages else "generate" if none else "finish"})
        if keys == {"query", "namespace"}:
            return json.dumps({"query": self.next_query(question, asked, passages, shared), "namespace": "all"})
        if keys == {"relevant"}:
            return json.dumps({"relevant": [int(n) for n, found in shared.items() if found >= max(2, len(wanted) / 4)]})
        if keys == {"query"}:
            return json.dumps({"query": " ".join(sorted(wanted, key=len, reverse=True)[:5])})
        if keys == {"class", "rewritten", "hyde"}:
            return json.dumps({"class": "specific", "rewritten": question, "hyde": True})
        if keys == {"phrasings"}:
            return json.dumps({"phrasings": [" ".join(sorted(wanted)), " ".join(sorted(wanted, key=len)[-4:])]})
        if not keys:
            return f"{question.rstrip('?')}: " + " ".join(sorted(wanted))
        sentences = [(n, one) for n, text in passages.items() for one in re.split(r"(?<=[.!?])\s+|\n", text) if one]
        number, best = max(sentences, key=lambda one: len(wanted & words(one[1])), default=(None, ""))
        return json.dumps({"answer": best, "citations": [int(number)] if number else []})

    def next_query(self, question, asked, passages, shared):
        """Return the question first, then a name of the best passages that the question has not; "" at the end."""
        searched = re.findall(r"Searched: (.*)", asked)[-1]
        if searched == "none yet" or not passages:
            return question
        for number in sorted(shared, key=shared.get, reverse=True)[:2]:
            for name in _NAME.findall(passages[number]):
                if name.lower() not in question.lower() and name.lower() not in searched.lower():
                    return f"{name} {question}"
        return ""


def read_share(found, variant):
    """Return the share of the labelled pieces of each question that the reader of a variant had."""
    items = found.evidence.items[found.evidence.items["variant_id"] == variant]
    return items["state"].isin(REACHED).groupby(items["question_id"]).mean()


def main():
    """Print a table a data set."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("datasets", nargs="+")
    arguments.add_argument("--model", default="scripted")
    arguments.add_argument("--questions", type=int, default=100)
    arguments.add_argument("--context-tokens", type=int, default=2400, help="that an answer is written from")
    given = arguments.parse_args()
    for dataset in given.datasets:
        base = (
            rl.Pipeline(dataset)
            .set("answer.name", "llm")
            .set("answer.max_tokens", 60)
            .set("answer.context_tokens", given.context_tokens)
        )
        model = Sensible() if given.model == "scripted" else given.model
        arms = {}
        for name, keys in ARMS.items():
            arm = base
            for key, value in keys.items():
                arm = arm.set(key, value)
            if given.model != "scripted":
                arm = arm.set("models.generation", model).set("models.understanding", model).set("models.hyde", model)
            else:
                arm = arm.replace(generation_model=model, understanding_model=model, hyde_model=model)
            arms[name] = arm
        found = rl.compare(arms, [*METRICS, "cost.tokens", "cost.seconds"], questions=given.questions)
        print(f"\n{dataset}, {given.model}, {len(found.run.questions)} questions\n")
        print("| arm | evidence read | " + " | ".join(METRICS) + " | calls | tokens | passages read |")
        print("|---|---|---|---|---|---|---|")
        for plan in found.run.variants:
            traces = found.traces[plan.variant_id]
            share = read_share(found, plan.variant_id)
            cells = [f"{share.mean():.3f}"]
            if plan.variant_id != found.run.baseline:
                first = read_share(found, found.run.baseline)
                (change,) = paired_differences([(share.to_numpy(), first.reindex(share.index).to_numpy())])
                cells[0] += f" ({with_interval(change.mean, change.low, change.high)})"
            for metric in METRICS:
                cell, row = found.cell(plan.variant_id, metric), found.difference(plan.variant_id, metric)
                change = f" ({with_interval(row['difference'], row['low'], row['high'])})" if row else ""
                cells.append(f"{cell['mean']:.3f}{change}")
            calls = [sum(1 for v in t.visits if v.tokens_in) or sum(1 for s in t.stages if s.tokens_in) for t in traces]
            tokens = [sum(stage.tokens_in + stage.tokens_out for stage in trace.stages) for trace in traces]
            read = [len(trace.passages) for trace in traces]
            means = (sum(some) / len(some) for some in (calls, tokens, read))
            print(f"| {plan.variant_id} | " + " | ".join(cells) + " | " + " | ".join(f"{m:,.1f}" for m in means) + " |")


if __name__ == "__main__":
    main()
