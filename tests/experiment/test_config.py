import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from small_dataset import write_dataset

import rag_lab
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError
from rag_lab.experiment.config import PACKAGED, PAIRS_RULE, ExperimentConfig, checkout_file, read_experiment
from rag_lab.experiment.design import ExperimentError
from rag_lab.experiment.plan import plan
from rag_lab.runs.run_folder import RunFolder

GOOD = {
    "name": "reranker",
    "question": "Does it help?",
    "dataset": "plant_docs",
    "factors": {"rerank.name": ["none", "cross_encoder"]},
    "design": "grid",
    "metrics": ["retrieval.ndcg@10"],
}


def write(path, **changes):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(GOOD | changes))
    return path


def test_a_file_is_read_with_its_defaults(tmp_path):
    config = ExperimentConfig.load(write(tmp_path / "e.yaml"))
    assert config.repeats == 1
    assert config.judge is None
    assert config.limits.questions is None
    assert config.base == PipelineConfig()


def test_what_is_written_is_read_back(tmp_path):
    config = ExperimentConfig.load(write(tmp_path / "e.yaml", base={"rerank": {"final_k": 3}}, limits={"answers": 4}))
    (tmp_path / "again.yaml").write_text(config.to_yaml())
    assert ExperimentConfig.load(tmp_path / "again.yaml") == config


def test_the_base_is_a_file_beside_the_experiment_a_preset_or_the_keys(tmp_path):
    write(tmp_path / "a" / "e.yaml", base="mine/small.yaml")
    (tmp_path / "a" / "mine").mkdir()
    (tmp_path / "a" / "mine" / "small.yaml").write_text("rerank: {final_k: 2}")
    assert ExperimentConfig.load(tmp_path / "a" / "e.yaml").base.rerank.final_k == 2

    assert ExperimentConfig.load(write(tmp_path / "b.yaml", base="epistemon")).base.retrieval.mode == "rrf"
    assert ExperimentConfig.load(write(tmp_path / "c.yaml", base={"seed": 4})).base.seed == 4
    dotted = ExperimentConfig.load(write(tmp_path / "d.yaml", base={"rerank": {"final_k": 2}, "rerank.name": "none"}))
    assert (dotted.base.rerank.final_k, dotted.base.rerank.name) == (2, "none")


def test_everything_that_is_wrong_is_named_at_once(tmp_path):
    path = write(
        tmp_path / "e.yaml",
        name="../evil",
        design="latin",
        repeats=0,
        limit={"questions": 3},
        limits={"question": 3},
        base={"rerank": {"nmae": "none"}},
        factors={"rerank.name": []},
    )
    with pytest.raises(ExperimentError) as error:
        ExperimentConfig.load(path)
    text = "\n".join(error.value.problems)
    for word in ("../evil", "latin", "repeats", "'limit'", "limits.question", "rerank.nmae", "at least one value"):
        assert word in text
    assert len(error.value.problems) == 7


def test_what_is_right_in_a_faulty_file_is_still_read(tmp_path):
    draft = read_experiment(write(tmp_path / "e.yaml", design="latin", metrics=["foo"]))
    assert draft.broken == {"design"}
    assert draft.config.metrics == ["foo"]


@pytest.mark.parametrize("key", ["name", "question", "dataset"])
def test_a_missing_key_is_named(tmp_path, key):
    path = tmp_path / "e.yaml"
    path.write_text(yaml.safe_dump({name: value for name, value in GOOD.items() if name != key}))
    with pytest.raises(ExperimentError, match=f"{key}: missing"):
        ExperimentConfig.load(path)


def test_a_preset_by_its_file_is_found_from_anywhere_and_one_beside_the_experiment_comes_first(tmp_path, monkeypatch):
    path = write(tmp_path / "e.yaml", base="presets/homer.yaml")
    monkeypatch.chdir(tmp_path)
    assert ExperimentConfig.load("e.yaml").base == PipelineConfig.load(checkout_file("experiments/presets/homer.yaml"))
    (tmp_path / "presets").mkdir()
    (tmp_path / "presets/homer.yaml").write_text("seed: 7\n")
    assert ExperimentConfig.load(path).base == PipelineConfig(seed=7)


def test_a_file_that_is_nowhere_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(ExperimentError) as caught:
        ExperimentConfig.load(write(tmp_path / "e.yaml", base="presets/none.yaml"))
    assert str(tmp_path / "presets") in str(caught.value)
    assert str(checkout_file("experiments/presets")) in str(caught.value)


@pytest.mark.parametrize(
    ("base", "said"), [("asistant", "did you mean 'assistant'"), ("no.yaml", "no.yaml"), (3, "got 3")]
)
def test_a_base_that_is_not_there_is_named(tmp_path, base, said):
    with pytest.raises(ExperimentError, match=said):
        ExperimentConfig.load(write(tmp_path / "e.yaml", base=base))


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match="Cannot read"):
        ExperimentConfig.load(tmp_path / "none.yaml")


