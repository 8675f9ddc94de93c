from pathlib import Path
from typing import Any

import pytest

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import open_index
from rag_lab.corpus.folder import list_files
from rag_lab.corpus.rules import Attributes, read_attributes
from rag_lab.errors import DatasetError

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
