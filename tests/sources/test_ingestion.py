"""The engine: whatever happens to a source and to the process, the corpus ends as the source."""

import tempfile
from pathlib import Path

import pytest
from changing_source import Killed, Rows, connector, look, texts
from hypothesis import given, settings
from hypothesis import strategies as st
from small_dataset import write_dataset
from small_plans import run_jobs_here, write_machines_sweep

from rag_lab.corpus.folder import list_files
from rag_lab.data.dataset import Dataset
from rag_lab.errors import ConfigError
from rag_lab.experiment.plan import plan as plan_experiment
from rag_lab.experiment.run.sweep import sweep
from rag_lab.sources import ingestion
from rag_lab.sources.follow import settled
from rag_lab.sources.ingestion import Ingestion, batch_lock, file_name
from rag_lab.sources.source import Entry, UnusableItem

KEYS = st.sampled_from(["1", "a", "A", "../../etc/passwd", "ä", "a/b", ""])
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, st.integers(0, 3)),
    st.tuples(st.just("delete"), KEYS, st.just(0)),
    st.tuples(st.sampled_from(["look", "break", "kill", "kill in writing"]), st.just(""), st.integers(0, 4)),
)


@settings(max_examples=15, deadline=None)
@given(st.lists(STEPS, max_size=8))
def test_whatever_happens_the_corpus_ends_as_the_source(steps):
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder, source = Path(name), Rows()
        put = Ingestion._put
        for what, key, n in steps:
            if what == "put":
                source.rows[key] = {"text": f"{key} {n}"}
            elif what == "delete":
                source.rows.pop(key, None)
            else:
                source.breaks = n if what == "break" else None
                source.kills = n if what == "kill" else None
                left = [n]

                def put_or_die(*arguments, left=left, dies=what == "kill in writing"):
                    left[0] -= 1
                    if dies and left[0] < 0:
                        raise Killed
                    return put(*arguments)

                patch.setattr(Ingestion, "_put", put_or_die)
                before = texts(folder)
                try:
                    found = look(folder, source)
                except Killed:
                    continue
                assert bool(found.failure) == (what == "break")
                assert not found.failure or len(texts(folder)) >= len(before) and not found.gone
        patch.undo()
        source.breaks = source.kills = None
        look(folder, source)
        expected = [f"text: {record['text']}" for record in source.rows.values()]
        assert texts(folder) == sorted(expected)
        assert all(path.is_relative_to(folder / "corpus/plant") for path in (folder / "corpus").rglob("*.md"))
        assert not list((folder / ".ingest").iterdir())
        if expected:  # each is labelled, and no other rule stands there
            labels = list_files(folder / "corpus").attributes
            assert len(labels) == len(expected) and {label.permissions for label in labels.values()} == {("plant",)}
        source.fetched.clear()
        again = look(folder, source)
        assert not source.fetched and again.same == len(expected) and not again.new + again.changed + again.gone


def test_only_what_differs_is_fetched_and_a_dry_run_writes_nothing(tmp_path):
    source = Rows({str(n): {"text": f"text {n}"} for n in range(20)})
    assert look(tmp_path / "d", source, dry=True).new == 20 and not (tmp_path / "d").exists()
    assert look(tmp_path, source).new == 20
    source.rows["7"] = {"text": "other"}
    del source.rows["3"]
    source.rows["20"] = {"text": "text 20"}
    source.fetched.clear()
    dry = look(tmp_path, source, dry=True)
    assert (dry.new, dry.changed, dry.gone, dry.same) == (1, 1, 1, 18) and not source.fetched
    found = look(tmp_path, source)
    assert (found.new, found.changed, found.gone) == (1, 1, 1) and source.fetched == ["7", "20"]
    assert len(texts(tmp_path)) == 20 and look(tmp_path, source, template="{{ text }}!").changed == 20


def test_bad_items_are_a_sentence_each_and_the_rest_goes_on(tmp_path):
    class Bad(Rows):
        def entries(self, cursor):
            yield from super().entries(cursor)
            yield Entry("1", "again", raw="1")
            yield Entry("poison", problem="it is no JSON.")
            yield Entry("\ud800", "x", raw="1")

        def contents(self, entries):
            for entry, content in super().contents(entries):
                yield entry, UnusableItem("its page is 500.") if entry.key == "torn" else content

    source = Bad(
        {"1": {"text": "fine"}, "empty": {"text": " "}, "torn": {}, "odd": {"body": "x"}, "huge": {"text": "x" * 300}}
    )
    found = look(tmp_path, source, template="{{ text }}", max_mb=0.0001)
    assert texts(tmp_path) == ["fine"] and found.new == 1 and found.n_problems == 7 and found.whole
    assert found.problems["1"] == "plant, key '1': two items have this key, and the first one stands; make keys unique."
    assert "has no text" in found.problems["empty"] and "'text' is undefined" in found.problems["odd"]
    assert "more than max_mb" in found.problems["huge"] and "500" in found.problems["torn"]
    source.rows["1"] = {"body": "a renamed column"}
    source.rows["empty"] = {"text": "filled"}
    found = look(tmp_path, source, template="{{ text }}", max_mb=0.0001)
    assert texts(tmp_path) == ["filled", "fine"]  # what cannot be made anew stays as it was