def test_the_assistant_says_every_key_so_that_it_teaches_and_names_each_default_that_it_leaves():
    text = checkout_file("experiments/presets/assistant.yaml").read_text()
    config, default = PipelineConfig.parse(yaml.safe_load(text)), PipelineConfig()
    assert yaml.safe_load(text).keys() == default.model_dump().keys()
    for section, values in default.model_dump().items():
        assert not isinstance(values, dict) or yaml.safe_load(text)[section].keys() == values.keys()
    named = re.findall(r"^  (\w+): (\S+) +# default (\S+?)[,;:]?(?: |$)", text, re.MULTILINE)
    told = {(key, str(yaml.safe_load(here)), str(yaml.safe_load(left))) for key, here, left in named}
    before = default.flat()
    differs = {(key.rpartition(".")[2], str(value), str(before[key])) for key, value in config.differing().items()}
    assert told == differs


def listed(path, variants, **changes):
    return write(path, **({"design": "list", "factors": {}, "variants": variants} | changes))


def test_variants_are_presets_files_and_changes_of_the_base(tmp_path):
    (tmp_path / "small.yaml").write_text("rerank: {final_k: 2}")
    variants = {"a": "assistant", "b": "small.yaml", "c": {"retrieval.mode": "rrf"}}
    config = ExperimentConfig.load(listed(tmp_path / "e.yaml", variants, base={"seed": 4}))
    assert config.variants["a"] == PipelineConfig.load(checkout_file("experiments/presets/assistant.yaml"))
    assert config.variants["b"].rerank.final_k == 2
    assert config.variants["c"] == PipelineConfig().override({"seed": 4, "retrieval.mode": "rrf"})
    (tmp_path / "again.yaml").write_text(config.to_yaml())
    assert ExperimentConfig.load(tmp_path / "again.yaml") == config


@pytest.mark.parametrize(
    ("variants", "changes", "said"),
    [
        ({"a": "asistant", "b": {"retrieval.mood": 1}}, {}, "variants.a: .*did you mean 'assistant'"),
        ({"a": "assistant", "b": {"retrieval.mood": 1}}, {}, "variants.b: .*did you mean 'retrieval.mode'"),
        ({"a": "no.yaml"}, {}, "variants.a: .*no.yaml"),
        ({"../a": "assistant"}, {}, "variants: .*not ../a"),
        ({}, {}, "design: list runs"),
        ({"a": "assistant"}, {"factors": GOOD["factors"]}, "takes no factors"),
        ({"a": "assistant"}, {"design": "grid"}, "variants: run by design list or racing, got grid"),
        (["assistant"], {}, "variants"),
    ],
)
def test_a_faulty_list_is_named(tmp_path, variants, changes, said):
    with pytest.raises(ExperimentError, match=said):
        ExperimentConfig.load(listed(tmp_path / "e.yaml", variants, **changes))


@pytest.mark.parametrize("pairs", [7, "some", [], ["a", "b"], [["a"]], [["a", "b", "c"]], [["a", 1]], {"a": "b"}])
def test_pairs_are_a_rule_or_pairs_of_names(pairs):
    (problem,) = read_experiment(GOOD | {"pairs": pairs}).problems
    assert problem.startswith(f"pairs: {PAIRS_RULE}")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pairs": "all"}, "pairs: names variants of the design list, got the design grid; take it out."),
        ({"pairs": [["a", "d"]]}, "pairs: Unknown variant 'd'"),
        ({"pairs": [["b", "b"]]}, "pairs: b is paired with itself; name two variants."),
        ({"pairs": [["a", "b"], ["c", "a"], ["b", "a"]]}, "pairs: b and a are named twice; name each pair once."),
    ],
)
def test_a_wrong_pair_is_one_sentence(changes, said):
    of_list = {"design": "list", "factors": {}, "variants": {name: {} for name in "abc"}}
    (problem,) = read_experiment(GOOD | ({} if changes["pairs"] == "all" else of_list) | changes).problems
    assert problem.startswith(said)


