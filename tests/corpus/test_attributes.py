import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.access import may_see
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import open_index
from rag_lab.corpus.folder import LoadedCorpus, list_files, load_folder
from rag_lab.corpus.rules import Attributes, of_copies, of_link, read_attributes
from rag_lab.errors import DatasetError
from rag_lab.records import Question
from rag_lab.stages.retrieval.search import allowed_labels
from rag_lab.stores.config import StoreConfig

SOURCES = ["canteen.txt", "press/oil.txt", "press/deep/valve.md", "hr/Löhne.txt"]


def rules(corpus: Path, text: str) -> Path:
    (corpus.parent / "attributes.yaml").write_text(text, encoding="utf-8")
    return corpus


def read(corpus: Path, text: str) -> dict[str, Attributes]:
    return read_attributes(rules(corpus, text), SOURCES)


def test_the_first_rule_that_fits_decides(corpus: Path) -> None:
    found = read(
        corpus,
        "- {files: press/oil.txt, permissions: [staff, staff, audit]}\n"
        "- {files: 'press/**', namespace: plant}\n"
        "- {files: 'hr/*', namespace: hr, permissions: [hr]}\n",
    )
    assert found == {
        "press/oil.txt": Attributes("", ("staff", "audit")),
        "press/deep/valve.md": Attributes("plant"),
        "hr/Löhne.txt": Attributes("hr", ("hr",)),
    }


@pytest.mark.parametrize(
    ("glob", "fitting"),
    [
        ("**", SOURCES),
        ("*", ["canteen.txt"]),
        ("*/*", ["press/oil.txt", "hr/Löhne.txt"]),
        ("**/*.md", ["press/deep/valve.md"]),
        ("**/*.txt", ["canteen.txt", "press/oil.txt", "hr/Löhne.txt"]),
        ("press/???.txt", ["press/oil.txt"]),
        ("hr/Lo\u0308hne.txt", ["hr/Löhne.txt"]),
    ],
)
def test_patterns(corpus: Path, glob: str, fitting: list[str]) -> None:
    assert sorted(read(corpus, f"- {{files: '{glob}', namespace: n}}")) == sorted(fitting)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- {files: 'salaries/**', permissions: [hr]}", "decides on no file.*it fits none"),
        ("- {files: '**', permission: [hr]}", "Unknown key 'permission'.*did you mean 'permissions'"),
        ("- {files: '**', permissions: hr}", "must be a valid list"),
        ("- {files: '**', permissions: []}", "has no permissions"),
        ("- {files: '**', permissions: ['']}", "not empty"),
        ("- {files: '**', permissions: [7]}", "must be a valid string"),
        ("- {files: '**'}", "says nothing"),
        ("- {namespace: hr}", "field required"),
        ("files: '**'", "must be a valid list"),
        ("", "must be a valid list"),
        ("- {files: [", "is not YAML"),
        ("- {files: '**', namespace: ' hr'}", "without spaces"),
        ("- files: 'hr/**'\n  permissions: [hr]\n  files: canteen.txt", "line 3: the key 'files' stands twice"),
        ("- {files: '**', namespace: x}\n- {files: 'hr/**', permissions: [hr]}", "rule 2 .* decides on no file"),
        ("- {files: '**', permissions: [\"\\ud800\"]}", "surrogates"),
        ("- {files: '**', namespace: 2024-13-45}", "is not YAML"),
    ],
)
def test_a_fault_is_an_error_since_files_would_become_public(corpus: Path, text: str, reason: str) -> None:
    with pytest.raises(DatasetError, match=f"(?i)attributes.yaml.*{reason}"):
        read(corpus, text)
    with pytest.raises(DatasetError):
        list_files(corpus)


@pytest.mark.parametrize("misplaced", ["attributes.yml", "corpus/attributes.yaml", "corpus/attributes.yml"])
def test_rules_in_a_file_that_is_not_read_are_an_error(corpus: Path, misplaced: str) -> None:
    (corpus.parent / misplaced).write_text("- {files: 'hr/**', permissions: [hr]}")
    with pytest.raises(DatasetError, match=f"{misplaced} is not where rules are read.*move it there"):
        list_files(corpus)


