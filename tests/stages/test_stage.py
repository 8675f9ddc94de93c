from dataclasses import dataclass, field, replace

from rag_lab.stages.chat_template import ChatTemplate
from rag_lab.stages.stage import BuiltInStage


class Model:
    def identity(self):
        return {"name": "m"}


@dataclass(frozen=True)
class Weights:
    bm25: float = 1.0


@dataclass(frozen=True)
class Asking(BuiltInStage):
    model: Model
    weights: Weights = Weights()
    prompt: ChatTemplate | None = None
    cache: list[int] = field(default_factory=list, compare=False)

    PROMPTS = 7
    VERSION = 2
    name = "ask"


class AskingTwice(Asking):
    WORDS = 3


def test_an_identity_is_the_class_its_versions_and_every_field_that_can_change_a_result():
    stage = Asking(Model())
    found = {"stage": "Asking", "version": 2, "model": {"name": "m"}, "weights": {"bm25": 1.0}, "prompts": 7}
    assert stage.identity() == found
    assert AskingTwice(Model()).identity() == found | {"stage": "AskingTwice", "words": 3}
    assert replace(stage, cache=[1]).identity() == found
    assert replace(stage, weights=Weights(0.5)).identity() == found | {"weights": {"bm25": 0.5}}


def test_a_prompt_stands_in_place_of_the_version_of_what_is_built_in():
    prompt = ChatTemplate("mine", "{{ question }}")
    assert Asking(Model(), prompt=prompt).identity()["prompts"] == prompt.digest
