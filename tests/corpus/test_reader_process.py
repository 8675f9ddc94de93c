"""A file that hangs, fills memory or crashes its parser is named and left out; the rest is read."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_files import HANGING, HOSTILE

from rag_lab.corpus import reading as bounded
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import open_index
from rag_lab.corpus.load.loader import LoadError
from rag_lab.corpus.reading import LOADERS, load, load_bounded
from rag_lab.testing import HashEmbedder


@pytest.fixture
def good(tmp_path):
    (tmp_path / "good.txt").write_text("The relief valve opens at 275 bar.")
    return tmp_path / "good.txt"


def made(folder, name, files=HANGING):
    files[name](folder / name)
    return folder / name


def worker():
    process = bounded.worker._process
    return process.pid if process else None


def test_a_file_that_takes_too_long_is_refused_and_the_next_one_is_read(tmp_path, good):
    with pytest.raises(LoadError, match=r"takes more than 0.5 s to read; .*corpus.file_seconds") as caught:
        load_bounded(made(tmp_path, "forms.pdf"), "forms.pdf", seconds=0.5)
    assert caught.value.lasting
    assert load_bounded(good, "good.txt").documents[0].source == "good.txt"


def test_a_file_that_takes_too_much_memory_is_refused_and_the_next_one_is_read(tmp_path, good):
    HOSTILE["far_cells.xlsx"][0](tmp_path / "far.xlsx")
    with pytest.raises(LoadError, match="more than 2 GiB of memory"):
        load_bounded(tmp_path / "far.xlsx", "far.xlsx")
    assert load_bounded(good, "good.txt").documents


def test_one_process_reads_file_after_file(good):
    load_bounded(good, "good.txt")
    first = worker()
    with pytest.raises(LoadError, match="cannot be read"):
        load_bounded(good.with_name("missing.txt"), "missing.txt")
    load_bounded(good, "good.txt")
    assert worker() == first


def test_a_process_that_somebody_ended_is_replaced_and_the_file_is_read(good):
    load_bounded(good, "good.txt")
    os.kill(worker(), signal.SIGKILL)
    assert load_bounded(good, "good.txt").documents


def test_it_reads_where_the_working_folder_is_another_one(good, monkeypatch, tmp_path):
    load_bounded(good, "good.txt")
    monkeypatch.chdir(tmp_path)
    assert load_bounded(Path("good.txt"), "good.txt").documents


@pytest.mark.slow
def test_hanging_files_are_named_and_the_rest_is_indexed_and_remembered(tmp_path, good):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    good.rename(corpus / "good.txt")
    for name in HANGING:
        made(corpus, name)
    for _ in range(2):
        index = open_index(corpus, CorpusConfig(file_seconds=1), HashEmbedder(), home=tmp_path / "home")
        assert [file.source for file in index.files] == ["good.txt"]
        assert sorted(Path(one.path).name for one in index.problems) == sorted(HANGING)
        assert all("more than 1 s to read" in problem.reason for problem in index.problems)
        assert not index.is_retryable


READS = """
import sys
from pathlib import Path
from rag_lab.corpus.reading import load_bounded
print("reads", flush=True)
load_bounded(Path(sys.argv[1]), "forms.pdf", seconds=100)
"""


@pytest.mark.slow
def test_ctrl_c_stops_a_file_that_hangs(tmp_path):
    path = made(tmp_path, "forms.pdf")
    command = [sys.executable, "-c", READS, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "reads\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)  # it hangs
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=50)[1]


TEXT = [".txt", ".md", ".markdown", ".csv", ".tsv", ".html", ".htm"]


@pytest.mark.parametrize("suffix", TEXT)
def test_the_suffix_chooses_the_loader_whatever_its_case(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix.upper()}"
    path.write_text("# Title\nbody\n")
    (document,) = load(path, path.name).documents
    table = "| # Title |\n| --- |\n| body |"
    assert document.text == {".html": "# Title body", ".htm": "# Title body"}.get(
        suffix, table if suffix in (".csv", ".tsv") else "# Title\nbody"
    )


def test_text_is_normalized(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Cafe\u0301  \n\n\n\nhydrau-\nlic \ufb01lter, 58\u00a0°C\u200b\n")
    assert load(path, "a.txt").documents[0].text == "Caf\u00e9\n\nhydraulic filter, 58 °C"


def test_a_line_that_is_no_prose_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("word " * 250_000)
    with pytest.raises(LoadError, match="a line of 1,250,000 characters"):
        load(path, "a.txt")


def test_more_text_than_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a line of words\n" * 700_000)
    with pytest.raises(LoadError, match="more than 10,000,000"):
        load(path, "a.txt")


@pytest.mark.parametrize("suffix", LOADERS)
def test_every_loader_refuses_an_empty_file_in_one_sentence(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.touch()
    with pytest.raises(LoadError, match=r"^the .* empty.*\.$"):
        load(path, path.name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("text")
    path.chmod(0)
    with pytest.raises(LoadError, match="permission"):
        load(path, path.name)
