"""Documents that answer nothing, beside a corpus."""

import pytest

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import locate_all, open_index
from rag_lab.corpus.folder import DISTRACTORS
from rag_lab.errors import DatasetError
from rag_lab.records import Evidence, Question
from rag_lab.testing import HashEmbedder

QUOTE = "Torque the twelve flange bolts to 85 newton metres in a cross pattern."


@pytest.fixture
def folders(tmp_path):
    corpus, others = tmp_path / "corpus", tmp_path / "others"
    corpus.mkdir()
    others.mkdir()
    (corpus / "pump.txt").write_text(f"The pump. {QUOTE} It holds 85 litres.")
    (others / "same.txt").write_bytes((corpus / "pump.txt").read_bytes())
    for number in range(6):
        (others / f"{number}.txt").write_text(f"Abstract {number} of something else, which names 85.")
    return corpus, others


def opened(folders, tmp_path, n):
    corpus, others = folders
    config = CorpusConfig(distractors=n, distractors_from="others")
    return open_index(corpus, config, HashEmbedder(), home=tmp_path / "home", others={DISTRACTORS: others})


def added(index):
    return {file.source for file in index.files if file.source.startswith(DISTRACTORS)}


def test_fewer_distractors_are_among_more_and_no_file_of_the_corpus_is_one(folders, tmp_path):
    none, two, five = (opened(folders, tmp_path, n) for n in (0, 2, 5))
    assert added(none) == set() and len(added(two)) == 2 and len(added(five)) == 5
    assert added(two) < added(five)
    assert f"{DISTRACTORS}same.txt" not in added(opened(folders, tmp_path, 6))
    ids = [{child.chunk_id for child in index.chunks.children()} for index in (none, two, five)]
    assert ids[0] < ids[1] < ids[2]
    assert len({index.digest for index in (none, two, five)}) == 3


def test_more_than_there_are_is_one_sentence(folders, tmp_path):
    with pytest.raises(DatasetError, match="distractors is 7, and .* holds 6 files that the corpus has not; ask for"):
        opened(folders, tmp_path, 7)


@pytest.mark.parametrize("quote", [QUOTE, "85"], ids=["a quote", "the passage around a number"])
def test_a_distractor_that_holds_evidence_is_refused_and_one_that_shares_a_number_is_not(folders, tmp_path, quote):
    question = Question("q1", "What torque?", ("85",), evidence=(Evidence("pump.txt", None, quote),))
    assert locate_all(opened(folders, tmp_path, 6), [question])[1] == []
    text = (folders[0] / "pump.txt").read_text()
    (folders[1] / "0.txt").write_text(f"A reprint.\n{text.replace(' ', chr(10))}")
    with pytest.raises(DatasetError, match=r"0\.txt, one of corpus.distractors, holds the evidence of question 'q1'"):
        locate_all(opened(folders, tmp_path, 6), [question])
