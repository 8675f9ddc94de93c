"""What ingestion costs: `python benchmarks/ingest.py kills|one-row|latency`, one JSON object on stdout.

`kills`: 5,000 events (rows put, changed and deleted) reach a table in SQLite and a topic of Kafka, while `rag-lab
ingest --follow` is killed (SIGKILL) at random moments and started again. At the end the corpus and its index are
compared with both sources.
`one-row`: of 100,000 rows one is changed, and an event names it: seconds, by the clock and of the processor, until
ingestion has it, until the index does, and until it is found, and how many files were read and texts embedded for it;
the same of three later changes; what a listing of all takes; and what a process takes that opens the corpus anew. The
vectors have the size of MiniLM's, and are made by a function that costs nothing.
`latency`: seconds from a change to the moment when a search finds it, with MiniLM, for a followed folder, a followed
topic, and a table that is looked at each second.
"""

import argparse
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
RAG_LAB = [sys.executable, "-c", "from rag_lab.cli import main; main()"]
WORDS = [f"{a}{b}" for a in ("pump", "valve", "press", "oven", "belt") for b in ("", "-1", "-2", "-house", "-line")]


def text_of(source, key, version, words=WORDS):
    draw = random.Random(f"{source} {key} {version}")
    return f"{source} {key} version {version}: " + " ".join(draw.choices(words, k=12)) + "."


def cluster(topic):
    """A mock cluster of librdkafka, which lives as long as what is returned first; its address; and a producer."""
    from confluent_kafka import Producer

    mock = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
    brokers = mock.list_topics(topic, timeout=10).brokers.values()
    address = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    return mock, address, Producer({"bootstrap.servers": address, "linger.ms": 1})


def table(path):
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, version INTEGER, text TEXT)")
    return database


def connectors(folder, *each):
    path = folder / "connectors.yaml"
    path.write_text(json.dumps({"dataset": "mine", "connectors": list(each)}))
    return path


def sql(folder, **rest):
    options = {"url": f"sqlite:///{folder / 'rows.db'}", "query": "SELECT * FROM rows", "key": "id"}
    return {
        "name": "rows",
        "kind": "sql",
        "options": {**options, "version_column": "version"},
        "template": "{{ text }}",
        **rest,
    }


def kafka(address):
    options = {"servers": address, "topic": "changes"}
    return {"name": "changes", "kind": "kafka", "options": options, "template": "{{ text }}"}


