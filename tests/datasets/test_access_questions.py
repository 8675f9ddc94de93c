"""The pairs of role and question of plant_docs: allowed where the role may see all evidence, else forbidden."""

from collections import Counter
from pathlib import Path

from rag_lab.corpus.folder import visible_in
from rag_lab.data.check import check
from rag_lab.data.dataset import Dataset

ROOT = Path(__file__).parents[2] / "datasets" / "plant_docs"
ASKED = Dataset.load(ROOT / "access.jsonl")
ROLES = {"operator": (), "quality": ("quality",), "purchasing": ("purchasing",)}


def test_each_question_is_asked_by_every_role():
    by_text = Counter(question.text for question in ASKED.questions)
    assert set(by_text.values()) == {len(ROLES)} and len(by_text) == 18
    for question in ASKED.questions:
        (role,) = ROLES.keys() & set(question.tags)
        assert question.may_see == ROLES[role]


def test_a_pair_is_allowed_or_forbidden_by_the_rules_as_they_stand():
    full = {question.text: question for question in Dataset.load(ROOT).questions}
    visible = visible_in(ASKED.corpus_dir, {})
    kinds = Counter()
    for question in ASKED.questions:
        sees = {visible(question, item.source) for item in full[question.text].evidence}
        (kind,) = {"allowed", "forbidden"} & set(question.tags)
        assert sees == {kind == "allowed"}
        assert question.answerable == (kind == "allowed") == bool(question.evidence) == bool(question.answers)
        kinds[kind] += 1
    assert kinds == {"allowed": 32, "forbidden": 22}


def test_the_workbench_finds_nothing_wrong_with_them():
    assert check(ASKED).problems == ()


def test_who_does_not_say_who_asks_sees_everything():
    assert all(question.may_see is None for question in Dataset.load(ROOT).questions)
