import pytest

from rag_lab.experiment import runnable
from rag_lab.experiment.runnable import shipped_presets


@pytest.fixture(autouse=True)
def nothing_downloaded(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))


def test_what_runs_with_packaged_models_is_ready_and_what_the_hub_has_is_named():
    states = {state.name: state.lacks for state in shipped_presets()}
    assert states["laptop"] == ()
    assert all(not lacks for name, lacks in states.items() if name.endswith("_laptop"))
    assert any("BAAI/bge-m3 has not been downloaded" in lack for lack in states["assistant"])


def test_what_has_been_downloaded_is_not_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(runnable, "downloaded_folder", lambda name: tmp_path)
    assert not any("downloaded" in lack for state in shipped_presets() for lack in state.lacks)
