import os
from pathlib import Path

import pandas as pd
import pytest
from langchain_core.documents import Document
from small_dataset import write_dataset

from rag_lab.corpus.folder import list_files, load_folder
from rag_lab.data.dataset import Dataset, dataset_of, list_datasets
from rag_lab.errors import DatasetError
from rag_lab.records import Evidence, Question

REAL = Path(os.environ.get("RAG_LAB_DATA") or Path(__file__).parents[3] / "shared" / "data")


def make(folder: Path, metadata: str = "name: tiny\n", questions: str = '{"id": "q1", "question": "Why?"}\n') -> Path:
    """Write a dataset of one document and return its folder."""
    (folder / "corpus").mkdir(parents=True)
    (folder / "corpus" / "a.txt").write_text("Because.", encoding="utf-8")
    (folder / "dataset.yaml").write_text(metadata, encoding="utf-8")
    (folder / "questions.jsonl").write_text(questions, encoding="utf-8")
    return folder


def test_load_by_path(tmp_path: Path) -> None:
    path = make(tmp_path / "tiny", "name: Tiny\nlicence: MIT\nlanguage: en\npage_base: 0\n")
    dataset = Dataset.load(path)
    assert (dataset.name, dataset.licence, dataset.language, dataset.page_base) == ("Tiny", "MIT", "en", 0)
    assert dataset.corpus_dir == path / "corpus"
    assert Dataset.load(str(path)) == dataset


def test_an_empty_yaml_takes_the_folders_name(tmp_path: Path) -> None:
    dataset = Dataset.load(make(tmp_path / "tiny", ""))
    assert (dataset.name, dataset.page_base) == ("tiny", 1)


def test_names_are_searched_here_then_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "here" / "datasets" / "both", "description: here\n")
    make(tmp_path / "there" / "both", "description: there\n")
    make(tmp_path / "there" / "other", "")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("RAG_LAB_DATASETS", str(tmp_path / "there"))
    assert Dataset.load("both").description == "here"
    assert Dataset.load("other").name == "other"
    names = [name for name, _ in list_datasets()]
    assert names == sorted(names)
    assert {"both", "other"} <= set(names)


def test_an_unknown_name_lists_the_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "plant_dox")
    monkeypatch.setenv("RAG_LAB_DATASETS", str(tmp_path))
    with pytest.raises(DatasetError, match="Unknown dataset 'plant_dx': allowed are .*plant_dox.*did you mean"):
        Dataset.load("plant_dx")


def plain(folder: Path) -> Path:
    """A folder of documents, with what a newcomer's folder has beside them."""
    (folder / "more").mkdir(parents=True)
    (folder / "oil.txt").write_text("Change the oil every 4,000 hours.")
    (folder / "more/press.md").write_text("# Press\n\nThe press runs at 40 bar.")
    (folder / "~$oil.docx").write_bytes(b"x")
    for hidden in (".rag_lab/indexes/a.txt", ".git/b.txt", "results/demo/plan.json", "results/demo/report.md"):
        (folder / hidden).parent.mkdir(parents=True, exist_ok=True)
        (folder / hidden).write_text("no document")
    (folder / "results/demo/variants").mkdir()
    return folder


def test_a_folder_of_documents_is_its_own_corpus(tmp_path: Path) -> None:
    folder = plain(tmp_path / "manuals")
    dataset = Dataset.load(folder, labelled=False)
    assert (dataset.name, dataset.corpus_dir, dataset.questions, dataset.problems) == ("manuals", folder, (), ())
    assert list(list_files(folder).files) == ["more/press.md", "oil.txt"]
    assert list_files(folder).problems == ()
    (folder / "oil.txt").write_text("Change the oil every 5,000 hours.")
    assert Dataset.load(folder, labelled=False).digest != dataset.digest


def test_its_rules_and_its_questions_stand_in_it_and_are_no_documents(tmp_path: Path) -> None:
    folder = plain(tmp_path / "manuals")
    (folder / "attributes.yaml").write_text("- {files: 'more/**', permissions: [staff]}")
    (folder / "removed.txt").write_text("oil.txt\n")
    (folder / "questions.jsonl").write_text('{"id": "q", "question": "How many bar?"}\n')
    listing = list_files(folder)
    assert list(listing.files) == ["more/press.md"]
    assert listing.attributes["more/press.md"].permissions == ("staff",)
    assert len(listing.problems) == 1
    assert [question.text for question in Dataset.load(folder).questions] == ["How many bar?"]


def test_a_part_of_a_folder_with_rules_is_refused_where_they_would_not_hold(tmp_path: Path) -> None:
    folder = plain(tmp_path / "manuals")
    (folder / "attributes.yaml").write_text("- {files: 'more/**', permissions: [staff]}")
    with pytest.raises(DatasetError, match=r"attributes\.yaml says whose documents are, also below .*more"):
        Dataset.load(folder / "more", labelled=False)
    inner = make(tmp_path / "tiny") / "corpus"
    (tmp_path / "tiny/attributes.yaml").write_text("- {files: a.txt, permissions: [staff]}")
    assert Dataset.load(inner, labelled=False).corpus_dir == inner
    assert list_files(inner).attributes["a.txt"].permissions == ("staff",)


