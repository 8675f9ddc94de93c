"""The files of a set: what is written, what stays of it when it is drafted again, and that the set can be read."""

import json

import pytest
from scripted_writer import GOOD, pipeline_of, scripted, write_folder

from rag_lab.data.dataset import Dataset
from rag_lab.data.labels import write_label
from rag_lab.errors import DatasetError
from rag_lab.questions import draft_files
from rag_lab.questions.drafting import Drafting
from rag_lab.questions.writer import WriteDraft


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "set")


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(folder, lines):
    (folder / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def draft(folder, n=40):
    chat, dataset = scripted(), Dataset.load(folder, labelled=False)
    drafted = Drafting(pipeline_of(folder), n).draft(WriteDraft(chat), chat, draft_files.settled(dataset)[2])
    draft_files.write_set(dataset, drafted, "a:model")
    return drafted


def test_a_set_is_read_without_problems_and_says_how_each_question_came_to_be(folder):
    drafted = draft(folder)
    dataset = Dataset.load(folder)
    assert dataset.problems == ()
    assert dataset.questions == tuple(one.question for one in drafted.stood)
    how = lines(folder / "questions.jsonl")[0]["draft"]
    keys = "model prompt kind source page section span language wording overlap bm25_rank checks passage"
    assert list(how) == keys.split()
    assert how["model"] == "a:model" and any(quote in how["passage"] for *_, quote in GOOD)
    fallen = lines(folder / "fallen.jsonl")
    assert len(fallen) == len(drafted.fallen) and all(line["fell"]["reason"] for line in fallen)
    assert lines(folder / "topics.jsonl") == []


def test_pages_are_written_as_the_data_set_counts_them(folder):
    (folder / "dataset.yaml").write_text("name: set\npage_base: 0\n")
    from rag_lab.records import Evidence, Question

    question = Question("q", "?", evidence=(Evidence("a.pdf", 3),))
    assert draft_files.question_line(question, 0)["evidence"][0]["page"] == 2
    assert draft_files.question_line(question)["evidence"][0]["page"] == 3


def test_what_somebody_wrote_or_reviewed_stays_and_other_drafts_are_written_anew(folder):
    mine = {"id": "mine", "question": "Who resets the burner?", "note": "kept as it is"}
    labelled = {"id": "l", "question": "Is it hot?", "tags": ["drafted"], "answers": ["Yes."]}
    stub = {"id": "q1", "question": "What do the documents say about “Grease”?", "answers": [], "tags": ["drafted"]}
    write(folder, [mine, labelled, stub])
    first = draft(folder)
    assert lines(folder / "questions.jsonl")[:2] == [mine, labelled]
    assert [line["id"] for line in lines(folder / "questions.jsonl")[2:]] == [one.name for one in first.stood]

    found = lines(folder / "questions.jsonl")
    reviewed = found[2] | {"question": "How hot is it really?", "review": {"by": "anna"}}
    write(folder, [mine, reviewed, *found[3:]])
    draft(folder)
    again = lines(folder / "questions.jsonl")
    assert again[:2] == [mine, reviewed]
    assert sum(line["id"] == reviewed["id"] for line in again) == 1
    assert Dataset.load(folder).problems[0].reason.startswith("Unknown key 'note'")  # and neither draft nor review


def test_a_line_of_yours_stays_to_the_byte_and_one_that_cannot_be_read_is_named(folder):
    mine = '{"question":  "Who resets the burner?"}'
    (folder / "questions.jsonl").write_text(mine + "\n")
    draft(folder)
    assert (folder / "questions.jsonl").read_text().startswith(mine + "\n")
    (folder / "questions.jsonl").write_text(f"{mine}\nno JSON\n")
    with pytest.raises(DatasetError, match="line 2 is no JSON object; mend it"):
        draft(folder)


def test_a_draft_that_a_person_labelled_stays_with_the_label(folder):
    draft(folder)
    dataset = Dataset.load(folder)
    question = dataset.questions[0]
    write_label(dataset, question, answer="As Anna says.")
    labelled = lines(folder / "questions.jsonl")[0]
    assert labelled["review"] == {"keep": True} and labelled["answers"][-1] == "As Anna says."
    draft(folder)
    assert lines(folder / "questions.jsonl")[0] == labelled


def test_what_fell_in_a_review_is_not_drafted_again(folder):
    draft(folder)
    found = lines(folder / "questions.jsonl")
    dropped = found[0] | {"fell": {"filter": "review", "reason": "anna"}}
    write(folder, found[1:])
    with (folder / "fallen.jsonl").open("a") as file:
        file.write(json.dumps(dropped) + "\n")
    draft(folder)
    assert dropped["id"] not in [line["id"] for line in lines(folder / "questions.jsonl")]
    assert lines(folder / "fallen.jsonl").count(dropped) == 1


def test_the_readme_says_what_the_set_is_good_for_once_and_keeps_what_stood_there(folder):
    (folder / "README.md").write_text("# Mine\n\nNotes.\n")
    draft(folder)
    draft(folder)
    text = (folder / "README.md").read_text()
    assert text.startswith("# Mine\n\nNotes.\n") and text.count("## Drafted questions") == 1
    assert draft_files.GOOD_FOR in text and "By a:model" in text and "near_duplicates" in text


def test_places_are_listed_for_who_writes_by_hand(folder):
    found = Drafting(pipeline_of(folder), 9).found
    path = draft_files.write_places(Dataset.load(folder, labelled=False), found)
    written = lines(path)
    assert len(written) == len(found) and path.name == "places.jsonl"
    parts = next(line for line in written if line["source"] == "parts.md")
    assert (parts["span"], parts["language"]) == ("table", "english")
    assert "BV-7160" in parts["names"] and "| Seal kit BV-7160 |" in parts["passage"]
