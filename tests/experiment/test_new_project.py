"""`rag-lab new DIR DOCUMENTS`: what it makes is a data set with an experiment that is planned as it stands."""

import shutil
from pathlib import Path

import pytest
import yaml
from small_dataset import DOCUMENTS

from rag_lab.data.dataset import Dataset
from rag_lab.errors import ConfigError, DatasetError
from rag_lab.experiment.new_project import new_project
from rag_lab.experiment.plan import plan
from rag_lab.models.failover import is_small_model

FILES = {"corpus", "README.md", "dataset.yaml", "experiment.yaml", "pipeline.yaml", "questions.jsonl"}


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "my docs"
    for source, text in DOCUMENTS.items():
        (folder / source).parent.mkdir(parents=True, exist_ok=True)
        (folder / source).write_text(text)
    return folder


@pytest.fixture
def make(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def make(folder, documents, **options):
        return new_project(folder, documents, home=tmp_path / "home", **options)

    return make


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_documents_are_linked_and_stay_as_they_are(make, docs, tmp_path):
    before = contents(docs)
    made = make(tmp_path / "mine", docs)
    assert {path.name for path in made.files} == {path.name for path in (tmp_path / "mine").iterdir()} == FILES
    assert (tmp_path / "mine" / "corpus").is_symlink()
    assert contents(docs) == before
    (docs / "late.txt").write_text("The new press has a valve, too.")
    assert "late.txt" in {path.name for path in Dataset.load(tmp_path / "mine").corpus_dir.iterdir()}


def test_a_copy_is_made_where_it_is_asked_for(make, docs, tmp_path):
    make(tmp_path / "mine", docs, copy=True)
    corpus = tmp_path / "mine" / "corpus"
    assert not corpus.is_symlink() and contents(corpus) == contents(docs)


def test_the_experiment_is_planned_as_it_stands_from_any_folder(make, docs, tmp_path, monkeypatch):
    make(tmp_path / "My Lab!", docs)
    file = tmp_path / "My Lab!" / "experiment.yaml"
    monkeypatch.chdir("/")
    checked = plan(file)
    assert checked.experiment.name == "my_lab"
    assert checked.dataset.path.resolve() == file.parent.resolve()
    assert len(checked.variants) > 1 and checked.questions
    assert all(key in checked.experiment.question for key in checked.experiment.factors)
    for variant in checked.variants:  # nothing rests on what a toy writes
        assert not is_small_model(variant.config.models.generation) or variant.config.query.hyde == "none"
    for key, values in checked.experiment.factors.items():
        assert values[0] == checked.experiment.base.flat()[key]
        assert f"{key} ({', '.join(map(str, values))})" in checked.experiment.question


def test_questions_are_drafted_and_say_so(make, docs, tmp_path):
    made = make(tmp_path / "mine", docs)
    questions = Dataset.load(tmp_path / "mine").questions
    assert len(questions) == made.n_questions > 0
    assert all(question.tags == ("drafted",) and not question.evidence for question in questions)


def test_questions_and_rules_that_the_documents_bring_are_kept(make, docs, tmp_path):
    (docs / "questions.jsonl").write_text('{"question": "What is it?"}\n')
    (docs / "attributes.yaml").write_text("- {files: 'notes/*', permissions: [staff]}\n")
    (docs / "removed.txt").write_text("canteen.txt\n")
    with pytest.raises(ConfigError, match=r"attributes\.yaml and removed\.txt.* give --copy"):
        make(tmp_path / "mine", docs)  # a link would leave what is restricted open to all
    made = make(tmp_path / "mine", docs, copy=True)
    assert made.n_questions == 0
    dataset = Dataset.load(tmp_path / "mine")
    assert [question.text for question in dataset.questions] == ["What is it?"]
    from rag_lab.pipeline import Pipeline

    index = Pipeline(dataset, home=tmp_path / "home", progress=False).index
    assert {file.source: file.attributes.permissions for file in index.files} == {
        "notes/shift.txt": ("staff",), "oven.txt": (), "press.md": (),
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(FILES))
def test_nothing_that_is_there_is_written_over(make, docs, tmp_path, name):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("mine")
    with pytest.raises(ConfigError, match=rf"has {name} already, which is not written over"):
        make(tmp_path / "mine", docs)
    assert {path.name: path.read_text() for path in (tmp_path / "mine").iterdir()} == {name: "mine"}


def test_a_folder_may_hold_other_things(make, docs, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    make(tmp_path / "mine", docs)
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"


def test_a_folder_among_the_documents_is_refused_and_so_is_one_that_is_a_data_set(make, docs, tmp_path):
    for folder in (docs, docs / "mine"):
        with pytest.raises(ConfigError, match="would be taken for documents"):
            make(folder, docs)
    with pytest.raises(ConfigError, match="no folder"):
        make(tmp_path / "mine", tmp_path / "nowhere")
    make(tmp_path / "mine", docs)
    with pytest.raises(ConfigError, match="is a data set already"):
        make(tmp_path / "again", tmp_path / "mine")


def test_documents_of_which_none_can_be_read_leave_nothing_behind(make, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.pdf").touch()
    with pytest.raises(DatasetError, match="the PDF is empty"):
        make(tmp_path / "mine", tmp_path / "docs")
    assert not (tmp_path / "mine").exists()


def test_the_language_that_was_found_is_written_down(make, tmp_path):
    text = (
        "The valve of this press opens when the pressure is above what was set for it, and it is to be tested by those "
    )
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text(f"{text} who have been told how, and by nobody else in this plant. " * 3)
    make(tmp_path / "mine", tmp_path / "docs")
    assert yaml.safe_load((tmp_path / "mine" / "dataset.yaml").read_text()) == {"name": "mine", "language": "english"}
    assert plan(tmp_path / "mine" / "experiment.yaml").experiment.base.retrieval.analyzer == "english"


def test_a_disk_that_fails_leaves_nothing_behind(make, docs, tmp_path, monkeypatch):
    def full(source, target):
        if Path(target).name == "experiment.yaml":
            raise OSError(28, "No space left on device")
        return copyfile(source, target)

    copyfile = shutil.copyfile
    monkeypatch.setattr(shutil, "copyfile", full)
    for copy in (True, False):
        with pytest.raises(ConfigError, match="No space left on device; mend that"):
            make(tmp_path / "mine", docs, copy=copy)
        assert not (tmp_path / "mine").exists()
    assert (docs / "press.md").is_file()
