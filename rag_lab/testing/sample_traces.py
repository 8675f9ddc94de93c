"""A small corpus, indexed, and traces on it with every field filled: what contracts run on."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rag_lab.access import allowed_labels
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import CorpusIndex, open_index
from rag_lab.records import Answer, Citation, Evidence, Passage, Question, StageRecord, Trace
from rag_lab.stores.config import StoreConfig
from rag_lab.testing.doubles import HashEmbedder, ScriptedChat

WITHHELD = "salaries.md"  # the file that only askers with the permission `office` may see
FILES = {
    "press.md": "# Press\n\nThe press runs at 140 bar. Its ram guides take grease NLGI 2 every 500 hours.\n",
    "oven.md": "# Oven\n\nThe oven cures at 180 degrees. Its filter is changed every month by maintenance.\n\n"
    "## Alarms\n\nAlarm A7 means that the burner of the oven is locked out, so the oven trips.\n",
    "log.md": "Night shift: the oven tripped twice, the burner was reset.\n",
    WITHHELD: "The salary of the man at the oven is paid every month.\n",
}
QUESTIONS = ("Why does the oven trip?", "What is A7?", "Which grease do the ram guides of the press take?")
REPLY = json.dumps(
    {"class": "fuzzy", "rewritten": "oven trips", "hyde": True, "answer": "A7", "citations": [1], "phrasings": ["a"]}
)
_CORPUS = CorpusConfig(chunk_size=80, chunk_overlap=10)
_FOLDERS: list[TemporaryDirectory[str]] = []


def sample_chat() -> ScriptedChat:
    """Return a chat model that gives each of our prompts the reply it asks for."""
    return ScriptedChat(lambda request: REPLY)


@cache
def sample_index() -> CorpusIndex:
    """Return the index of `FILES`, searched by a `HashEmbedder`; it is gone when the process ends."""
    _FOLDERS.append(TemporaryDirectory(prefix="rag_lab_sample_"))
    home = Path(_FOLDERS[-1].name)
    (home / "corpus").mkdir()
    for name, text in FILES.items():
        (home / "corpus" / name).write_text(text, encoding="utf-8")
    (home / "attributes.yaml").write_text(f"- files: {WITHHELD}\n  permissions: [office]\n", encoding="utf-8")
    index = open_index(home / "corpus", _CORPUS, HashEmbedder(), home=home, store=StoreConfig(name="exact"))
    index.ensure_vectors()
    return index


def sample_question(text: str = QUESTIONS[0], **changes: Any) -> Question:
    """Return an answerable question with a reference and its evidence."""
    evidence = (Evidence("oven.md", quote="the burner of the oven is locked out"),)
    return Question(text, text, **({"answers": ("The burner is locked out.",), "evidence": evidence} | changes))


def sample_trace(text: str = QUESTIONS[0], may_see: tuple[str, ...] | None = None, **changes: Any) -> Trace:
    """Return a trace that went well, with every field filled, and nothing on it that its asker may not see."""
    index, question = sample_index(), sample_question(text, may_see=may_see)
    allowed = allowed_labels(index.chunks.labels, question)
    hits = {
        name: tuple(index.search(HashEmbedder().embed_queries([text]), 4, allowed, step=name)[0])
        for name in ("dense", "hyde")
    }
    hits |= {name: tuple(index.search_terms(name, "english", [text], 3, allowed)[0]) for name in ("bm25", "tfidf")}
    found = hits["dense"]
    passages = tuple(
        Passage(number, hit.parent_id, hit.source, hit.page, hit.start, hit.end, index.text(hit))
        for number, hit in enumerate(found[:2], start=1)
    )
    filled = Trace(
        replace(question, evidence=tuple(index.locate(item)[0] for item in question.evidence)),
        query_class="fuzzy",
        proposed_query="oven trips",
        hyde_suggested=False,
        search_query=text,
        phrasings=("oven stops", "cause of the oven's trip"),
        hyde_route="fuzzy",
        hypothetical="The oven trips when its burner is locked out.",
        hits=hits,
        base_hits=found,
        candidates=found,
        ranked=found,
        passages=passages,
        prompt="Answer from the passages.",
        raw_text=REPLY,
        answer=Answer("The burner is locked out.", (Citation(1, passages[0].source, None),)),
        stages=(StageRecord("context"), StageRecord("generate", seconds=1.0, tokens_in=9, tokens_out=5)),
    )
    return replace(filled, **changes)
