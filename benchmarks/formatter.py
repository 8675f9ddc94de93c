"""What it buys that a model writes the documents of records, as JSON on stdout.

    python benchmarks/formatter.py [MODEL]

The change notices of plant_docs stand in SQLite, a row a paragraph with its notice and title. Two connectors.yaml with
the same names and keys make them documents, by a template and by MODEL (llamacpp:smollm2), a record a call and five a
call; `experiments/formatter.yaml` asks the questions below of both. Their evidence names a document and none of its
words, so a document that says the same in other words counts as found, and one that was left out as not found.
"""

import json
import re
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import yaml
from late_interaction import gain

import rag_lab as rl
from rag_lab.models import shared
from rag_lab.sources import config
from rag_lab.sources.ingestion import Ingestion

ROOT = Path(__file__).parents[1]
TEMPLATE = "# {{ notice }} {{ title }}\n\n{{ text }}"
# Words of the paragraph that answers, the question, the answer.
QUESTIONS = [
    ("moved on cart", "On which cart are the dies moved now?", "DC-3"),
    ("moved on cart", "How many shots is the new die life?", "30,000 shots"),
    ("moved with hoist", "How were dies moved before the change?", "with hoist CH-2 by one setter"),
    ("die drop of", "Why was the die change on hot presses changed?", "die drop of 2024-08-21; wear of plating"),
    ("release agent plus", "What does the cart cost?", "EUR 11,900"),
    ("release agent plus", "What does the lifting table for P-13 cost?", "EUR 6,300"),
    ("burn risk", "Which wrench is used against burns from hot clamping?", "wrench TW-2 with long handle"),
    ("three changes on each press", "What was the mean time of a die change in the validation?", "113 minutes"),
    ("Requested by R. Pettifer", "Who requested the die change on hot presses?", "R. Pettifer"),
    ("fits both ways", "What happens when the sample holder is upside down?", "the cell is loaded beyond its range"),
    ("pin of 6 mm", "How large is the pin in the sample holder?", "6 mm"),
    ("pin of 6 mm", "At which load does the mechanical stop act?", "54 kN"),
    ("overload on 2024-02-02", "How many tests had to be looked at again?", "214 tests"),
    ("speed of 10 mm", "What of the shear test was not changed?", "speed of 10 mm a minute, number of pads"),
    ("EUR 410", "What did the change of the sample holder cost?", "EUR 410"),
    ("EUR 410", "How long was the laboratory staff trained?", "20 minutes"),
    ("yellow label", "What has to be stuck on the front page of each printed copy?", 'the yellow label "CN-2251"'),
    ("rear left nut", "By how many degrees did the rear left nut turn?", "14 degrees"),
    ("rear left nut", "Which paste was wrong at the rebuild of 2022?", "copper"),
    ("until three good checks", "How often is the preload of the tie rods checked now?", "every 4 months"),
    ("2,040 Nm", "What is the final tightening value of the tie rod nuts?", "2,040 Nm"),
    ("PM-01: weeks", "In which weeks does PM-01 ask for the check?", "weeks 16, 33 and 49"),
    ("burn at the fourth head", "Which pads burn at the fourth head of the grinder?", "pads of MX-475"),
    ("Feed belt speed", "What is the feed belt speed for MX-475?", "5.2 m/min"),
    ("Dressing of head four", "After how many pads is head four dressed for MX-475?", "450 pads"),
]  # fmt: skip


class Counted:
    """A chat model and what it took."""

    def __init__(self, model):
        self.model, self.calls, self.spent = model, 0, Counter()

    def identity(self):
        return self.model.identity()

    def generate(self, requests):
        replies = self.model.generate(requests)
        self.calls += len(replies)
        for reply in replies:
            self.spent += Counter(tokens_in=reply.tokens_in, tokens_out=reply.tokens_out, cut=int(reply.truncated))
        return replies


