"""A small data set with a table, a closed file and headings, and a scripted chat that writes questions and reads."""

import json

import yaml

from rag_lab.config import PipelineConfig
from rag_lab.data.dataset import Dataset
from rag_lab.pipeline import Pipeline
from rag_lab.testing import HashEmbedder, ScriptedChat

FILES = {
    "press.md": """# Press

## Pressure

The hydraulic press HP-12 runs at 140 bar while the mould is closed. Its relief valve opens at 155 bar, and the operator
then calls maintenance.

## Grease

The ram guides of the press HP-12 take grease NLGI 2 every 500 hours. The grease gun hangs beside the tool board.
""",
    "oven.md": """# Oven

The curing oven CO-7 cures brake pads at 180 degrees for 25 minutes. Alarm A7 means that the burner is locked out, so
that Erika Moyle resets it at the panel.
""",
    "parts.md": """# Parts

| Part | Fits | Price in EUR |
|---|---|---|
| Seal kit BV-7160 | HP-12 | 1240 |
| Return filter BV-3310 | HP-12 | 84 |
| Burner nozzle BV-9900 | CO-7 | 310 |
| Sensor BV-5511 | CO-7 | 46 |
""",
    "pay.md": """# Pay

The night allowance of the foreman of the oven is 412 euros a month. It is paid with the salary of the month that
follows, and the works council agreed to it in May.
""",
}
# What is asked about the place that holds the quote: question, answer, quote.
GOOD = (
    ("At which pressure does the relief valve of HP-12 open?", "155 bar", "relief valve opens at 155 bar"),
    ("Which grease is right for the ram guides?", "NLGI 2", "take grease NLGI 2 every 500 hours"),
    ("How hot does the oven have to be to cure pads?", "180 degrees", "cures brake pads at 180 degrees for 25 minutes"),
    ("What does a seal kit for HP-12 cost?", "1240", "| Seal kit BV-7160 | HP-12 | 1240 |"),
    ("How much does the foreman get for nights?", "412 euros", "allowance of the foreman of the oven is 412 euros"),
)  # fmt: skip
NOT_FOUND = json.dumps({"answer": "The documents do not say.", "citations": []})


def reply(question="", answer="", quotes=(), before=()):
    """The object that is asked for; one without a question is what a writer returns that found nothing to ask."""
    return json.dumps({"question": question, "answer": answer, "quotes": list(quotes), "before": list(before)})


def write_good(kind, asked):
    """A single question of `GOOD` where the place holds its quote, nothing else."""
    found = next((one for one in GOOD if one[2] in asked), None)
    return reply(found[0], found[1], [found[2]]) if found and kind == "single" else reply()


def read_good(passages, question):
    """The answer of `GOOD` where its quote is among the passages."""
    answer = next((one[1] for one in GOOD if one[0] == question and one[2] in passages), "")
    return json.dumps({"answer": answer, "citations": [1]}) if answer else NOT_FOUND


def scripted(name="good", write=write_good, read=read_good):
    """A chat that calls `write(kind, asked)`, or `read(passages, question)`, whose passages are '' in a closed book."""

    def script(request):
        system, asked = request.messages[0].content, request.messages[-1].content
        if system.startswith("You write questions"):
            marks = {"two passages": "two_passages", "follows another": "follow_up", "one condition": "unanswerable",
                     "name a topic": "topic"}  # fmt: skip
            return write(next((kind for mark, kind in marks.items() if mark in system), "single"), asked)
        passages, _, question = asked.rpartition("Question: ")
        return read(passages, question)

    return ScriptedChat(script, name=name)


def write_folder(folder):
    (folder / "corpus").mkdir(parents=True)
    for name, text in FILES.items():
        (folder / "corpus" / name).write_text(text)
    (folder / "dataset.yaml").write_text("name: set\nlanguage: en\n")
    (folder / "attributes.yaml").write_text(yaml.safe_dump([{"files": "pay.md", "permissions": ["hr"]}]))
    return folder


def pipeline_of(folder):
    keys = {"retrieval.mode": "bm25", "corpus.chunk_size": 200, "corpus.chunk_overlap": 20}
    made = Pipeline(Dataset.load(folder, labelled=False), PipelineConfig().override(keys), progress=False)
    return made.replace(embedding_model=HashEmbedder())
