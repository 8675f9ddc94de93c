"""A metric of one's own on trial: what it cannot read, it cannot tell."""

import re

import pytest
from small_dataset import write_dataset

from rag_lab.data.dataset import Dataset
from rag_lab.data.perturb import PERTURBATIONS
from rag_lab.evaluation.judge_trial.metric_trial import try_metric


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    line = {"id": "q5", "question": "When is the oil changed?", "answers": ["The oil is changed every 2,000 hours."]}
    line |= {"evidence": [{"source": "press.md", "quote": "changed every 2,000"}]}
    return Dataset.load(write_dataset(tmp_path_factory.mktemp("data"), extra_questions=[line]))


def supported_numbers(trace):
    """Share of the numbers of the answer that stand in its passages."""
    read = {number for passage in trace.passages for number in re.findall(r"\d+", passage.text)}
    said = re.findall(r"\d+", trace.answer.text)
    return sum(number in read for number in said) / len(said) if said else None


def test_a_metric_that_reads_numbers_finds_changed_ones_and_no_negation(dataset):
    found = {telling.perturbation: telling for telling in try_metric(supported_numbers, dataset, n_questions=4)}
    assert list(found) == [*PERTURBATIONS, "all"]
    assert found["changed_number"].auc == 1.0 and found["changed_number"].n_wrong > 0
    assert found["negation"].auc == 0.5
    assert {telling.metric for telling in found.values()} == {"supported_numbers"}
    assert found["all"].n_wrong == sum(telling.n_wrong for name, telling in found.items() if name != "all")


def always(trace):
    """One, whatever is said."""
    return 1.0


def test_a_metric_that_knows_nothing_is_no_better_than_chance(dataset):
    assert {told.auc for told in try_metric(always, dataset, n_questions=4) if told.auc is not None} == {0.5}
