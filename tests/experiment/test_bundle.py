"""A run as one file: what is in it, that it says what follows from it, and what is found where it does not."""

import json
import zipfile

import golden_runs
import pandas as pd
import pytest
from run_folder_fixture import HOSTILE, build_run

from rag_lab.errors import RagLabError
from rag_lab.evaluation.judge_check import FOLDER, Agreement, JudgeCheck, save_check
from rag_lab.experiment import bundle as bundles
from rag_lab.report.page.report_page import write_report


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("few") / "few"
    build_run(path, 5, 3)
    write_report(path)
    return path


@pytest.fixture(scope="module")
def bundled(run):
    return bundles.bundle(run, run.parent / "few.ragrun.zip")


def rewritten(bundled, target, change):
    """Write the bundle with what `change` makes of its files, digests and all, as a forger would."""
    with zipfile.ZipFile(bundled) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    folder = target.parent / f"{target.stem}_files"
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    change(folder)
    listed = json.loads((folder / bundles.LIST_FILE).read_text())
    listed["files"] = bundles.file_digests({name: folder / name for name in listed["files"]})
    (folder / bundles.LIST_FILE).write_text(json.dumps(listed))
    with zipfile.ZipFile(target, "w") as archive:
        for name in files:
            archive.writestr(name, (folder / name).read_bytes())
    return target


def differing(found):
    return [check.what for check in found.checks if check.agrees is False and not check.is_of_machine]


def test_the_same_run_gives_the_same_bytes_and_all_of_it_follows(run, bundled, tmp_path):
    assert bundles.bundle(run, tmp_path / "again.zip").read_bytes() == bundled.read_bytes()
    found = bundles.verify(bundled)
    assert found.agrees and differing(found) == []
    assert "What few.ragrun.zip says follows from the file." in str(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", golden_runs.RUNS)
def test_every_kind_of_report_follows_and_with_documents_it_is_that_of_the_run(name, tmp_path):
    path = tmp_path / name
    golden_runs.RUNS[name](path)
    write_report(path)
    file = bundles.bundle(path, tmp_path / "with.zip", documents=True)
    assert bundles.verify(file).agrees
    with zipfile.ZipFile(file) as archive:
        for page in ("report.html", "report.md"):
            assert archive.read(page) == (path / page).read_bytes()


def test_no_text_of_a_document_leaves_unless_it_is_asked_for(run, bundled, tmp_path):
    text = "is inspected every 500 operating hours"
    assert text in (run / "variants/baseline/traces.jsonl").read_text()
    with zipfile.ZipFile(bundled) as archive:
        holding = [name for name in archive.namelist() if text.encode() in archive.read(name)]
    assert holding == []
    with zipfile.ZipFile(bundles.bundle(run, tmp_path / "with.zip", documents=True)) as archive:
        assert text.encode() in archive.read("report.html")


def test_a_changed_score_a_changed_number_and_a_changed_page_are_named(bundled, tmp_path):
    def raise_scores(folder):
        scores = pd.read_parquet(folder / "scores.parquet")
        scores.loc[scores["value"].notna(), "value"] = 1.0
        scores.to_parquet(folder / "scores.parquet", index=False)

    def raise_a_mean(folder):
        numbers = json.loads((folder / bundles.NUMBERS_FILE).read_text())
        numbers["means and intervals"][0]["mean"] = 0.99
        (folder / bundles.NUMBERS_FILE).write_text(json.dumps(numbers))

    def touch_the_page(folder):
        page = folder / "report.html"
        page.write_text(page.read_text().replace("cannot", "can"))

    found = bundles.verify(rewritten(bundled, tmp_path / "scores.zip", raise_scores))
    assert {"means and intervals", "cells of tables", "report"} <= set(differing(found))
    found = bundles.verify(rewritten(bundled, tmp_path / "mean.zip", raise_a_mean))
    assert differing(found) == ["means and intervals"]
    assert "baseline retrieval.ndcg@10 mean: 0.99 is written" in str(found)
    assert "does not follow from the file" in str(found)
    assert differing(bundles.verify(rewritten(bundled, tmp_path / "page.zip", touch_the_page))) == ["report"]


def test_a_file_that_is_not_as_written_is_named_by_its_digest(bundled, tmp_path):
    path = tmp_path / "damaged.zip"
    with zipfile.ZipFile(bundled) as archive, zipfile.ZipFile(path, "w") as other:
        for name in archive.namelist():
            data = archive.read(name)
            other.writestr(name, data + b"\n" if name == "experiment.yaml" or name == "plan.json" else data)
    found = bundles.verify(path)
    assert differing(found) == ["files"] and "plan.json" in str(found)


def test_the_check_of_a_judge_travels_with_its_scores(tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    agreement = Agreement("ragas.faithfulness", 20, 1.0, 0.0)
    identity = {"provider": "llamacpp", "model": "smollm2"}
    save_check(JudgeCheck("llamacpp:smollm2", identity, "mine", "", 20, "2026-11-26", (), (), agreement, 9, 1.0))
    golden_runs.judged(tmp_path / "run")
    file = bundles.bundle(tmp_path / "run", tmp_path / "judged.zip")
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "of_another"))
    with zipfile.ZipFile(file) as archive:
        assert sum(name.startswith(f"{FOLDER}/") for name in archive.namelist()) == 1
    assert bundles.verify(file).agrees


@pytest.mark.parametrize("name", ["../outside.txt", "/outside.txt", "a\\..\\b.txt", "a/../../b.txt"])
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, "x")
    with pytest.raises(RagLabError, match="may lead out of its folder"):
        bundles.verify(path)
    assert not (tmp_path / "outside.txt").exists()


def test_what_is_no_bundle_is_one_sentence(bundled, tmp_path, monkeypatch):
    (tmp_path / "text.zip").write_text("no zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("plan.json", "{}")
    (tmp_path / "short.zip").write_bytes(bundled.read_bytes()[:-200])
    for name in ("text.zip", "short.zip", "none.zip"):
        with pytest.raises(RagLabError, match="is no bundle of a run"):
            bundles.verify(tmp_path / name)
    with pytest.raises(RagLabError, match=r"no bundle\.json of format 1"):
        bundles.verify(tmp_path / "other.zip")
    monkeypatch.setattr(bundles, "MOST_BYTES", 100)
    with pytest.raises(RagLabError, match="at most .* bytes are read"):
        bundles.verify(bundled)


def test_a_run_that_is_not_finished_has_no_bundle(tmp_path):
    build_run(tmp_path / "run", 5, 3)
    (tmp_path / "run" / "manifest.json").unlink()
    with pytest.raises(RagLabError, match="not finished"):
        bundles.bundle(tmp_path / "run")


def test_hostile_text_is_shown_escaped(bundled, tmp_path):
    def poison(folder):
        numbers = json.loads((folder / bundles.NUMBERS_FILE).read_text())
        numbers["sentences"][0] = f"\x1b[31m{HOSTILE}"
        (folder / bundles.NUMBERS_FILE).write_text(json.dumps(numbers))

    assert "\x1b" not in str(bundles.verify(rewritten(bundled, tmp_path / "poison.zip", poison)))
