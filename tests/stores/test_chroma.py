"""Chroma as a library, which has settings of its own."""

import pytest

from rag_lab.stores.vector_stores import ChromaStore

pytestmark = pytest.mark.slow


def test_a_foreign_env_file_does_not_choose_what_chroma_imports(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("CHROMA_PRODUCT_TELEMETRY_IMPL=antigravity.Any\n")
    monkeypatch.chdir(tmp_path)
    client = ChromaStore._connect(tmp_path / "store")
    assert client.list_collections() == []
    client.close()
