"""What reviewers find of drafts: written at once, blind to each other, and counted."""

import json

import pytest
from scripted_writer import write_folder

from rag_lab.data.dataset import Dataset
from rag_lab.errors import ConfigError
from rag_lab.questions import draft_files
from rag_lab.questions.draft_files import drafts, review_sentences, verdict_of, write_verdict


@pytest.fixture
def dataset(tmp_path):
    folder = write_folder(tmp_path / "set")
    quotes = ("relief valve opens at 155 bar", "take grease NLGI 2 every 500 hours")
    lines = [{"id": "mine", "question": "Who resets the burner?", "answers": ["Erika Moyle"]}]
    for n, quote in enumerate(quotes):
        evidence = [{"source": "press.md", "quote": quote}]
        draft = {"model": "a:model", "passage": f"The {quote}.", "kind": "single"}
        lines.append(
            {"id": f"d{n}", "question": f"What of {n}?", "answers": ["155 bar"], "evidence": evidence, "draft": draft}
        )
    (folder / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    fallen = {"id": "f0", "question": "This?", "draft": {}, "fell": {"filter": "pointing", "reason": "it points"}}
    (folder / "fallen.jsonl").write_text(json.dumps(fallen) + "\n")
    return Dataset.load(folder, labelled=False)


def names(dataset, file="questions.jsonl"):
    return [json.loads(line)["id"] for line in (dataset.path / file).read_text().splitlines()]


def test_what_is_dropped_falls_by_review_and_comes_back_and_other_lines_are_untouched(dataset):
    before = (dataset.path / "questions.jsonl").read_text().splitlines()[0]
    assert write_verdict(dataset, "d0", "anna", "drop") == "drop"
    assert names(dataset) == ["mine", "d1"] and names(dataset, "fallen.jsonl") == ["f0", "d0"]
    fell = draft_files.read_lines(dataset.path / "fallen.jsonl").values()
    assert [line["fell"]["reason"] for line in fell] == ["it points", "dropped by anna"]
    assert [line["id"] for line in drafts(dataset)] == ["d1", "d0"]  # and not what a filter dropped
    write_verdict(dataset, "d0", "anna", "")
    assert names(dataset) == ["mine", "d1", "d0"] and names(dataset, "fallen.jsonl") == ["f0"]
    assert "review" not in drafts(dataset)[1] and "fell" not in drafts(dataset)[1]
    assert (dataset.path / "questions.jsonl").read_text().splitlines()[0] == before


def test_half_of_the_reviewers_drop_it_and_the_majority_keeps_it(dataset):
    write_verdict(dataset, "d0", "anna", "drop")
    write_verdict(dataset, "d0", "ben", "keep")
    assert "d0" in names(dataset, "fallen.jsonl")
    write_verdict(dataset, "d0", "carla", "keep")
    assert "d0" in names(dataset) and "d0" not in names(dataset, "fallen.jsonl")


def test_other_words_are_kept_with_the_first_ones_and_the_set_is_read(dataset):
    assert write_verdict(dataset, "d0", "anna", "keep", "At which pressure?", "155 bar", "specific") == "edit"
    line = next(one for one in drafts(dataset) if one["id"] == "d0")
    assert (line["question"], line["draft"]["written"], line["class"]) == (
        "At which pressure?",
        "What of 0?",
        "specific",
    )
    assert verdict_of(line, "anna")["class"] == "specific" and verdict_of(line, "ben") == {}
    assert write_verdict(dataset, "d1", "anna", "keep", "What of 1?", "155 bar", "fuzzy") == "keep"  # the class alone
    read = Dataset.load(dataset.path)
    assert read.problems == () and read.questions[1].text == "At which pressure?"
    kept, _, _ = draft_files.settled(read)
    assert {line.get("id") for line in kept.values()} == {"mine", "d0", "d1"}  # is not drafted anew


def test_where_writing_was_interrupted_the_draft_stands_in_both_and_is_shown_once(dataset):
    text = (dataset.path / "questions.jsonl").read_text()
    write_verdict(dataset, "d0", "anna", "drop")
    (dataset.path / "questions.jsonl").write_text(text)
    assert [line["id"] for line in drafts(dataset)] == ["d0", "d1"]
    write_verdict(dataset, "d0", "anna", "drop")
    assert names(dataset) == ["mine", "d1"] and names(dataset, "fallen.jsonl") == ["f0", "d0"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"name": "d9"}, "Unknown draft 'd9'"), ({"verdict": "maybe"}, "keep"), ({"query_class": "odd"}, "specific")],
)
def test_what_is_no_verdict_changes_nothing(dataset, wrong, said):
    before = (dataset.path / "questions.jsonl").read_text()
    with pytest.raises(ConfigError, match=said):
        write_verdict(dataset, **{"name": "d0", "by": "anna", "verdict": "keep", **wrong})
    assert (dataset.path / "questions.jsonl").read_text() == before


def test_agreement_and_a_reviewer_who_keeps_all_are_named():
    def line(**found):
        return {"review": {who: {"verdict": verdict, "class": "fuzzy"} for who, verdict in found.items()}}

    lines = [line(anna="keep", ben="keep"), line(anna="drop", ben="drop"), line(anna="edit", ben="keep")]
    lines += [line(ben="keep") for _ in range(8)] + [{"review": {"by": "hand"}}]
    found = review_sentences(lines)
    assert found[0] == "anna: 3 of 12 reviewed (1 keep, 1 edit, 1 drop)."
    assert "Agreement on keep or drop, of 3 that several reviewed: Krippendorff's alpha 1.00." in found
    assert not any("All" in one for one in found)
    assert any("All 10 verdicts of ben are keep" in one for one in review_sentences([line(ben="keep")] * 10))
