"""What comes from another machine is the files of a variant, whole, or nothing."""

import base64
import io
import json
import zipfile
from hashlib import sha256

import pytest

from rag_lab.experiment.executors import archive
from rag_lab.experiment.executors.archive import BadArchiveError, Ended, pack, unpack

ENDED = Ended("", 1.5, "there")


def variant(folder):
    folder.mkdir()
    (folder / "record.json").write_text("{}")
    (folder / "scores.parquet").write_bytes(bytes(range(256)))
    return folder


def forged(**files):
    """A parcel with these files, by names that a variant may not have."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    content = packed.getvalue()
    sealed = {"sum": sha256(content).hexdigest(), "files": base64.b64encode(content).decode()}
    return json.dumps({"reason": "", "seconds": 1, "where": "", **sealed})


def test_files_come_back_to_the_byte_in_place_of_what_was_there(tmp_path):
    sent = variant(tmp_path / "sent")
    (sent / "live.partial").mkdir()  # folders stay
    got = tmp_path / "run" / "got"
    got.mkdir(parents=True)
    (got / "old.json").write_text("of an earlier start")
    assert unpack(pack(sent, ENDED), got) == ENDED
    assert {path.name: path.read_bytes() for path in got.iterdir()} == {
        "record.json": b"{}",
        "scores.parquet": bytes(range(256)),
    }
    assert [path.name for path in got.parent.iterdir()] == ["got"]


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "a/b", ".hidden"])
def test_a_file_outside_of_the_folder_is_refused_and_nothing_is_written(tmp_path, name):
    with pytest.raises(BadArchiveError):
        unpack(forged(**{"record.json": "{}", name: "x"}), tmp_path / "run" / "got")
    assert not (tmp_path / "run").exists()
    assert [path.name for path in tmp_path.iterdir()] == []


def test_a_parcel_that_was_changed_or_is_none_is_refused(tmp_path):
    known = json.loads(pack(variant(tmp_path / "sent"), ENDED))
    content = bytearray(base64.b64decode(known["files"]))
    content[40] ^= 1
    changed = json.dumps(known | {"files": base64.b64encode(content).decode()})
    for bad in (changed, "", "[]", "{}", json.dumps(known | {"files": "?"}), json.dumps(known | {"seconds": None})):
        with pytest.raises(BadArchiveError) as error:
            unpack(bad, tmp_path / "got")
        assert "start the sweep again" in str(error.value)
    assert not (tmp_path / "got").exists()


def test_what_is_too_large_is_neither_sent_nor_unpacked(tmp_path, monkeypatch):
    parcel = pack(variant(tmp_path / "sent"), ENDED)
    monkeypatch.setattr(archive, "MOST_BYTES", 100)
    with pytest.raises(BadArchiveError):
        pack(tmp_path / "sent", ENDED)
    with pytest.raises(BadArchiveError):
        unpack(parcel, tmp_path / "got")
