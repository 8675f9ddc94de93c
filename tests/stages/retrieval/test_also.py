"""Other corpora beside the first, `retrieval.also`: each searched by itself, merged by rank, with rights of its own."""

from collections import defaultdict

import pytest

from rag_lab.config import PipelineConfig
from rag_lab.corpus.folder import visible_in
from rag_lab.data.dataset import other_corpora
from rag_lab.errors import DatasetError
from rag_lab.experiment.stage_identities import Readers, effective, is_read
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question
from rag_lab.testing import HashEmbedder

PLANT = {
    "press.txt": "The press needs a torque of 85 newton metres at the flange.",
    "oven.txt": "The oven cures at 180 degrees. Its torque is not stated.",
    "night/shift.txt": "Night shift: the press lost torque twice.",
}
HANDBOOK = {
    "torque.txt": "Torque is force times distance. The torque torque torque of a bolt is checked twice.",
    "pay.txt": "Overtime is paid double; torque has nothing to do with it.",
}
OFF = {"query.rewrite": "none", "query.hyde": "none", "answer.name": "none", "rerank.name": "none"}
ASKED = Question("q", "Which torque does the flange of the press need?")


def written(folder, texts):
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def folders(tmp_path):
    handbook = written(tmp_path / "handbook", HANDBOOK)
    (handbook / "attributes.yaml").write_text("- files: pay.txt\n  namespace: hr\n  permissions: [hr]\n")
    return written(tmp_path / "plant", PLANT), handbook


def pipeline(folder, tmp_path, mode="bm25", also=(), **changes):
    config = PipelineConfig().override({**OFF, "retrieval.mode": mode, "retrieval.also": [*map(str, also)], **changes})
    return Pipeline(folder, config, home=tmp_path / "home", progress=False).replace(embedding_model=HashEmbedder())


def found(pipeline, question=ASKED):
    (trace,) = pipeline.run([question], answer=(), read=lambda _: ())
    return trace.ranked


@pytest.mark.parametrize("mode", ["bm25", "dense"])
def test_each_is_ranked_as_if_it_were_alone_and_they_are_merged_by_rank(folders, tmp_path, mode):
    plant, handbook = folders
    alone = {name: found(pipeline(folder, tmp_path, mode)) for name, folder in (("", plant), ("handbook/", handbook))}
    expected = defaultdict(float)
    for name, hits in alone.items():
        for rank, hit in enumerate(hits, start=1):
            expected[name + hit.source] += 1 / (60 + rank)
    both = found(pipeline(plant, tmp_path, mode, [handbook]))
    assert {hit.source: round(hit.score, 9) for hit in both} == {name: round(n, 9) for name, n in expected.items()}
    assert len({hit.source.startswith("handbook/") for hit in both[:2]}) == 2


def test_hypothetical_documents_search_all_of_them(folders, tmp_path):
    plant, handbook = folders
    asks = pipeline(plant, tmp_path, "dense", [handbook], **{"query.hyde": "always"})
    texts = asks.replace(hyde=lambda question, query_class: "Torque of a bolt is checked twice.")
    (trace,) = texts.run([ASKED], answer=(), read=lambda _: ())
    assert {hit.source.partition("/")[0] for hit in trace.hits["hyde"]} >= {"handbook", "press.txt"}


def test_rights_hold_in_every_corpus_and_a_namespace_chooses_one(folders, tmp_path):
    plant, handbook = folders
    both = pipeline(plant, tmp_path, also=[handbook])
    sources = {hit.source for hit in found(both)}
    assert sources == {*PLANT, *(f"handbook/{name}" for name in HANDBOOK)}
    stranger, clerk = Question("q", ASKED.text, may_see=()), Question("q", ASKED.text, may_see=("hr",))
    assert {hit.source for hit in found(both, stranger)} == sources - {"handbook/pay.txt"}
    assert {hit.source for hit in found(both, clerk)} == sources
    of_one = Question("q", ASKED.text, namespace="handbook")
    assert {hit.source for hit in found(both, of_one)} == {"handbook/torque.txt"}
    visible = visible_in(plant, other_corpora(str(handbook)))
    assert visible(clerk, "handbook/pay.txt") and not visible(stranger, "handbook/pay.txt")


def test_a_corpus_more_is_another_index(folders, tmp_path):
    plant, handbook = folders
    assert pipeline(plant, tmp_path).index.digest != pipeline(plant, tmp_path, also=[handbook]).index.digest


def test_it_makes_another_pipeline_whatever_searches(folders, tmp_path):
    plant, handbook = folders
    for mode in ("bm25", "dense", "hybrid", "late"):
        alone = pipeline(plant, tmp_path, mode).config
        assert is_read(alone, "retrieval.also", str(handbook), Readers())
        assert effective(alone, Readers()) != effective(pipeline(plant, tmp_path, mode, [handbook]).config, Readers())


def test_another_state_of_the_documents_is_another_pipeline_that_reads_it(folders, tmp_path):
    plant, handbook = folders
    there = pipeline(plant, tmp_path).set("corpus.folder", str(handbook))
    assert {hit.source for hit in there.ask("pump").ranked} <= {file.source for file in there.index.files}
    assert {file.source for file in there.index.files}.isdisjoint(
        file.source for file in pipeline(plant, tmp_path).index.files
    )
    assert is_read(pipeline(plant, tmp_path).config, "corpus.folder", str(handbook), Readers())


def test_corpora_that_cannot_be_told_apart_are_one_sentence(folders, tmp_path):
    plant, handbook = folders
    other = written(tmp_path / "old/handbook", HANDBOOK)
    with pytest.raises(DatasetError, match="retrieval.also names two corpora 'handbook'; rename the folder of one"):
        _ = pipeline(plant, tmp_path, also=[handbook, other]).index
    night = written(tmp_path / "night", HANDBOOK)
    with pytest.raises(DatasetError, match="The corpus has a folder 'night', so retrieval.also can name none"):
        _ = pipeline(plant, tmp_path, also=[night]).index
    with pytest.raises(DatasetError, match="Unknown dataset 'nowhere'"):
        _ = pipeline(plant, tmp_path, also=["nowhere"]).index


def test_they_are_a_list_in_a_file_and_one_text_where_a_setting_is_typed():
    of_file, typed = ({"retrieval": {"also": given}} for given in (["handbook", "rules/2026"], "handbook, rules/2026"))
    assert PipelineConfig.parse(of_file) == PipelineConfig.parse(typed)