def test_a_link_to_nothing_is_an_error_too(corpus: Path) -> None:
    (corpus.parent / "attributes.yaml").symlink_to(corpus.parent / "nowhere")
    with pytest.raises(DatasetError, match="Cannot read"):
        list_files(corpus)


def test_chunks_carry_the_attributes_and_the_index_follows_them(corpus: Path, tmp_path: Path, embedder: Any) -> None:
    def opened() -> Any:
        return open_index(corpus, CorpusConfig(), embedder, home=tmp_path / "home")

    public = opened()
    rules(corpus, "- {files: 'press/**', namespace: plant, permissions: [staff]}")
    embedder.seen.clear()
    restricted = opened()
    assert embedder.seen == [] and restricted.digest != public.digest
    (file,) = [file for file in restricted.files if file.source == "press/oil.txt"]
    assert file.attributes == Attributes("plant", ("staff",))
    (hit, *_) = restricted.search(embedder.embed_queries(["hydraulic oil"]), 1)[0]
    assert (
        restricted.chunks.parent(hit.parent_id).permissions
        == restricted.chunks.child(hit.chunk_id).permissions
        == ("staff",)
    )
    assert public.chunks.parent(hit.parent_id).permissions == ()


SALARY = "The director earns 210,000 a year."
RULES = [
    {"files": "hr/**", "permissions": ["hr", "board"]},
    {"files": "board/**", "permissions": ["board"]},
    {"files": "legal/**", "permissions": ["legal"]},
    {"files": "north/private/**", "namespace": "north", "permissions": ["staff"]},
    {"files": "north/**", "namespace": "north"},
    {"files": "south/**", "namespace": "south"},
]


@pytest.fixture
def labelled_corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    for source in ("hr/pay.txt", "north/private/plan.txt", "north/a.txt", "south/b.txt", "board/c.txt", "legal/d.txt"):
        (folder / source).parent.mkdir(parents=True, exist_ok=True)
        (folder / source).write_text(SALARY if source == "hr/pay.txt" else f"What {source} says.")
    (tmp_path / "attributes.yaml").write_text(yaml.safe_dump(RULES))
    return folder


def labels(loaded: LoadedCorpus) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {document.source: (document.namespace, document.permissions) for document in loaded.documents}


def told(loaded: LoadedCorpus, source: str) -> list[str]:
    return [problem.reason for problem in loaded.problems if problem.path.endswith(f"/{source}")]


@pytest.mark.parametrize("place", [os.symlink, os.link, shutil.copy])
def test_what_is_restricted_stays_so_in_a_public_place(labelled_corpus: Path, place: Any) -> None:
    place(labelled_corpus / "hr/pay.txt", labelled_corpus / "readme.txt")
    loaded = load_folder(labelled_corpus)
    assert labels(loaded)["readme.txt"] == ("", ("hr", "board"))
    (reason,) = told(loaded, "readme.txt")
    assert reason.startswith("may be seen by hr, board, because it is ")
    assert "hr/pay.txt" in reason
    assert told(loaded, "hr/pay.txt") == []


def test_nothing_of_it_is_found_by_who_may_not_see_it(labelled_corpus: Path, tmp_path: Path, embedder: Any) -> None:
    (labelled_corpus / "readme.txt").symlink_to("hr/pay.txt")
    config = CorpusConfig(chunk_size=60, chunk_overlap=20, parent_size=200)
    index = open_index(labelled_corpus, config, embedder, home=tmp_path / "home", store=StoreConfig(name="exact"))
    for permissions, seen in (((), False), (("legal",), False), (("hr",), True)):
        allowed = allowed_labels(index.chunks.labels, Question("q", "?", may_see=permissions))
        (hits,) = index.search(embedder.embed_queries([SALARY]), 50, allowed)
        assert ("readme.txt" in {hit.source for hit in hits}) == seen
    assert any("readme.txt" in problem.path and "strictest" in problem.reason for problem in index.problems)


