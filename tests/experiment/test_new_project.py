"""`rag-lab new DIR DOCUMENTS`: what it makes is a data set with an experiment that is planned as it stands."""

import shutil
from pathlib import Path

import pytest
import yaml
from small_dataset import DOCUMENTS

from rag_lab.data.dataset import Dataset
from rag_lab.errors import ConfigError, DatasetError
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.experiment.new_project import Asked, file_for, new_project, run_name, write_file
from rag_lab.experiment.plan import plan
from rag_lab.models.shared import is_small_model

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


VARIED = {"rerank.name": ["none", "query_likelihood"], "query.hyde": ["none", "always"]}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def whole(asked, **more):
    return {"name": asked.name, **asked.experiment(), **more}


def test_a_sweep_is_named_and_written_as_a_file_that_is_read_again(tmp_path):
    asked = Asked("plant_docs", factors=VARIED, questions=20)
    experiment = whole(asked)
    write_file(tmp_path / "e.yaml", experiment, "rag-lab vary ...")
    read = ExperimentConfig.load(tmp_path / "e.yaml")
    assert read.name == "rerank_and_hyde"
    assert read.factors == VARIED and read.design == "one_factor" and read.limits.questions == 20
    assert yaml.safe_load((tmp_path / "e.yaml").read_text()) == experiment
    lines = (tmp_path / "e.yaml").read_text().splitlines()
    assert lines[0] == "# Written by `rag-lab vary ...`; change it as you like."
    for key in ("name", "dataset", "factors", "design", "metrics", "limits"):
        assert any(line.startswith(f"{key}:") and "  # " in line for line in lines), key


def test_a_design_that_counts_its_variants_is_told_how_many(tmp_path):
    asked = Asked("plant_docs", factors=VARIED, design="random", n=3)
    write_file(tmp_path / "e.yaml", whole(asked), "rag-lab vary ...")
    assert len(plan(tmp_path / "e.yaml").variants) == ExperimentConfig.load(tmp_path / "e.yaml").n == 3


@pytest.mark.parametrize(
    ("more", "left_out"),
    [
        ({}, True),
        ({"metrics": ["answer.abstention"]}, False),
        ({"settings": {"answer.thinking": True}}, False),
        ({"factors": {"models.generation": ["a:b", "c:d"]}}, False),
        ({"answers": 3}, False),
        ({"metrics": ["no.such_metric"]}, True),
    ],
)
def test_answers_are_left_out_where_nothing_is_about_them(more, left_out):
    asked = Asked("plant_docs", **more)
    assert asked.leaves_out_answers is left_out
    assert (asked.experiment().get("base", {}).get("answer", {}).get("name") == "none") is left_out


def test_settings_are_put_into_the_preset_they_change():
    experiment = whole(Asked("plant_docs", "laptop", {"rerank.input_limit": 9}, VARIED))
    read = ExperimentConfig.model_validate(experiment)
    assert read.base.rerank.input_limit == 9
    kept = ExperimentConfig.model_validate(whole(Asked("plant_docs", "laptop", {}, VARIED))).base.flat()
    assert {key for key, value in read.base.flat().items() if value != kept[key]} == {"rerank.input_limit"}


def test_what_is_set_and_varied_at_once_is_refused():
    with pytest.raises(ConfigError, match="query.hyde cannot be set and varied at once"):
        Asked("plant_docs", settings={"query.hyde": "always"}, factors=VARIED).experiment()


def test_a_file_that_is_there_is_used_again_or_left_alone(tmp_path, here):
    asked = Asked("plant_docs", factors=VARIED)
    first = file_for(asked.name, asked.experiment())
    write_file(first, whole(asked, name=first.stem), "a command")
    assert file_for(asked.name, asked.experiment()) == first
    other = Asked("plant_docs", factors=VARIED, questions=9)
    assert file_for(other.name, other.experiment()).name == "rerank_and_hyde_2.yaml"
    (tmp_path / "experiments").mkdir()
    assert str(file_for(asked.name, asked.experiment())) == "experiments/rerank_and_hyde.yaml"


def test_a_run_of_another_experiment_is_never_replaced(tmp_path, here):
    asked = Asked("plant_docs", settings={"rerank.final_k": 3})
    assert run_name(asked.name, asked.experiment()) == "run_plant_docs_final_k-3"
    kept = tmp_path / "results/run_plant_docs_final_k-3"
    kept.mkdir(parents=True)
    (kept / "experiment.yaml").write_text(ExperimentConfig.model_validate(whole(asked)).to_yaml())
    assert run_name(asked.name, asked.experiment()) == kept.name
    other = Asked("plant_docs", settings={"rerank.final_k": 3}, questions=9)
    assert run_name(other.name, other.experiment()) == f"{kept.name}_2"