def kills(folder, asked):
    database = table(folder / "rows.db")
    _mock, address, producer = cluster("changes")
    path = connectors(folder, sql(folder, every_s=0.2), kafka(address))
    draw = random.Random(asked.seed)
    truth = {"rows": {}, "changes": {}}
    done = threading.Event()

    def event(n):
        source = draw.choice(("rows", "changes"))
        key, held = draw.randrange(600), truth[source]
        if key in held and draw.random() < 0.25:
            del held[key]
            if source == "rows":
                database.execute("DELETE FROM rows WHERE id = ?", (key,))
            else:
                producer.produce("changes", json.dumps({"op": "d", "after": None}), str(key))
        else:
            held[key] = text_of(source, key, n)
            if source == "rows":
                database.execute("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", (key, n, held[key]))
            else:
                producer.produce("changes", json.dumps({"op": "u", "after": {"text": held[key]}}), str(key))
        producer.poll(0)

    def events():
        for n in range(asked.events):
            event(n)
            time.sleep(asked.seconds / asked.events)
        producer.flush(30)
        done.set()

    threading.Thread(target=events, daemon=True).start()
    began, n_kills, in_doubt, reached = time.monotonic(), 0, [], []
    while n_kills < asked.kills:
        child = subprocess.Popen(
            [*RAG_LAB, "ingest", str(path), "--follow"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        time.sleep(draw.uniform(1.0, 2 * asked.seconds / asked.kills - 1.0))
        assert child.poll() is None, child.stderr.read()
        child.kill()
        child.wait()
        n_kills += 1
        state = folder / "mine/ingest.sqlite"
        if state.exists():
            with sqlite3.connect(state) as seen:
                in_doubt.append(seen.execute("SELECT count(*) FROM documents WHERE fingerprint = ''").fetchone()[0])
                reached.append(seen.execute("SELECT count(*) FROM documents").fetchone()[0])
    done.wait()
    start = time.monotonic()
    subprocess.run([*RAG_LAB, "ingest", str(path)], check=True, stdout=subprocess.DEVNULL)
    last_s = time.monotonic() - start
    corpus = sorted(file.read_text() for file in (folder / "mine/corpus").rglob("*.md"))
    from rag_lab.data.dataset import Dataset
    from rag_lab.pipeline import Pipeline

    pipeline = Pipeline(Dataset.load(folder / "mine", labelled=False)).set("retrieval.mode", "bm25")
    index = sorted(document.text for document in pipeline.index.chunks.documents())
    expected = sorted(text for held in truth.values() for text in held.values())
    return {
        "events": asked.events,
        "kills": n_kills,
        "documents": len(expected),
        "corpus_is_the_sources": corpus == expected,
        "index_is_the_sources": index == expected,
        "twice": len(corpus) - len(set(corpus)),
        "kills_with_documents_in_doubt": sum(n > 0 for n in in_doubt),
        "in_doubt_a_kill": {"mean": round(statistics.mean(in_doubt), 2), "most": max(in_doubt)},
        "rows_that_grew_between_kills": sum(b != a for a, b in pairwise(reached)),
        "last_run_s": round(last_s, 1),
        "wall_s": round(time.monotonic() - began, 1),
    }


class Cheap:
    """Vectors of counts of letters and of zebras; counts what it embeds."""

    n = 0

    def identity(self):
        return {"name": "letters"}

    def embed_documents(self, texts):
        self.n += len(texts)
        made = np.array(
            [
                [1.0, 20.0 * text.count("zebra"), *(text.count(letter) for letter in "abcdefghij0123456789")]
                for text in texts
            ],
            np.float32,
        )
        made = np.pad(made, ((0, 0), (0, 384 - made.shape[1])))
        return made / np.linalg.norm(made, axis=1, keepdims=True)

    embed_queries = embed_documents


def one_row(folder, asked):
    from rag_lab.corpus import reading
    from rag_lab.data.dataset import Dataset
    from rag_lab.models import shared
    from rag_lab.pipeline import Pipeline
    from rag_lab.sources.config import read_connectors
    from rag_lab.sources.follow import settled
    from rag_lab.sources.ingestion import Ingestion

    database, cheap = table(folder / "rows.db"), Cheap()
    shared.embedder = lambda spec: cheap
    rows = ((n, 1, text_of("rows", n, 1)) for n in range(asked.rows))
    database.execute("BEGIN")
    database.executemany("INSERT INTO rows VALUES (?, ?, ?)", rows)
    database.execute("COMMIT")
    where, listed = read_connectors(connectors(folder, sql(folder)))
    ingestion, source = Ingestion(where, listed), listed[0].open()
    read, load = [0], reading.Reading.load

    def counted(self, *arguments):
        read[0] += 1
        return load(self, *arguments)

    reading.Reading.load = counted
    took = {}

    def timed(name, what):
        start, used = time.monotonic(), time.process_time()
        result = what()
        took[name] = [round(time.monotonic() - start, 2), round(time.process_time() - used, 2)]
        return result

    settings = {"store.name": "exact", "retrieval.mode": asked.mode, "answer.name": "none", "query.rewrite": "none"}

    def index():
        if asked.mode == "none":
            return None, None
        pipeline = Pipeline(Dataset.load(where, labelled=False)).set(settings)
        return pipeline, pipeline.ask("zebra").ranked if asked.mode == "bm25" else pipeline.index.ensure_vectors()

    def change(version):
        text = f"The zebra lies in hall {version} at {time.time_ns()}."  # was never read and embedded before
        database.execute("UPDATE rows SET version = ?, text = ? WHERE id = ?", (version, text, asked.rows // 2))

    def after(pipeline):
        pipeline = pipeline and pipeline.after(ingestion.files)
        if asked.mode == "dense":
            pipeline.index.ensure_vectors()
        return pipeline

    with ingestion.writing():
        timed("all_ingested_s", lambda: ingestion.look("rows", source))
        pipeline, _ = timed("all_indexed_s", index)
        if pipeline:
            pipeline.ask("Where is the pump?")  # what is imported once
        ingestion.files.clear()
        change(9)
        read[0] = cheap.n = 0
        found = timed("one_ingested_s", lambda: ingestion.look("rows", source, keys={str(asked.rows // 2)}))
        all_listed = timed("all_listed_s", lambda: ingestion.look("rows", source))
        pipeline = timed("one_indexed_s", lambda: after(pipeline))
        embedded = cheap.n
        hits = timed("one_searched_s", lambda: pipeline.ask("Where is the zebra?").ranked if pipeline else [])
        n_read, first = read[0], pipeline.index.text(hits[0]) if hits else None
        for version in (10, 11, 12) if asked.mode == "dense" else ():
            change(version)
            ingestion.look("rows", source, keys={str(asked.rows // 2)})
            pipeline = timed(f"later_{version}_indexed_s", partial(after, pipeline))
            timed(f"later_{version}_searched_s", partial(pipeline.ask, f"Where is the zebra of hall {version}?"))
        change(13)
        ingestion.look("rows", source, keys={str(asked.rows // 2)})
        timed("another_indexed_anew_s", index)
        timed("settled_for_a_sweep_s", lambda: settled(where))
    return {
        "rows": asked.rows,
        "mode": asked.mode,
        "changed": found.changed,
        "as_before": all_listed.same,
        "files_read": n_read,
        "texts_embedded": embedded,
        "found_first": first,
        **took,
    }


def latency(folder, asked):
    from rag_lab.data.dataset import Dataset
    from rag_lab.pipeline import Pipeline
    from rag_lab.sources.config import read_connectors
    from rag_lab.sources.follow import ingest
    from rag_lab.sources.ingestion import Ingestion

    database = table(folder / "rows.db")
    _mock, address, producer = cluster("changes")
    files = folder / "files"
    files.mkdir()
    followed = {"name": "files", "kind": "folder", "options": {"path": str(files)}}
    where, listed = read_connectors(connectors(folder, sql(folder, every_s=1), kafka(address), followed))
    documents = sorted((ROOT / "datasets/plant_docs/corpus").rglob("*.md"))
    for file in documents:
        (files / file.name).write_text(file.read_text())
    settings = {"answer.name": "none", "query.rewrite": "none", "rerank.name": "none"}
    stop, told, waited = threading.Event(), threading.Condition(), {}

    def searchable(found):
        if found.new or found.changed:
            pipeline = Pipeline(Dataset.load(where, labelled=False)).set(settings)
            pipeline.index.ensure_vectors()
            with told:
                told.pipeline = pipeline
                told.notify_all()

    ingestion = Ingestion(where, listed)

    def follow():
        with ingestion.writing():
            ingest(ingestion, True, searchable, stop)

    told.pipeline = None
    thread = threading.Thread(target=follow)
    thread.start()
    with told:
        told.wait_for(lambda: told.pipeline, timeout=600)
    time.sleep(3)
    for n in range(asked.changes):
        for name in ("files", "rows", "changes"):
            text = f"The spare part {name} {n} of gearbox {n * 37 % 101} lies on shelf {n * 53 % 997} of hall {n}."
            start = time.monotonic()
            if name == "files":
                (files / "part.md").write_text(text)
            elif name == "rows":
                database.execute("INSERT OR REPLACE INTO rows VALUES (1, ?, ?)", (n, text))
            else:
                producer.produce("changes", json.dumps({"op": "u", "after": {"text": text}}), "1")
                producer.flush(10)
            while True:
                with told:
                    hits = told.pipeline.ask(text).ranked
                    if any(hit.source.startswith(name) and text in told.pipeline.index.text(hit) for hit in hits[:3]):
                        break
                    told.wait(timeout=60)
            waited.setdefault(name, []).append(time.monotonic() - start)
            time.sleep(random.uniform(0, 1))
    stop.set()
    thread.join()
    shown = {name: {"median_s": statistics.median(each), "most_s": max(each)} for name, each in waited.items()}
    rounded = {name: {key: round(value, 2) for key, value in each.items()} for name, each in shown.items()}
    return {"documents": len(documents) + 2, "changes": asked.changes, **rounded}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="latency", choices=("kills", "one-row", "latency"))
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=200, help="over which the events are spread")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--mode", default="bm25", choices=("none", "bm25", "dense"))
    parser.add_argument("--changes", type=int, default=15)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rag_lab_ingest_") as name:
        os.environ["RAG_LAB_HOME"] = f"{name}/home"  # nothing is remembered of an earlier run
        measured = {"kills": kills, "one-row": one_row, "latency": latency}[asked.what](Path(name), asked)
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
