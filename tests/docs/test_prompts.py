"""The page on prompts: its example is asked by as it stands, and its table has every place with its variables."""

import re
from pathlib import Path

import yaml

from rag_lab.experiment.config import ExperimentConfig
from rag_lab.stages.chat_template import PLACES

PAGE = (Path(__file__).parents[2] / "docs" / "prompts.md").read_text(encoding="utf-8")


def block(kind):
    return re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)[1]


def test_the_example_can_be_asked_by(tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_LAB_MODULES", str(tmp_path))
    (tmp_path / "sentence.j2").write_text(block("jinja"))
    (tmp_path / "terse.yaml").write_text(block("yaml"))
    experiment = ExperimentConfig.load(tmp_path / "terse.yaml")
    assert experiment.factors == yaml.safe_load(block("yaml"))["factors"]
    (_, file) = experiment.factors["prompts.hyde"]
    asked = PLACES["hyde"].read(file).messages({"question": "Why?", "query_class": "specific"})
    assert [message.role for message in asked] == ["system", "user"]
    assert asked[1].content.endswith("It holds a number and its unit.\nQuestion: Why?")


def test_the_table_names_every_place_and_all_that_it_fills_in():
    rows = re.findall(r"\| `prompts\.(\w+)` \|[^|]*\| (.*) \|", PAGE)
    told = {name: set(re.findall(r"`(\w+)`(?! where)", variables)) for name, variables in rows}
    assert told == {name: set(place.example) for name, place in PLACES.items()}