@pytest.mark.parametrize("path", sorted(checkout_file("experiments").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_experiment_is_one(path):
    assert ExperimentConfig.load(path)


def test_the_default_searches_words_and_meanings_and_asks_no_chat_model():
    default = PipelineConfig()
    assert (default.retrieval.mode, default.answer.name) == ("hybrid", "extract")
    assert not default.answer.asks_model and not default.query.understands
    assert (default.query.rewrite, default.query.hyde, default.rerank.name) == ("none", "none", "none")


def test_the_demo_is_varied_around_the_same_pipeline_whatever_the_defaults_are():
    demo = plan(checkout_file("experiments/decisive.yaml")).variants
    base = {"answer.context_tokens": 450, "answer.max_tokens": 60, "rerank.input_limit": 20, "rerank.final_k": 3}
    base |= {"models.likelihood": "transformers:smollm2?passage_tokens=64", "query.hyde_max_tokens": 32}
    off = {"query.rewrite": "none", "query.hyde": "none", "answer.name": "extract", "retrieval.mode": "dense"}
    flat = demo[0].config.flat()
    assert {key: flat[key] for key in base | off} == base | off
    assert len(demo) == 7
    laptop = PipelineConfig.load(checkout_file("experiments/presets/laptop.yaml")).flat()
    assert (laptop["query.rewrite"], laptop["query.hyde"], laptop["retrieval.mode"]) == ("llm", "classified", "dense")


ROOT = Path(rag_lab.__file__).parents[1]
MODULE = """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Shortest:
    keep: int = 4
    version: ClassVar[int] = 1

    def __call__(self, question, passages):
        return [-len(passage) for passage in passages]
"""
SWEEP = """
import sys, rag_lab
assert "site" in rag_lab.__file__, rag_lab.__file__
off = {"query.rewrite": "none", "query.hyde": "none", "rerank.name": "none", "answer.name": "none"}
base = rag_lab.PipelineConfig().override(off)
rag_lab.sweep({
    "name": "own", "question": "Does it pay?", "dataset": sys.argv[1], "base": base.model_dump(),
    "factors": {"rerank.name": ["none", "shortest:Shortest?keep=2"]},
}, sys.argv[2], progress=False)
"""


def files(place):
    """The content of a file, or of all files of a folder, by name."""
    return {path.name: path.read_bytes() for path in (sorted(place.iterdir()) if place.is_dir() else [place])}


@pytest.mark.parametrize("name", PACKAGED)
def test_what_people_edit_and_what_ships_are_equal(name):
    beside, shipped = files(ROOT / name), files(PACKAGED[name])
    assert list(beside.values()) == list(shipped.values()), f"copy {name} to {PACKAGED[name]}"


@pytest.mark.slow
def test_an_installed_package_sweeps_a_mapping_with_a_module_beside_it(tmp_path):
    shutil.copytree(ROOT / "rag_lab", tmp_path / "site/rag_lab", ignore=shutil.ignore_patterns("__pycache__"))
    work = tmp_path / "work"
    work.mkdir()
    (work / "shortest.py").write_text(MODULE)
    command = [sys.executable, "-c", SWEEP, str(write_dataset(tmp_path)), str(tmp_path / "run")]
    ended = subprocess.run(
        command,
        cwd=work,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    manifest = RunFolder.open(tmp_path / "run").manifest()
    assert [state["status"] for state in manifest["variants"].values()] == ["ok", "ok"], manifest["variants"]


def test_a_mapping_a_config_and_a_file_are_the_same_plan(tmp_path):
    data = {
        "name": "n",
        "question": "q",
        "dataset": str(write_dataset(tmp_path)),
        "factors": {"rerank.final_k": [5, 2]},
    }
    config = ExperimentConfig(**data)
    (tmp_path / "e.yaml").write_text(config.to_yaml())
    by_file = plan(tmp_path / "e.yaml")
    for given in (data, config):
        checked = plan(given)
        assert (checked.variants, checked.questions) == (by_file.variants, by_file.questions)
        assert checked.folder == Path.cwd()
    assert by_file.folder == tmp_path
    with pytest.raises(ConfigError, match="The experiment: dataset: Unknown dataset"):
        plan(data | {"dataset": "nowhere"})


@dataclass(frozen=True)
class Mine:
    """A module that no kernel can import."""


def test_what_lives_in_memory_alone_is_refused_in_a_sentence():
    data = {"name": "n", "question": "q", "dataset": "d", "factors": {"rerank.name": ["none", Mine()]}}
    with pytest.raises(ConfigError, match=r"cannot import: put its class into a file in this folder and name it"):
        plan(data)


@pytest.mark.parametrize(
    "given",
    [
        {"factors": {"rerank.name": ["none", "__main__:Mine"]}},
        {"base": {"corpus": {"readers": {".md": "__main__:Mine"}}}},
        {"base": {"models": {"embedding": "__main__:Mine"}}},
        {"base": {"store": {"name": "langchain:__main__:Mine"}}},
        {"metrics": ["__main__:Mine"]},
        {"judge": "__main__:Mine", "metrics": ["ragas.faithfulness"]},
        {"design": "__main__:Mine"},
    ],
)
def test_a_name_that_only_this_process_knows_is_refused_in_a_sentence(tmp_path, given):
    (tmp_path / "e.yaml").write_text(yaml.safe_dump({"name": "n", "question": "q", "dataset": "d"} | given))
    with pytest.raises(ExperimentError) as error:
        plan(tmp_path / "e.yaml")
    (said,) = {problem for problem in error.value.problems if "__main__" in problem}
    assert "cannot import it: put it into a file beside the experiment and name it, as in 'my_file:Mine'" in said
