"""A link or a copy in a public place of what is restricted opens nothing."""

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
from rag_lab.corpus.folder import LoadedCorpus, load_folder
from rag_lab.corpus.rules import Attributes, of_copies, of_link
from rag_lab.records import Question
from rag_lab.stages.retrieval.search import allowed_labels
from rag_lab.stores.config import StoreConfig

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
def corpus(tmp_path: Path) -> Path:
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
def test_what_is_restricted_stays_so_in_a_public_place(corpus: Path, place: Any) -> None:
    place(corpus / "hr/pay.txt", corpus / "readme.txt")
    loaded = load_folder(corpus)
    assert labels(loaded)["readme.txt"] == ("", ("hr", "board"))
    (reason,) = told(loaded, "readme.txt")
    assert reason.startswith("may be seen by hr, board, because it is ")
    assert "hr/pay.txt" in reason
    assert told(loaded, "hr/pay.txt") == []


def test_nothing_of_it_is_found_by_who_may_not_see_it(corpus: Path, tmp_path: Path, embedder: Any) -> None:
    (corpus / "readme.txt").symlink_to("hr/pay.txt")
    config = CorpusConfig(chunk_size=60, chunk_overlap=20, parent_size=200)
    index = open_index(corpus, config, embedder, home=tmp_path / "home", store=StoreConfig(name="exact"))
    for permissions, seen in (((), False), (("legal",), False), (("hr",), True)):
        allowed = allowed_labels(index.chunks.labels, Question("q", "?", may_see=permissions))
        (hits,) = index.search(embedder.embed_queries([SALARY]), 50, allowed)
        assert ("readme.txt" in {hit.source for hit in hits}) == seen
    assert any("readme.txt" in problem.path and "strictest" in problem.reason for problem in index.problems)


def test_copies_under_different_permissions_ask_for_both(corpus: Path) -> None:
    shutil.copy(corpus / "hr/pay.txt", corpus / "board/pay.txt")
    assert labels(load_folder(corpus))["hr/pay.txt"] == ("", ("board",))
    shutil.copy(corpus / "hr/pay.txt", corpus / "legal/pay.txt")
    loaded = load_folder(corpus)
    assert {labels(loaded)[f"{place}/pay.txt"] for place in ("hr", "board", "legal")} == {("", ("",))}
    asker = Question("q", "?", may_see=("hr", "board", "legal", ""))
    assert not may_see(asker, "", ("",))
    assert all("nobody who is restricted" in told(loaded, f"{place}/pay.txt")[0] for place in ("hr", "board", "legal"))


def test_copies_of_two_tenants_change_nothing_for_each_other(corpus: Path) -> None:
    shutil.copy(corpus / "north/private/plan.txt", corpus / "south/plan.txt")
    loaded = load_folder(corpus)
    assert labels(loaded)["south/plan.txt"] == ("south", ())
    assert labels(loaded)["north/private/plan.txt"] == ("north", ("staff",))
    assert not any("strictest" in problem.reason for problem in loaded.problems)


def test_a_link_into_a_namespace_belongs_to_it_and_one_between_two_is_not_followed(corpus: Path) -> None:
    (corpus / "plan.txt").symlink_to("north/private/plan.txt")
    (corpus / "south/plan.txt").symlink_to("../north/private/plan.txt")
    loaded = load_folder(corpus)
    assert labels(loaded)["plan.txt"] == ("north", ("staff",))
    assert "south/plan.txt" not in labels(loaded)
    assert "of another namespace; it was not followed." in told(loaded, "south/plan.txt")[0]


def test_a_link_to_what_is_hidden_or_not_read_has_its_label(corpus: Path) -> None:
    (corpus / "hr/.draft.txt").write_text("hidden")
    (corpus / "hr/raw.bin").write_text("not read")
    (corpus / "a.txt").symlink_to("hr/.draft.txt")
    (corpus / "b.txt").symlink_to("hr/raw.bin")
    assert labels(load_folder(corpus))["a.txt"] == labels(load_folder(corpus))["b.txt"] == ("", ("hr", "board"))


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