def test_labels_come_from_columns_and_a_row_without_one_never_becomes_public(tmp_path):
    (tmp_path / "attributes.yaml").write_text("- {files: 'hand/*', permissions: [me]}  # mine\n")
    (tmp_path / "corpus/hand").mkdir(parents=True)
    (tmp_path / "corpus/hand/note.md").write_text("by hand")
    rows = {"1": {"who": "hr, boss", "of": "x"}, "2": {"who": "", "of": "x"}, "3": {"who": ["it"], "of": "y"}}
    columns = {"namespace": "of", "permissions": "who"}
    found = look(tmp_path, source := Rows(rows), attributes=columns)
    assert found.new == 2 and "'who', which says whose it is" in found.problems["2"]
    labels = sorted(
        (label.namespace, label.permissions) for label in list_files(tmp_path / "corpus").attributes.values()
    )
    assert labels == [("", ("me",)), ("x", ("boss", "hr")), ("y", ("it",))]
    source.rows.clear()
    look(tmp_path, source, attributes=columns)
    assert (tmp_path / "attributes.yaml").read_text() == "- {files: 'hand/*', permissions: [me]}  # mine\n"
    look(tmp_path, Rows({"1": {"text": "t"}}), namespace="", permission="")
    assert len(list_files(tmp_path / "corpus").attributes) == 1


def test_a_sweep_sees_one_state_from_start_to_end(tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    source, folder = Rows({"1": {"text": "old"}, "2": {"text": "same"}}), tmp_path / "mine"
    look(folder, source)
    before = settled(folder)
    source.rows = {"1": {"text": "new"}}
    look(folder, source)
    assert texts(before.path) == ["text: old", "text: same"] and before.name == "mine"
    assert Dataset.load(before.path, labelled=False).digest == before.digest and settled(before.path) is None
    after = settled(folder)
    assert texts(after.path) == ["text: new"] and after.digest != before.digest


def test_one_process_writes_and_a_batch_waits_for_who_reads_between_two(tmp_path):
    first, second = (Ingestion(tmp_path, [connector()]) for _ in range(2))
    with first.writing():
        with pytest.raises(ConfigError, match="Another rag-lab ingest writes"), second.writing():
            pass
        assert batch_lock(tmp_path).acquire(timeout=0)


def test_a_million_keys_are_compared_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(ingestion, "_LISTED_AT_ONCE", 50)
    most, alive = [0], [0]

    class Counted(Rows):
        def entries(self, cursor):
            for n in range(1000):
                alive[0] += 1
                yield Entry(str(n), "1", raw=str(n))

        def contents(self, entries):
            most[0] = max(most[0], alive[0])
            alive[0] = 0
            return ((entry, {"text": entry.key}) for entry in entries)

    assert look(tmp_path, Counted()).new == 1000 and most[0] <= 50


@pytest.mark.parametrize(
    "key", ["../x", "a" * 300, "A", "con/..", "\ud800", "a-0123456789abcdef", "for-0123456789ab", ""]
)
def test_a_key_is_no_path(key):
    name = file_name(key)
    assert name != key and "/" not in name and "." not in name and len(name) < 90


def test_an_experiment_is_planned_on_the_state_that_it_keeps(tmp_path):
    folder = write_dataset(tmp_path)
    look(folder, Rows({"1": {"text": "The pump opens at 12 bar."}}))
    (tmp_path / "e.yaml").write_text("name: e\nquestion: q\ndataset: ./small\nfactors: {rerank.final_k: [5, 3]}\n")
    plan = plan_experiment(tmp_path / "e.yaml")
    assert plan.dataset.path.parent.name == "snapshots" and plan.dataset.name == "small"
    assert plan.dataset.digest == Dataset.load(folder).digest and len(plan.dataset.questions) == 4


def test_what_variants_read_beside_the_data_set_is_one_state_from_start_to_end(tmp_path, monkeypatch):
    notices, also = tmp_path / "notices", tmp_path / "handbook"
    sources = {notices: Rows({"1": {"text": "P-1 opens at 12 bar."}}), also: Rows({"1": {"text": "P-1 weighs 9 kg."}})}

    def change(job=None):
        for folder, source in sources.items():
            look(folder, source, namespace="", permission="")
            source.rows["1"] = {"text": "P-1 is gone."}
        return ""

    change()
    before = {folder.name: Dataset.load(folder, labelled=False).digest for folder in sources}
    run_jobs_here(monkeypatch, change)
    monkeypatch.setattr("rag_lab.report.page.report_page.write_report", lambda path, **_: path)
    base = {
        "corpus": {"folder": str(notices)},
        "retrieval": {"mode": "bm25", "also": str(also)},
        "answer": {"name": "none"},
    }
    path = write_machines_sweep(tmp_path, base=base, factors={"rerank.final_k": [5, 3]})
    run = sweep(path, tmp_path / "run", progress=False)
    assert set(run.passages().values()) == {"text: P-1 opens at 12 bar.", "text: P-1 weighs 9 kg."}
    assert run.manifest()["dataset"]["states"] == before
