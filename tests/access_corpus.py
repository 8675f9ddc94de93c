"""Files that differ in whose they are, and a pipeline whose models would repeat whatever they are shown."""

import json

import pytest
import yaml

from rag_lab.records import Evidence, Question
from rag_lab.testing import OverlapScorer, ScriptedChat

N_FILES = 5
BASE = {
    "corpus.chunk_size": 60,
    "corpus.chunk_overlap": 10,
    "corpus.parent_size": 200,
    "store.name": "exact",
    "retrieval.base_k": 100,
    "retrieval.hyde_k": 100,
    "rerank.input_limit": 100,
    "rerank.final_k": 100,
    "answer.name": "llm",
    "models.generation": "openai:scripted",
}


def name_of(number):
    return f"file{number}name.txt"


def mark_of(number):
    return f"marker{number}end"


def write_corpus(folder, owned):
    """Files that differ in a mark, in the middle of words that every question finds."""
    (folder / "corpus").mkdir(parents=True)
    rules = []
    for number, (namespace, permissions) in enumerate(owned):
        text = "\n".join(f"The press runs at {line} bar, says {mark_of(number)} of the oven." for line in range(6))
        (folder / "corpus" / name_of(number)).write_text(text)
        rule = {"namespace": namespace} if namespace else {}
        rule |= {"permissions": list(permissions)} if permissions else {}
        if rule:
            rules.append({"files": name_of(number), **rule})
    if rules:
        (folder / "attributes.yaml").write_text(yaml.safe_dump(rules))
    return folder / "corpus"


def parrot(request):
    """Say everything that was shown, in whatever shape was asked for."""
    shown = " ".join(message.content for message in request.messages[1:])
    return json.dumps(
        {
            "class": "fuzzy", "rewritten": "press bar oven", "hyde": True, "phrasings": ["oven press", "bar of press"],
            "answer": shown, "citations": list(range(1, 30)),
        }
    )  # fmt: skip


@pytest.fixture
def models(monkeypatch):
    chat = ScriptedChat(parrot, context_tokens=10**6)
    monkeypatch.setattr("rag_lab.models.shared.chat_model", lambda spec, purpose="": chat)
    monkeypatch.setattr("rag_lab.models.shared.scorer", lambda role, spec: OverlapScorer())


def ask(may_see=None, namespace=None):
    evidence = tuple(Evidence(name_of(n), quote=f"says {mark_of(n)}") for n in range(N_FILES))
    return Question("q", "At how many bar does the press run?", ("2",), evidence=evidence, may_see=may_see,
                    namespace=namespace)  # fmt: skip