def records():
    """The paragraphs of the notices, each with its id and its notice's number and title."""
    for file in sorted((ROOT / "datasets/plant_docs/corpus/change_notices").glob("*.md")):
        title, *parts = re.split(r"\n\n|\n(?=- )", file.read_text().strip())
        number, _, title = title.removeprefix("# ").partition(" ")
        parts = [part for part in parts if not part.startswith(("## ", "Signed"))]
        for n, text in enumerate(parts, start=1):
            yield f"{number.lower()}-{n}", number, title, text


def main():
    name, found, places, rows = (sys.argv[1:] or ["llamacpp:smollm2"])[0], {}, {}, list(records())
    results = {"model": name, "records": len(rows), "questions": len(QUESTIONS)}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        database = sqlite3.connect(folder / "notices.db")
        database.execute("CREATE TABLE notices (id TEXT, notice TEXT, title TEXT, text TEXT)")
        database.executemany("INSERT INTO notices VALUES (?, ?, ?, ?)", rows)
        database.commit()
        options = {"url": f"sqlite:///{folder}/notices.db", "query": "SELECT * FROM notices", "key": "id"}
        model = Counted(shared.chat_model(name))
        model.generate([config.ChatRequest((config.Message("user", "Hello"),), 2)])  # it is loaded
        config.chat_model = lambda *_: model
        kinds = {"notices": ("template", TEMPLATE, 5), "one": ("formatter", name, 1), "five": ("formatter", name, 5)}
        for dataset, (kind, how, config._AT_ONCE) in kinds.items():
            one = {"name": "cn", "kind": "sql", "options": options, kind: how, "namespace": "", "permission": ""}
            (folder / f"{dataset}.yaml").write_text(json.dumps({"dataset": dataset, "connectors": [one]}))
            target, connectors = config.read_connectors(folder / f"{dataset}.yaml")
            model.calls, model.spent, clock, took = 0, Counter(), time.perf_counter(), time.process_time()
            with Ingestion(target, connectors).writing() as ingestion:
                seen = ingestion.look("cn", connectors[0].open())
            found[dataset] = {"documents": seen.new, "left_out": seen.n_problems, "calls": model.calls}
            found[dataset] |= {"seconds_a_record": round((time.perf_counter() - clock) / len(rows), 2)}
            found[dataset] |= {"processor_seconds_a_record": round((time.process_time() - took) / len(rows), 2)}
            found[dataset] |= {key: round(n / len(rows), 1) for key, n in model.spent.items()}
            found[dataset]["sentences"] = list(Counter(s.split(": ", 1)[1] for s in seen.problems.values()).items())
            files = {file.stem: file for file in sorted((target / "corpus").rglob("*.md"))}
            found[dataset]["texts"] = {key: file.read_text() for key, file in [*files.items()][:5]}
            places.setdefault(dataset, {key: str(file.relative_to(target / "corpus")) for key, file in files.items()})
        questions = []
        for n, (words, question, answer) in enumerate(QUESTIONS):
            (key,) = [row[0] for row in rows if words in row[3]]
            evidence = [{"source": places["notices"][key]}]
            questions.append({"id": f"q{n}", "question": question, "answers": [answer], "evidence": evidence})
        (folder / "notices/questions.jsonl").write_text("\n".join(map(json.dumps, questions)))
        experiment = yaml.safe_load((ROOT / "experiments/formatter.yaml").read_text())
        experiment["dataset"] = str(folder / "notices")
        experiment["factors"] = {"corpus.folder": [str(folder / dataset) for dataset in kinds]}
        (folder / "formatter.yaml").write_text(json.dumps(experiment))
        rl.sweep(folder / "formatter.yaml", out=folder / "results")
        scores = rl.compare(folder / "results").scores
        for metric, given in scores.groupby("metric"):
            columns = {v: part.set_index("question_id").value for v, part in given.groupby("variant_id")}
            before = columns.pop("baseline")
            found["notices"][metric] = round(before.mean(), 3)
            for variant, after in columns.items():
                dataset = next(name for name in kinds if variant.endswith(name))
                found[dataset][metric] = gain(before.to_dict(), after.to_dict()) | {"mean": round(after.mean(), 3)}
    print(json.dumps(results | found, indent=1))


if __name__ == "__main__":
    main()