def test_copies_under_different_permissions_ask_for_both(labelled_corpus: Path) -> None:
    shutil.copy(labelled_corpus / "hr/pay.txt", labelled_corpus / "board/pay.txt")
    assert labels(load_folder(labelled_corpus))["hr/pay.txt"] == ("", ("board",))
    shutil.copy(labelled_corpus / "hr/pay.txt", labelled_corpus / "legal/pay.txt")
    loaded = load_folder(labelled_corpus)
    assert {labels(loaded)[f"{place}/pay.txt"] for place in ("hr", "board", "legal")} == {("", ("",))}
    asker = Question("q", "?", may_see=("hr", "board", "legal", ""))
    assert not may_see(asker, "", ("",))
    assert all("nobody who is restricted" in told(loaded, f"{place}/pay.txt")[0] for place in ("hr", "board", "legal"))


def test_copies_of_two_tenants_change_nothing_for_each_other(labelled_corpus: Path) -> None:
    shutil.copy(labelled_corpus / "north/private/plan.txt", labelled_corpus / "south/plan.txt")
    loaded = load_folder(labelled_corpus)
    assert labels(loaded)["south/plan.txt"] == ("south", ())
    assert labels(loaded)["north/private/plan.txt"] == ("north", ("staff",))
    assert not any("strictest" in problem.reason for problem in loaded.problems)


def test_a_link_into_a_namespace_belongs_to_it_and_one_between_two_is_not_followed(labelled_corpus: Path) -> None:
    (labelled_corpus / "plan.txt").symlink_to("north/private/plan.txt")
    (labelled_corpus / "south/plan.txt").symlink_to("../north/private/plan.txt")
    loaded = load_folder(labelled_corpus)
    assert labels(loaded)["plan.txt"] == ("north", ("staff",))
    assert "south/plan.txt" not in labels(loaded)
    assert "of another namespace; it was not followed." in told(loaded, "south/plan.txt")[0]


def test_a_link_to_what_is_hidden_or_not_read_has_its_label(labelled_corpus: Path) -> None:
    (labelled_corpus / "hr/.draft.txt").write_text("hidden")
    (labelled_corpus / "hr/raw.bin").write_text("not read")
    (labelled_corpus / "a.txt").symlink_to("hr/.draft.txt")
    (labelled_corpus / "b.txt").symlink_to("hr/raw.bin")
    assert (
        labels(load_folder(labelled_corpus))["a.txt"]
        == labels(load_folder(labelled_corpus))["b.txt"]
        == ("", ("hr", "board"))
    )


ATTRIBUTES = st.builds(
    Attributes, st.sampled_from(["", "n", "s"]), st.lists(st.sampled_from("abc"), unique=True).map(tuple)
)
ASKERS = st.builds(
    lambda held, namespace: Question("q", "?", may_see=held, namespace=namespace),
    st.none() | st.lists(st.sampled_from("abc")).map(tuple), st.sampled_from([None, "", "n", "s"]),
)  # fmt: skip


@given(ATTRIBUTES, ATTRIBUTES, ASKERS)
def test_nobody_sees_by_a_link_or_a_copy_what_they_may_not_see(
    own: Attributes, other: Attributes, asker: Question
) -> None:
    def permitted(label: Attributes) -> bool:
        return may_see(Question("q", "?", may_see=asker.may_see), "", label.permissions)

    link = of_link(own, other)
    if link and may_see(asker, link.namespace, link.permissions):
        assert permitted(own)
        assert permitted(other)
        assert not other.namespace or asker.namespace in (None, other.namespace)
    held = of_copies({"x": own, "y": other}, {"x": "1", "y": "1"})[0]["x"]
    strangers = own.namespace and other.namespace and own.namespace != other.namespace
    assert held.namespace == own.namespace
    if may_see(asker, held.namespace, held.permissions):
        assert permitted(own)
        assert strangers or permitted(other)
