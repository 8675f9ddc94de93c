import hashlib
import os

import pytest

from rag_lab._kit.home import home
from rag_lab.models import weights as digests
from rag_lab.models.weights import file_digest, folder_digest


def test_a_file_is_hashed_whole_and_once(tmp_path, monkeypatch):
    path = tmp_path / "weights.gguf"
    path.write_bytes(b"x" * 3_000_000)
    expected = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    assert file_digest(path) == expected
    monkeypatch.setattr(digests.hashlib, "file_digest", lambda *_: pytest.fail("hashed again"))
    assert file_digest(path) == expected


def test_a_changed_file_is_hashed_again(tmp_path):
    path = tmp_path / "weights.gguf"
    path.write_bytes(b"a" * 100)
    before = file_digest(path)
    path.write_bytes(b"b" * 100)
    os.utime(path, ns=(1, 1))
    assert file_digest(path) != before


def test_a_spoilt_note_is_no_harm(tmp_path):
    path = tmp_path / "weights.gguf"
    path.write_bytes(b"a")
    expected = file_digest(path)
    for spoilt in (b"", b"{", b"[]", b'{"stamp": 1}'):
        for note in (home() / "weights" / "digests").iterdir():
            note.write_bytes(spoilt)
        assert file_digest(path) == expected


def test_a_large_file_says_that_its_digest_is_partial(tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "_WHOLE_BYTES", 10)
    path = tmp_path / "large.gguf"
    path.write_bytes(b"x" * 11)
    assert file_digest(path).startswith("partial-sha256:")


def test_a_folder_follows_names_and_contents_but_not_prose(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"0" * 3_000_000)
    before = folder_digest(tmp_path)
    (tmp_path / "README.md").write_text("prose")
    assert folder_digest(tmp_path) == before
    (tmp_path / "config.json").write_text("{ }")
    changed = folder_digest(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"0" * 2_999_999 + b"1")
    assert len({before, changed, folder_digest(tmp_path)}) == 3
