"""`rag-lab modules`: what is built in, what packages bring (in a process that has some), and how one is named."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rag_lab._kit.config_file import read_shipped
from rag_lab._kit.registry import BuiltIn, Kind
from rag_lab.cli import modules
from rag_lab.cli.module_kinds import MODULE_KINDS, ModuleKind
from rag_lab.cli.new import _KINDS
from rag_lab.evaluation.registry import metric_names

REPOSITORY = Path(__file__).parents[2]
HEAVY = ("torch", "transformers", "sentence_transformers", "langchain_core", "chromadb", "ragas", "pandas", "scipy")
SCRIPT = f"""
import atexit, sys
atexit.register(lambda: print("loaded:", *[name for name in {HEAVY} if name in sys.modules], file=sys.__stderr__))
from rag_lab.cli import main
main()
"""
# Packages: their entry points, and the source of their module.
PACKAGES = {
    "good-pack": (
        "[rag_lab.rerankers]\nshortest = good_pack:Shortest",
        "class Shortest:\n    def __init__(self, keep): 0",
    ),
    "torn-pack": ("[rag_lab.rerankers]\ntorn = torn_pack:Torn", 'raise OSError("no \\x1b[31mlicence s3cr3t-and-long")'),
    "rude-pack": ("[rag_lab.metrics]\nrude = rude_pack:rude", "raise SystemExit(7)"),
    "one-pack": ("[rag_lab.rerankers]\ntwice = one_pack:One", "One = print"),
    "other-pack": ("[rag_lab.rerankers]\ntwice = other_pack:Other\nnone = other_pack:Other", "Other = print"),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Run `rag-lab modules ...` where the packages are installed; return what it says in lines of any length."""
    site = tmp_path_factory.mktemp("site")
    for name, (entries, source) in PACKAGES.items():
        (site / f"{name.replace('-', '_')}.py").write_text(source)
        folder = site / f"{name.replace('-', '_')}-1.2.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (folder / "entry_points.txt").write_text(entries)

    def run(*arguments, columns=120):
        known = {
            "PYTHONPATH": f"{site}{os.pathsep}{REPOSITORY}",
            "COLUMNS": str(columns),
            "X_API_KEY": "s3cr3t-and-long",
        }
        command = [sys.executable, "-c", SCRIPT, "modules", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | known)
        assert done.stderr.splitlines()[-1] == "loaded:"
        return done

    return run


def sentence(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def overview(told):
    return told().stdout


def test_every_kind_of_the_package_is_listed():
    listed = [each.kind for each in MODULE_KINDS]
    declared = []
    for path in sorted((REPOSITORY / "rag_lab").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        of_data = re.findall(r"^\(?([A-Z_, ]+?),?\)? = kinds_of\(", text, re.MULTILINE)
        alone = re.findall(r"^([A-Z]\w*)(?:: \w+)? = Kind\(", text, re.MULTILINE)
        for name in [*alone, *(name for names in of_data for name in names.split(", "))]:
            declared.append(
                getattr(importlib.import_module(".".join(path.relative_to(REPOSITORY).with_suffix("").parts)), name)
            )
    assert len(declared) > 15
    assert {kind.group for kind in declared} == {kind.group for kind in listed}
    assert len({each.word for each in MODULE_KINDS}) == len(listed) == len(declared)


def test_the_kinds_that_can_be_begun_are_among_them():
    assert set(read_shipped(_KINDS)) <= {each.word for each in MODULE_KINDS}


def test_the_documents_show_the_same_forms_and_keys():
    page = (REPOSITORY / "docs/adding_a_module.md").read_text(encoding="utf-8").replace("`", "")
    rows = dict(re.findall(r"^\| (\w[\w ]*) \| (.* \| .*) \|$", page, re.MULTILINE))
    assert rows.pop("kind") == "takes and returns | named by"
    assert {name.replace(" ", "_"): row for name, row in rows.items()} == {
        each.word: f"{each.takes} | {each.keys}" for each in MODULE_KINDS
    }


def test_everything_built_in_stands_there_with_its_summary(overview):
    for each in MODULE_KINDS:
        for name, entry in each.kind.built_in.items():
            assert f"{name} {sentence(entry.summary)}" in sentence(overview), name
    families = sentence(overview).replace("_", "")
    assert all(name.partition(".")[2].replace("_", "") in families for name in metric_names())


def test_a_package_stands_with_its_version_and_needs_no_parameters_to_be_listed(overview):
    assert "  shortest               good-pack 1.2: good_pack:Shortest\n" in overview


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("torn", r"The reranker 'torn' does not load (OSError: no \x1b[31mlicence [hidden]); mend its file."),
        ("rude", "The metric 'rude' does not load (SystemExit: 7); mend its file."),
        (
            "twice",
            "More than one package claims the reranker 'twice': one-pack 1.2 (one_pack:One) and other-pack 1.2 "
            "(other_pack:Other); uninstall all but one.",
        ),
        ("none", "The reranker none is built in, so other-pack 1.2 can not claim its name; use another."),
    ],
)
def test_what_cannot_be_used_says_why_in_one_sentence(overview, name, said):
    assert f"! {name} {said}" in sentence(overview)
    assert "\x1b" not in overview


def test_what_is_built_in_and_cannot_be_used_says_how_to_get_it(monkeypatch, capsys):
    kind = Kind("fruit", "rag_lab.fruits", {"durian": BuiltIn("durian:Durian", "smells", "no_such_package", "durians")})
    monkeypatch.setattr("rag_lab.cli.module_kinds.MODULE_KINDS", (ModuleKind("fruit", kind, "(hand)", "bowl.name"),))
    modules.modules("fruit")
    told = sentence(capsys.readouterr().out)
    assert "! durian smells. The package no_such_package is not installed; run: pip install 'durians'." in told
    assert "base: {bowl: {name: my_fruit:MyFruit}}" in told
    assert "rag-lab new module" not in told


@pytest.mark.parametrize("columns", [80, 120])
def test_it_fits_the_terminal(told, columns):
    lines = told(columns=columns).stdout.splitlines()
    assert max(map(len, lines)) <= columns
    assert all(line == line.rstrip() for line in lines)


def test_one_kind_in_detail_teaches_how_to_write_and_name_one(told):
    out = told("reranker").stdout
    assert "takes and returns        (question, passages) -> scores" in out
    assert "named by                 rerank.name\n" in out
    assert "keeps the order of the merge" in out
    assert "good-pack 1.2: good_pack:Shortest" in out
    assert "my_reranker:MyReranker?parameter=value" in out
    assert "factors: {rerank.name: [none, my_reranker:MyReranker]}" in out
    assert "rag-lab new module reranker my_reranker" in out
    assert "LangChain" not in out


def test_the_metrics_in_detail_are_those_that_can_be_named(told):
    out = told("metric").stdout
    assert set(metric_names()) <= set(out.split())
    assert "! rude" in out
    assert "metrics: [retrieval.ndcg@10, my_metric:MyMetric]" in out


def test_a_kind_that_there_is_not_is_one_sentence(rag_lab):
    status, _, err = rag_lab("modules", "rerankr")
    assert status == 2 and "did you mean 'reranker'?" in err