def test_evaluation_needs_questions_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"has no questions\.jsonl, which evaluation needs.*rag-lab ask"):
        Dataset.load(plain(tmp_path / "manuals"))


def test_a_folder_with_nothing_in_it_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"holds no \.pdf"):
        Dataset.load(tmp_path, labelled=False)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("page_bas: 0\n", "Unknown key 'page_bas': .*did you mean 'page_base'"),
        ("page_base: 2\nname: 3\n", "name: must be a valid string, got 3; page_base: must be 0 or 1, got 2"),
        ("- a\n", "must hold a mapping"),
        ("a: [\n", "is not YAML"),
    ],
)
def test_bad_metadata_is_refused(tmp_path: Path, metadata: str, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        Dataset.load(make(tmp_path / "tiny", metadata))


def test_no_usable_question_names_the_first_problem(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no usable question; the first of 2 problems: .*jsonl:1: this is"):
        Dataset.load(make(tmp_path / "tiny", questions="{\n{\n"))
    (tmp_path / "tiny" / "questions.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(DatasetError, match="holds no usable question$"):
        Dataset.load(tmp_path / "tiny")


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "tiny")
    (path / "corpus" / "a.txt").unlink()
    with pytest.raises(DatasetError, match="corpus"):
        Dataset.load(path)


@pytest.mark.parametrize("name", ["dataset.yaml", "questions.jsonl", "corpus/a.txt"])
def test_the_digest_changes_with_every_file(tmp_path: Path, name: str) -> None:
    path = make(tmp_path / "tiny")
    before = Dataset.load(path).digest
    with (path / name).open("a", encoding="utf-8") as file:
        file.write(" \n")
    assert Dataset.load(path).digest != before


def test_the_digest_knows_names_and_not_places(tmp_path: Path) -> None:
    path = make(tmp_path / "one" / "tiny")
    before = Dataset.load(path).digest
    assert Dataset.load(make(tmp_path / "two" / "tiny")).digest == before
    (path / "corpus" / "a.txt").rename(path / "corpus" / "b.txt")
    assert Dataset.load(path).digest != before


def test_a_link_out_of_the_corpus_is_no_evidence(tmp_path: Path) -> None:
    line = '{"id": "q1", "question": "Why?", "evidence": [{"source": "out.txt"}]}\n'
    path = make(tmp_path / "tiny", questions=line)
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    (path / "corpus" / "out.txt").symlink_to(tmp_path / "secret.txt")
    dataset = Dataset.load(path)
    assert dataset.questions[0].evidence == ()
    assert "out.txt" in str(dataset.problems[0])


@pytest.mark.skipif(not REAL.is_dir(), reason=f"there is no folder of question sets at {REAL}")
def test_contoso_hr() -> None:
    dataset = Dataset.load(REAL / "contoso_hr")
    assert (len(dataset.questions), sum(question.answerable for question in dataset.questions)) == (246, 201)
    assert dataset.problems == ()
    first = dataset.questions[0]
    assert (first.question_id, first.evidence[0].source, first.evidence[0].page) == (
        "hr-001",
        "Northwind_Standard_Benefits_Details.pdf",
        7,
    )


def test_a_file_of_other_questions_is_named_after_the_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "tiny")
    (path / "more.jsonl").write_text('{"id": "m1", "question": "And then?"}\n', encoding="utf-8")
    own, more = Dataset.load(path), Dataset.load(f"{path}/more.jsonl")
    assert [question.text for question in more.questions] == ["And then?"]
    assert (more.path, more.corpus_dir) == (own.path, own.corpus_dir)
    assert (own.name, more.name) == ("tiny", "tiny/more.jsonl")
    assert own.digest != more.digest
    assert Dataset.load(more.location) == more and Dataset.load(own.location) == own
    monkeypatch.setenv("RAG_LAB_DATASETS", str(tmp_path))
    assert Dataset.load("tiny/more.jsonl") == more


def test_other_questions_change_nothing_for_those_of_the_dataset(tmp_path: Path) -> None:
    path = make(tmp_path / "tiny")
    before = Dataset.load(path)
    (path / "more.jsonl").write_text('{"question": "And then?"}\n', encoding="utf-8")
    assert Dataset.load(path) == before


@pytest.mark.parametrize("labelled", [True, False])
def test_a_file_of_questions_that_is_not_there_is_named_with_those_that_are(tmp_path: Path, labelled: bool) -> None:
    path = make(tmp_path / "tiny")
    with pytest.raises(DatasetError, match=r"Unknown file of questions 'question.jsonl': allowed are questions.jsonl"):
        Dataset.load(f"{path}/question.jsonl", labelled=labelled)


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
        ([Document(page_content="\ud800")], None, "Document 1 has half a character"),
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
