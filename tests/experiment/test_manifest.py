import subprocess
from dataclasses import replace

import pytest
from small_plans import write_machines_sweep

from rag_lab.experiment.config import checkout_file
from rag_lab.experiment.manifest import VariantState, build_manifest, git_state, now, package_versions, run_identities
from rag_lab.experiment.plan import plan


@pytest.fixture
def checked(tmp_path):
    return plan(
        write_machines_sweep(tmp_path, factors={"rerank.final_k": [5, 3]}, metrics=["retrieval.mrr@10"], base={})
    )


def record(**models):
    return {
        "config_identity": "c",
        "language": "english (detected)",
        "prompts": {},
        "models": models,
        "judge": None,
        "metric_embedding": {"name": "minilm"},
        "traces": 4,
        "failed_stages": {"parse": 1},
        "problems": ["press.pdf: no text"],
        "peak_memory_mb": 7,
    }


def test_a_manifest_says_what_ran_and_how_it_ended(checked):
    states = [
        VariantState("baseline", "ok", seconds=1.23, record=record(generate={"name": "a"})),
        VariantState("final_k-3", "failed", "It broke.", record=None),
    ]
    manifest = build_manifest(checked, states, {"scored": 3, "failed": 1}, now())
    assert manifest["counts"] == {"scored": 3, "failed": 1, "not_applicable": 0}
    assert manifest["design"] == "one_factor"
    assert manifest["variants"]["baseline"]["failed_stages"] == {"parse": 1}
    assert manifest["variants"]["final_k-3"]["reason"] == "It broke."
    assert manifest["models"] == {"generate": [{"name": "a"}]}
    assert "played_by" not in manifest["variants"]["baseline"]
    assert manifest["problems"] == ["press.pdf: no text"]
    assert manifest["language"] == "english (detected)"
    assert manifest["start"] <= manifest["end"]
    assert manifest["dataset"]["digest"] == checked.dataset.digest


def test_what_variants_have_in_common_stands_once(checked):
    states = [
        VariantState("baseline", "ok", record=record(generate={"name": "a"}, hyde={"name": "h"})),
        VariantState("final_k-3", "ok", record=record(generate={"name": "b"}, hyde={"name": "h"})),
    ]
    manifest = build_manifest(checked, states, {}, now())
    assert manifest["models"] == {"generate": [{"name": "a"}, {"name": "b"}], "hyde": [{"name": "h"}]}
    assert manifest["problems"] == ["press.pdf: no text"]


def test_versions_name_python_and_what_computes():
    assert {"python", "torch", "chromadb", "ragas"} <= package_versions().keys()


def test_a_commit_is_dirty_once_a_file_changes_and_absent_outside_git(tmp_path):
    assert git_state(tmp_path) == (None, None)
    for command in ("init -q", "config user.name n", "config user.email e@x", "commit -q --allow-empty -m a"):
        subprocess.run(["git", "-C", tmp_path, *command.split()], check=True)
    commit, dirty = git_state(tmp_path)
    assert len(commit) == 40
    assert dirty is False
    (tmp_path / "a").touch()
    subprocess.run(["git", "-C", tmp_path, "add", "a"], check=True)
    assert git_state(tmp_path) == (commit, True)


def test_a_variants_identity_changes_with_all_that_changes_its_results(checked, tmp_path):
    notebook = checkout_file("notebooks/02_run_variant.ipynb")
    other_notebook = tmp_path / "other.ipynb"
    other_notebook.write_text("{}")
    before = run_identities(checked, notebook)
    assert before == run_identities(checked, notebook)
    assert len(set(before.values())) == 2
    changed = [
        run_identities(replace(checked, questions=checked.questions[:2]), notebook),
        run_identities(replace(checked, answered=()), notebook),
        run_identities(replace(checked, dataset=replace(checked.dataset, digest="x")), notebook),
        run_identities(checked, other_notebook),
    ]
    changed += [
        run_identities(replace(checked, experiment=checked.experiment.model_copy(update=update)), notebook)
        for update in ({"metrics": ["cost.usd"]}, {"judge": "llamacpp:smollm2"}, {"repeats": 2})
    ]
    assert len({identities["baseline"] for identities in [before, *changed]}) == 1 + len(changed)


def test_who_played_a_role_that_names_several_models_is_kept_for_each_variant(checked):
    played = {"ollama:a | gemini:b": ["gemini:b"]}
    states = [VariantState("baseline", "ok", record=record() | {"played_by": played})]
    assert build_manifest(checked, states, {}, now())["variants"]["baseline"]["played_by"] == played
