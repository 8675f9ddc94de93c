"""What is given in Python in place of a dataset's name."""

from pathlib import Path

import pandas as pd
import pytest
from langchain_core.documents import Document
from small_dataset import write_dataset

from rag_lab.corpus.folder import load_folder
from rag_lab.data.dataset import Dataset, dataset_of
from rag_lab.errors import DatasetError
from rag_lab.records import Evidence, Question

PRESS = "https://plant.example/press.pdf"
PAGES = [
    Document(page_content="The valve opens at 290 bar.", metadata={"source": PRESS, "page": 1}),
    Document(page_content="It hisses.", metadata={"source": PRESS, "page": 0, "title": "P-1"}),
    Document(page_content="# Oven\n\nIt runs at 180 degrees."),
]


def test_a_name_a_folder_and_a_dataset_are_the_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_dataset(tmp_path)
    monkeypatch.setenv("RAG_LAB_DATASETS", str(tmp_path))
    dataset = Dataset.load(path)
    assert dataset_of("small", None, tmp_path) == dataset_of(path, None, tmp_path) == dataset
    assert dataset_of(dataset, None, tmp_path) is dataset


def test_a_plain_folder_takes_questions_as_texts(tmp_path: Path) -> None:
    (tmp_path / "oil.txt").write_text("Change the oil.")
    assert dataset_of(tmp_path, None, tmp_path).questions == ()
    dataset = dataset_of(tmp_path, ["When?", "Who?"], tmp_path)
    assert [(item.question_id, item.text) for item in dataset.questions] == [("q1", "When?"), ("q2", "Who?")]
    assert dataset.digest != dataset_of(tmp_path, ["When?"], tmp_path).digest


def test_documents_of_langchain_keep_their_source_and_page(tmp_path: Path) -> None:
    dataset = dataset_of(PAGES, None, tmp_path)
    assert dataset.path.is_relative_to(tmp_path)
    found = load_folder(dataset.corpus_dir)
    assert found.problems == ()
    assert [(item.source, item.page, item.text, item.title) for item in found.documents] == [
        ("document 3", None, "# Oven\n\nIt runs at 180 degrees.", "document 3"),
        (PRESS, 0, "It hisses.", "P-1"),
        (PRESS, 1, "The valve opens at 290 bar.", "press"),
    ]


def test_the_same_documents_are_the_same_corpus(tmp_path: Path) -> None:
    one = dataset_of([*PAGES[:2]], None, tmp_path)
    assert dataset_of(PAGES[1::-1], None, tmp_path) == one
    changed = Document(page_content="It whistles.", metadata=PAGES[1].metadata)
    assert dataset_of([PAGES[0], changed], None, tmp_path).path != one.path


def test_evidence_names_documents_as_their_metadata_do(tmp_path: Path) -> None:
    evidence = [{"source": PRESS, "page": 0}]
    dataset = dataset_of(PAGES, [{"question": "What sound?", "class": "fuzzy", "evidence": evidence}], tmp_path)
    assert dataset.problems == ()
    assert dataset.questions[0].evidence == (Evidence(PRESS, 0),)
    wrong = dataset_of(PAGES, ["Why?", {"question": "What?", "evidence": [{"source": "b.pdf"}]}], tmp_path)
    assert "question 2: the evidence names 'b.pdf'" in str(wrong.problems[0])


def test_a_data_frame_has_the_columns_of_questions_jsonl(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "id": [7, 8],
            "question": ["What sound?", "How hot?"],
            "answers": [["A hiss."], None],
            "class": ["fuzzy", None],
            "evidence": [[{"source": "document 3"}], None],
        }
    )
    first, second = dataset_of(PAGES, frame, tmp_path).questions
    assert (first.question_id, first.answers, first.query_class, first.evidence) == (
        "7",
        ("A hiss.",),
        "fuzzy",
        (Evidence("document 3"),),
    )
    assert second == Question("8", "How hot?")


def test_questions_of_our_own_replace_those_of_a_dataset(tmp_path: Path) -> None:
    dataset = Dataset.load(write_dataset(tmp_path))
    own = Question("mine", "Is there fish?")
    changed = dataset_of(dataset, [own, "Who?"], tmp_path)
    assert [item.question_id for item in changed.questions] == ["mine", "q2"]
    assert (changed.name, changed.path) == (dataset.name, dataset.path)


@pytest.mark.parametrize(
    ("documents", "questions", "sentence"),
    [
        (7, None, "Give a dataset's name.*not int 7"),
        ([], None, "Give a dataset's name.*not list"),
        (["a text"], None, "Document 1 is str 'a text'; give a dataset's name"),
        ([PAGES[0], PAGES[1], PAGES[0]], None, r"Documents 1 and 3 are both 'https://\S+', page 1; give whole pages"),
        ([Document(page_content="x", metadata={"page": "iv"})], None, "Document 1 has the page 'iv'"),
        ([Document(page_content="\ud800")], None, "Document 1 holds half a character"),
        (PAGES, "Why?", "Give a list of questions, not str 'Why\\?'"),
        (PAGES, [3], "Question 1 is int 3; give a text"),
        (PAGES, [], "Of the 0 questions given, none can be asked"),
        (PAGES, [{"text": "Why?"}], "none can be asked; the first of 1 problems: question 1: .*field required"),
        (PAGES, [{"question": Path("x")}], "Question 1 cannot be written as a line"),
        (PAGES, [Question("a", "x"), Question("a", "y")], "2 questions have the id 'a'"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(
    tmp_path: Path, documents: object, questions: object, sentence: str
) -> None:
    with pytest.raises(DatasetError, match=sentence):
        dataset_of(documents, questions, tmp_path)
