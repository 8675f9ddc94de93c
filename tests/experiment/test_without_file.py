import pytest
import yaml

from rag_lab.errors import ConfigError
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.experiment.new_project import Asked, file_for, run_name, write_file
from rag_lab.experiment.plan import plan

VARIED = {"rerank.name": ["none", "query_likelihood"], "query.hyde": ["none", "always"]}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
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


def test_a_file_that_is_there_is_used_again_or_left_alone(tmp_path):
    asked = Asked("plant_docs", factors=VARIED)
    first = file_for(asked.name, asked.experiment())
    write_file(first, whole(asked, name=first.stem), "a command")
    assert file_for(asked.name, asked.experiment()) == first
    other = Asked("plant_docs", factors=VARIED, questions=9)
    assert file_for(other.name, other.experiment()).name == "rerank_and_hyde_2.yaml"
    (tmp_path / "experiments").mkdir()
    assert str(file_for(asked.name, asked.experiment())) == "experiments/rerank_and_hyde.yaml"


def test_a_run_of_another_experiment_is_never_replaced(tmp_path):
    asked = Asked("plant_docs", settings={"rerank.final_k": 3})
    assert run_name(asked.name, asked.experiment()) == "run_plant_docs_final_k-3"
    kept = tmp_path / "results/run_plant_docs_final_k-3"
    kept.mkdir(parents=True)
    (kept / "experiment.yaml").write_text(ExperimentConfig.model_validate(whole(asked)).to_yaml())
    assert run_name(asked.name, asked.experiment()) == kept.name
    other = Asked("plant_docs", settings={"rerank.final_k": 3}, questions=9)
    assert run_name(other.name, other.experiment()) == f"{kept.name}_2"
