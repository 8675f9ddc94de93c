import json
from pathlib import Path

from small_dataset import write_dataset

from rag_lab.data.check import Lengths, check, lengths_of, near_duplicates
from rag_lab.data.dataset import Dataset
from rag_lab.records import Document, Question
from rag_lab.report.page.report_page import dataset_page


def test_counts_and_text(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text("Because.", encoding="utf-8")
    (tmp_path / "corpus" / "b.xyz").write_text("?", encoding="utf-8")
    (tmp_path / "dataset.yaml").write_text("name: tiny\n", encoding="utf-8")
    evidence = [{"source": "a.txt", "quote": "Because."}, {"source": "a.txt", "page": 1}]
    lines = [
        {"id": "q1", "question": "Why?", "class": "fuzzy", "tags": ["x", "y"], "evidence": evidence},
        {"id": "q2", "question": "  why? ", "class": "specific", "tags": ["x"]},
        {"id": "q3", "question": "Who?", "answerable": False},
        {"id": "q4", "question": "Where?", "class": "nowhere"},
    ]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    found = check(Dataset.load(tmp_path))
    assert (found.n_files, found.n_questions, found.n_answerable) == (1, 4, 3)
    assert found.by_class == {"specific": 1, "fuzzy": 1, "unlabelled": 2}
    assert found.by_tag == {"x": 2, "y": 1}
    assert (found.n_evidence, found.n_with_page, found.n_with_quote, found.n_without_evidence) == (2, 1, 1, 2)
    assert found.duplicates == (("q1", "q2"),)
    assert len(found.problems) == 3  # the class, the file that no loader reads, and the item that is not found
    assert found.n_found == 1
    assert "a.txt: evidence of question 'q1': page 1 is named, but the file has no pages" in str(found)
    assert found.unanswerable_share == 0.25
    text = str(found)
    assert "tiny: 4 questions over 1 files" in text
    assert "q1, q2" in text and "'nowhere'" in text and "b.xyz" in text


def test_lengths_are_in_words_and_characters() -> None:
    questions = [Question(str(n), "word " * n, ("油压机",)) for n in range(1, 11)]
    found = lengths_of(questions, [Document("a", None, "x" * 50)])
    assert found["questions"] == Lengths(10, "words", 1, 5, 9, 10)
    assert found["answers"].longest == 3
    assert found["documents"] == Lengths(1, "characters", 50, 50, 50, 50)
    assert str(lengths_of([], [])["answers"]) == "none"


def test_questions_that_differ_by_a_word_are_near_duplicates() -> None:
    texts = [
        "What is the torque of the four ram bolts of press P-11?",
        "What is the torque of the four ram bolts of press P-12?",
        "what is the torque of the  four ram bolts of press P-11?",
        "Who founded the plant?",
    ]
    found = near_duplicates([Question(f"q{n}", text) for n, text in enumerate(texts)])
    assert [(pair.first, pair.second) for pair in found] == [("q0", "q1"), ("q1", "q2")]
    assert all(0.9 <= pair.similarity < 1 for pair in found)


def test_the_same_words_in_another_order_are_near_duplicates() -> None:
    texts = [
        "Does valve A close before valve B",
        "does valve B close  before valve A",
        "Does valve A close before valve B",
    ]
    (first, second) = near_duplicates([Question(f"q{n}", text) for n, text in enumerate(texts)])
    assert (first.first, first.second, second.first, second.second) == ("q0", "q1", "q1", "q2")
    assert str(first) == "q0, q1: 1.00"


def test_what_questions_name_in_vain_is_a_problem(tmp_path: Path) -> None:
    rules = "- files: press.md\n  namespace: plant\n  permissions: [staff]\n"
    asked = [
        {"id": "quote", "question": "a", "evidence": [{"source": "oven.txt", "quote": "not there"}]},
        {"id": "nowhere", "question": "b", "namespace": "hr"},
        {"id": "stranger", "question": "c", "may_see": ["stafff"]},
        {"id": "closed", "question": "d", "may_see": [], "evidence": [{"source": "press.md", "quote": "290 bar"}]},
        {
            "id": "fine",
            "question": "e",
            "may_see": ["staff", "x"],
            "namespace": "plant",
            "evidence": [{"source": "press.md"}],
        },
    ]
    folder = write_dataset(tmp_path, extra_questions=asked)
    (folder / "attributes.yaml").write_text(rules)
    found = check(Dataset.load(folder))
    said = [
        "oven.txt: evidence of question 'quote': the quote 'not there' does not stand on the file",
        "question 'nowhere' names the namespace 'hr', which no file is in",
        "question 'stranger' has may_see ['stafff'], none of which a file asks for",
        "question 'closed' has evidence in 'press.md', which its asker may not see",
    ]
    assert all(words in str(problem) for words, problem in zip(said, found.problems, strict=True))
    assert (found.n_evidence, found.n_found) == (6, 5)


def test_all_of_it_is_json_and_an_escaped_page(tmp_path: Path) -> None:
    extra = {"id": "<b>", "question": "At what pressure does the relief valve of P-2 open?", "tags": ["<i>"]}
    found = check(Dataset.load(write_dataset(tmp_path, extra_questions=[extra])))
    assert json.loads(json.dumps(found.to_dict()))["near_duplicates"][0]["second"] == "<b>"
    page = dataset_page(found)
    assert "&lt;b&gt;" in page and "<b>" not in page and "<i>" not in page
    assert "http" not in page and "3 of 3" in page


def test_a_folder_of_documents_is_counted_and_told_what_evaluation_needs(tmp_path: Path) -> None:
    (tmp_path / "manuals").mkdir()
    (tmp_path / "manuals/oil.txt").write_text("Change the oil.")
    counted = check(Dataset.load(tmp_path / "manuals", labelled=False))
    assert (counted.n_files, counted.n_questions, counted.unanswerable_share) == (1, 0, None)
    assert [part.split(",")[0] for part in counted.missing] == ["questions.jsonl"]
    assert str(counted).startswith("manuals: 0 questions over 1 files\n  missing       questions.jsonl, for evaluation")
    assert "questions.jsonl" in dataset_page(counted)


def test_labels_that_name_files_alone_are_said(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "long.txt").write_text("A sentence of the manual. " * 200, encoding="utf-8")
    (tmp_path / "corpus" / "short.txt").write_text("The oven is heated.", encoding="utf-8")
    labels = ({"source": "long.txt"}, {"source": "short.txt"}, {"source": "long.txt", "quote": "A sentence"})
    lines = [{"id": f"q{n}", "question": f"Why {n}?", "evidence": [label]} for n, label in enumerate(labels)]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    found = check(Dataset.load(tmp_path))
    assert len(found.whole_files) == 1 and found.whole_files[0].startswith("The labels of 1 of 3 questions name files")
    assert f"files alone   {found.whole_files[0]}" in str(found)
    assert "The labels of 1 of 3 questions name files" in dataset_page(found)


def test_questions_with_two_labels_and_copies_of_files_are_problems(tmp_path: Path) -> None:
    (tmp_path / "corpus" / "copies").mkdir(parents=True)
    for number in range(5):
        (tmp_path / "corpus" / f"{number}.txt").write_text(f"Page {number}.", encoding="utf-8")
        (tmp_path / "corpus" / "copies" / f"{number}.txt").write_text(f"Page {number}.\r\n", encoding="utf-8")
    rules = "- files: copies/4.txt\n  permissions: [staff]\n"  # other people see it: it stands in nobody's place
    (tmp_path / "attributes.yaml").write_text(rules, encoding="utf-8")
    asked = [("q1", "Why?", True, None), ("q2", " why?", False, None), ("q3", "Why?", False, ["staff"])]
    asked += [("q4", "Who?", True, None), ("q5", "Who?", True, None)]  # asked twice, which is no contradiction
    lines = [{"id": i, "question": t, "answerable": a} | ({"may_see": m} if m else {}) for i, t, a, m in asked]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    labels, copies = map(str, check(Dataset.load(tmp_path)).problems)
    assert "1 question is labelled both answerable and unanswerable: q1 and q2;" in labels
    assert "4 of 10 files read the same as another: copies/0.txt as 0.txt, copies/1.txt as 1.txt, " in copies
    assert "and 1 more" in copies and "corpus.duplicates: skip" in copies
