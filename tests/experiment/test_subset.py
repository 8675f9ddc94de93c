import pytest
from small_dataset import write_dataset

from rag_lab.experiment.config import ExperimentConfig
from rag_lab.experiment.designs.factors import ExperimentError
from rag_lab.experiment.plan import plan

BASE = {"query": {"rewrite": "none", "hyde": "none"}, "answer": {"name": "none"}}


@pytest.fixture
def experiment(tmp_path):
    return {
        "name": "e",
        "question": "q",
        "dataset": str(write_dataset(tmp_path)),
        "base": BASE,
        "factors": {"rerank.final_k": [5, 3], "retrieval.mode": ["bm25", "tfidf", "dense"]},
    }


def ids(found):
    return [variant.variant_id for variant in found.variants]


def test_a_setting_holds_for_all_variants_and_the_run_has_a_folder_of_its_own(experiment):
    found = plan(experiment, settings={"rerank.input_limit": 7})
    assert {variant.config.rerank.input_limit for variant in found.variants} == {7}
    assert found.experiment.name == "e__input_limit-7"
    assert plan(experiment).experiment.name == "e"


def test_only_some_variants_run_and_the_baseline_always_with_them(experiment):
    found = plan(experiment, only=["mode-tfidf"])
    assert ids(found) == ["baseline", "mode-tfidf"]
    assert found.experiment.name == "e__only_mode-tfidf"
    (notice,) = found.expansion.notices
    assert notice.startswith("2 of 4 variants are run, without final_k-3 and mode-dense. baseline runs, too")
    assert ids(plan(experiment, only=["mode = dense", "baseline"])) == ["baseline", "mode-dense"]


def test_what_was_run_can_be_run_again_from_what_is_kept_of_it(experiment, tmp_path):
    found = plan(experiment, settings={"rerank.input_limit": 7}, only=["mode-tfidf"])
    (tmp_path / "kept.yaml").write_text(found.experiment.to_yaml())
    again = plan(tmp_path / "kept.yaml")
    assert ids(again) == ids(found)
    assert [v.config.identity for v in again.variants] == [v.config.identity for v in found.variants]


def test_variants_of_a_list_are_set_and_chosen_alike(experiment):
    del experiment["factors"]
    listed = {"words": {"retrieval.mode": "bm25"}, "both": {"retrieval.mode": "rrf"}, "few": {"rerank.final_k": 2}}
    experiment |= {"design": "list", "variants": listed}
    found = plan(experiment, settings={"rerank.input_limit": 7}, only=["few"])
    assert ids(found) == ["words", "few"]
    assert {variant.config.rerank.input_limit for variant in found.variants} == {7}
    with pytest.raises(ExperimentError, match=r"retrieval\.mode: the variants differ in it"):
        plan(experiment, settings={"retrieval.mode": "bm25"})


def test_all_mistakes_are_told_at_once_with_near_names(experiment):
    with pytest.raises(ExperimentError) as error:
        plan(experiment, settings={"rerank.final_k": 9}, only=["mode-tfdif", "mode-bm52"])
    assert len(error.value.problems) == 3
    assert "rerank.final_k: the variants differ in it" in str(error.value)
    assert "did you mean 'mode-tfidf'?" in str(error.value)
    with pytest.raises(ExperimentError, match=r"did you mean 'rerank\.name'"):
        plan(experiment, settings={"rerank.nmae": "none"})


def test_a_name_that_gets_too_long_stays_a_name(experiment):
    found = plan(experiment, only=["mode-tfidf", "mode-dense", "final_k-3"], settings={"corpus.chunk_size": 400})
    assert len(found.experiment.name) <= 64
    assert ExperimentConfig.model_validate(found.experiment.model_dump()) == found.experiment
