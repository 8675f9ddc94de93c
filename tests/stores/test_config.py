"""The stores by name: what a configuration may say of them."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError, StoreError
from rag_lab.stores import registry
from rag_lab.stores.config import STORE_NAMES, STORES, StoreConfig


@pytest.mark.parametrize(
    ("name", "url", "problem"),
    [
        ("exact", "http://localhost:1", "exact has no server, so url must be empty; chroma and qdrant may have one"),
        ("chroma", "localhost:8000", "url must be http://host:port or https://host:port"),
        ("chroma", "http://:8000", "url must be http://host:port or https://host:port"),
        ("qdrant", "http://host:port", "url must be http://host:port or https://host:port"),
        ("qdrant", "https://me:word@host:6333", "url must hold no user, password or key"),
        ("qdrant", "https://host:6333/?api_key=word", "url must hold no user, password or key"),
    ],
    ids=["no server", "no scheme", "no host", "no port", "a password", "a key"],  # addresses would pass for secrets
)
def test_an_impossible_url_is_refused(name: str, url: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as error:
        PipelineConfig().override({"store.name": name, "store.url": url})
    assert "word" not in str(error.value).replace("password", "")


@pytest.mark.parametrize("url", ["http://localhost:8000", "https://vectors.example.org", "http://[::1]:6333/"])
def test_a_url_names_a_server(url: str) -> None:
    assert PipelineConfig().override({"store.name": "qdrant", "store.url": url}).store.url == url


def test_every_store_that_is_installed_has_a_class_and_an_identity() -> None:
    for name in STORE_NAMES:
        if find_spec(STORES[name].module):
            assert registry.store_problem(name) == ""
            assert registry.store_class(name).build
            assert registry.identity(StoreConfig(name=name))["libraries"].keys() == set(STORES[name].distributions)


def test_a_store_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(STORES, "milvus", replace(STORES["milvus"], module="nobodys_milvus"))
    with pytest.raises(StoreError, match=r"^store.name \(milvus\): .* pip install 'rag_lab\[stores\]'\.$"):
        registry.store_class("milvus")
