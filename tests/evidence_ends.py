"""Traces under which the first piece of evidence ends in a place that is given."""

from rag_lab.records import Answer, Citation, Evidence, Hit, Passage, Question, StageRecord, Trace

RAN = tuple(StageRecord(name) for name in ("merge", "rerank", "context", "generate", "parse"))


def trace_of(question, repeat, state):
    """A trace under which the first piece of evidence ends in `state` and every other one is not found."""
    gold, other = (Hit(name, name, f"{name}.txt", None, 0, 9, 1.0) for name in ("gold", "other"))
    passage = Passage(1, "gold", "gold.txt", None, 0, 9, "words")
    found = state not in ("not_found", "not_indexed")
    return Trace(
        question,
        repeat,
        hits={"dense": (gold,) if found else (other,)},
        candidates=(gold,) if found and state != "merging" else (other,),
        ranked=(gold,) if state in ("budget", "unused", "used") else (other,),
        passages=(passage,) if state in ("unused", "used") else (),
        answer=Answer("so", (Citation(1, "", None),) if state == "used" else ()),
        stages=RAN,
    )


def asked(number, n_items, query_class):
    items = tuple(Evidence("gold.txt" if place == 0 else f"more{place}.txt") for place in range(n_items))
    return Question(f"q{number}", "?", ("yes",), query_class=query_class, evidence=items)
