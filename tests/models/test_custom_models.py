"""Custom models come in by name and as objects; what they do wrong costs the questions concerned."""

import json
import re
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel

from rag_lab._kit import registry
from rag_lab._kit.registry import modules_from
from rag_lab.errors import ModelError
from rag_lab.experiment.stage_identities import model_problem, price_of
from rag_lab.models import shared
from rag_lab.models.custom_models import CustomModelError
from rag_lab.models.prices import price
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.models.providers import CHAT_MODELS, CROSS_ENCODERS, EMBEDDERS
from rag_lab.testing import ChatModelContract, EmbedderContract

MINE = """
import os, time
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from rag_lab.models.protocols import ChatReply

@dataclass(frozen=True)
class Chat:
    name: str = "echo"
    shout: bool = False
    version: ClassVar[int] = 1
    timeout_s: ClassVar[float] = 0.5

    def generate(self, requests):
        said = [request.messages[-1].content for request in requests]
        if "RAISE" in said:
            raise ValueError("no reply to this")
        if "HANG" in said:
            time.sleep(5)
        if "FEW" in said:
            return said[:-1]
        if "TYPE" in said:
            return [7 if each == "TYPE" else each for each in said]
        if "NAN" in said:
            return [ChatReply("x", cost_usd=float("nan")) for each in said]
        if "NONE" in said:
            return None
        return [each.upper() if self.shout else f"You said: {each}" for each in said]

@dataclass(frozen=True)
class Embedder:
    name: str = ""
    dim: int = 3
    version: ClassVar[int] = 1
    timeout_s: ClassVar[float] = 0.5

    def embed_documents(self, texts):
        if "RAISE" in texts:
            raise ValueError("no vector for this")
        if "HANG" in texts:
            time.sleep(5)
        if "FEW" in texts:
            return [[1.0, 2.0, 3.0]] * (len(texts) - 1)
        if "NAN" in texts:
            return [[float("nan")] * self.dim for text in texts]
        if "RAGGED" in texts:
            return [[1.0] * (index + 1) for index in range(len(texts) + 1)]
        if "LONGER" in texts:
            return [[1.0] * (self.dim + 1) for text in texts]
        if "DRAWN" in texts:
            return np.random.default_rng().normal(size=(len(texts), self.dim))
        return [[len(text) + index for index in range(self.dim)] for text in texts]

    embed_queries = embed_documents

@dataclass(frozen=True)
class Letters:
    name: str = ""
    version: ClassVar[int] = 1

    def embed_documents(self, texts):
        return [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]

    embed_queries = embed_documents

@dataclass(frozen=True)
class Scorer:
    name: str = ""
    version: ClassVar[int] = 1

    def score(self, pairs):
        if ("q", "FEW") in pairs:
            return []
        if ("q", "NAN") in pairs:
            return [float("nan")] * len(pairs)
        return [float(len(passage)) for question, passage in pairs]

def made(name, shout=False):
    return Chat(name, shout)

def fake_chat(reply="Paris"):
    from langchain_core.language_models import FakeListChatModel
    return FakeListChatModel(responses=[reply])

def echo():
    from langchain_core.language_models import SimpleChatModel
    class Echo(SimpleChatModel):
        @property
        def _llm_type(self):
            return "echo"
        def _call(self, messages, stop=None, run_manager=None, **kwargs):
            return f"You said: {messages[-1].content}"
    return Echo()

def fake_embeddings():
    from langchain_core.embeddings import DeterministicFakeEmbedding
    return DeterministicFakeEmbedding(size=5)

def fake_scorer():
    from langchain_core.cross_encoders import BaseCrossEncoder
    class Lengths(BaseCrossEncoder):
        def score(self, text_pairs):
            return [len(passage) for question, passage in text_pairs]
    return Lengths()

def nothing():
    return 7

class Loose:
    def generate(self, requests):
        return []

@dataclass(frozen=True)
class Silent:
    version: ClassVar[int] = 1
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    with modules_from(tmp_path):
        yield tmp_path


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with entry points, installed as pip leaves it."""
    site = tmp_path / "site"
    (site / "quokka").mkdir(parents=True)
    (site / "quokka/__init__.py").write_text(MINE)
    info = site / "quokka-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: quokka\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[rag_lab.chat_models]\nquokka = quokka:Chat\nmaker = quokka:made\nbroken = quokka:Gone\n"
        "[rag_lab.embedders]\nquokka = quokka:Embedder\n"
        "letters = quokka:Letters\n[rag_lab.cross_encoders]\nquokka = quokka:Scorer\n"
    )
    monkeypatch.syspath_prepend(site)
    registry.installed.cache_clear()
    registry._all_installed.cache_clear()
    yield
    sys.modules.pop("quokka", None)
    registry.installed.cache_clear()
    registry._all_installed.cache_clear()


class TestCustomChatModels(ChatModelContract):
    @pytest.fixture(autouse=True, params=["mine:Chat", "quokka:tiny-7b", "maker:tiny:7b", "langchain:mine:echo"])
    def _each(self, request, folder, package):
        made = shared.chat_model(request.param)
        self.make = lambda: made


class TestCustomEmbedders(EmbedderContract):
    @pytest.fixture(autouse=True, params=["mine:Letters", "letters:any", "langchain:mine:fake_embeddings"])
    def _each(self, request, folder, package):
        made = shared.embedder(request.param)
        self.make = lambda: made


def asked(model, *texts):
    """The replies' texts."""
    return [reply.text for reply in model.generate(ask(*texts))]


def ask(*texts):
    return [ChatRequest((Message("user", text),), max_tokens=16) for text in texts]


CHATS = ["mine:Chat", "quokka:tiny-7b", "maker:tiny:7b"]


@pytest.mark.parametrize("name", CHATS)
def test_a_custom_chat_model_is_shared_by_name_and_parameters(folder, package, name):
    model = shared.chat_model(name)
    assert model is shared.chat_model(name)
    assert asked(model, "one", "two") == ["You said: one", "You said: two"]
    assert asked(shared.chat_model(f"{name}?shout=true"), "one") == ["ONE"]
    assert shared.chat_model(f"{name}?shout=true").identity() != model.identity()
    assert shared.spec_of(model) == name
    assert price_of(name) == "free"
    assert model_problem("generation", name) == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("RAISE", "raised ValueError: no reply to this"),
        ("HANG", r"did not return within 0\.5 s"),
        ("FEW", "returned 0 replies for 1 requests"),
        ("TYPE", "returned int where a ChatReply or a text is due"),
        ("NAN", "nan, which is no number"),
        ("NONE", "returned NoneType where a list of replies is due"),
    ],
)
def test_what_a_chat_model_does_wrong_costs_that_request_alone(folder, text, reason):
    replies = shared.chat_model("mine:Chat").generate(ask("one", text, "two"))
    assert [(reply.text, bool(reply.error)) for reply in replies] == [
        ("You said: one", False),
        ("", True),
        ("You said: two", False),
    ]
    assert replies[1].transient and re.search(reason, replies[1].error)


@pytest.mark.parametrize("name", ["mine:Embedder", "quokka:any", "langchain:mine:fake_embeddings"])
def test_an_embedder_that_is_custom_gives_unit_vectors(folder, package, name):
    rows = shared.embedder(name).embed_documents(["a", "bb"])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert model_problem("embedding", name) == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("RAISE", "raised ValueError: no vector for this"),
        ("HANG", r"did not return within 0\.5 s"),
        ("FEW", r"shape \(1, 3\) for 2 texts"),
        ("NAN", "with NaN or infinity"),
        ("RAGGED", "not vectors of one length"),
        ("LONGER", "vectors of 4 numbers, and of 3 before"),
    ],
)
def test_what_an_embedder_does_wrong_is_a_reason(folder, text, reason):
    model = shared.embedder("mine:Embedder")
    model.embed_documents(["fine"])
    with pytest.raises(CustomModelError, match=reason):
        model.embed_documents(["fine", text])
    assert len(model.embed_documents(["fine"])) == 1


def test_an_embedder_whose_second_run_differs_is_refused(folder):
    with pytest.raises(Exception, match=r"says that it is deterministic, and its second run differs"):
        shared.embedder("mine:Embedder?dim=9").embed_documents(["DRAWN"])


@pytest.mark.parametrize("name", ["mine:Scorer", "quokka:any", "langchain:mine:fake_scorer"])
def test_a_cross_encoder_that_is_custom_scores_in_order(folder, package, name):
    scorer = shared.scorer("cross_encoder", name)
    assert scorer.score([("q", "bb"), ("q", "a")]) == [2.0, 1.0]
    assert scorer.score([]) == []
    assert model_problem("cross_encoder", name) == ""


@pytest.mark.parametrize(("text", "reason"), [("FEW", "returned 0 numbers where 1 are due"), ("NAN", "nan")])
def test_what_a_scorer_does_wrong_is_a_reason(folder, text, reason):
    with pytest.raises(CustomModelError, match=reason):
        shared.scorer("likelihood", "mine:Scorer").score([("q", text)])


def test_a_chat_model_of_langchain(folder):
    model = shared.chat_model("langchain:mine:fake_chat")
    assert asked(model, "a", "b") == ["Paris", "Paris"]
    identity = json.dumps(model.identity())
    assert "FakeListChatModel" in identity
    assert "Paris" in identity
    assert shared.chat_model("langchain:mine:fake_chat?reply=Rome").generate(ask("a"))[0].text == "Rome"
    assert price_of("langchain:mine:fake_chat") == "free"


def test_an_edited_file_is_another_model(folder):
    before = shared.chat_model("mine:Chat")
    (folder / "mine.py").write_text(MINE.replace("You said", "I heard"))
    after = shared.chat_model("mine:Chat")
    assert before.identity() != after.identity()
    assert asked(after, "one") == ["I heard: one"]


@dataclass(frozen=True)
class Polite:
    word: str = "please"
    version: ClassVar[int] = 1

    def generate(self, requests):
        return [ChatReply(f"{self.word} {request.messages[-1].content}") for request in requests]


class Lengths(BaseCrossEncoder):
    def score(self, text_pairs):
        return [len(passage) for _, passage in text_pairs]


def test_objects_stand_wherever_names_do():
    polite = Polite("kindly")
    assert asked(shared.chat_model(polite), "go") == ["kindly go"]
    assert shared.chat_model(polite) is shared.chat_model(polite)
    assert shared.chat_model(polite).identity() != shared.chat_model(Polite()).identity()
    assert shared.chat_model(Polite("kindly")).identity() == shared.chat_model(polite).identity()
    assert shared.spec_of(shared.chat_model(polite)) == ""
    assert asked(shared.chat_model(FakeListChatModel(responses=["x"])), "go") == ["x"]
    assert shared.scorer("cross_encoder", Lengths()).score([("q", "abc")]) == [3.0]
    small, large = (shared.embedder(DeterministicFakeEmbedding(size=size)) for size in (4, 8))
    assert small.embed_queries(["x"]).shape == (1, 4)
    assert small.identity() != large.identity()


def test_a_key_of_langchains_model_is_in_no_identity(monkeypatch):
    from langchain_openai import ChatOpenAI

    key = "sk-hunter2hunter2hunter2"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    made = ChatOpenAI(model="gpt-4o", api_key=key, default_headers={"X-Auth": key, "X-Team": "press"})
    model = shared.chat_model(made)
    text = json.dumps(model.identity())
    assert key not in f"{text}{model!r}"
    assert "press" in text
    assert model.priced
    assert price(model.provider, model.name).cost_usd(1000, 1000) > 0


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (CHAT_MODELS, "mine:Gone", "'mine' has no 'Gone'"),
        (CHAT_MODELS, "mine:Loose", "must be a frozen dataclass"),
        (CHAT_MODELS, "mine:Silent", "needs a method generate"),
        (EMBEDDERS, "mine:Chat", "needs a method embed_documents"),
        (CHAT_MODELS, "mine:Chat?shuot=true", "did you mean 'shout'"),
        (CHAT_MODELS, "mine:Chat?shout=maybe", "shout: must be a valid boolean"),
        (CHAT_MODELS, "mine:Chat?api_key=x", "must hold no secret"),
        (CHAT_MODELS, "langchain:mine:nothing", "returns int, which is none of LangChain's models"),
        (CHAT_MODELS, "langchain:mine:fake_embeddings", "is a DeterministicFakeEmbedding where LangChain's BaseChat"),
        (CROSS_ENCODERS, "langchain:mine:fake_chat", "is a FakeListChatModel where LangChain's BaseCrossEncoder"),
        (CHAT_MODELS, "langchain:mine:fake_chat?size=1", "unexpected keyword argument 'size'"),
        (
            CHAT_MODELS,
            "nowhere_at_all:Chat",
            "Unknown chat model provider 'nowhere_at_all'.*named module:Class, with its file in",
        ),
        (CHAT_MODELS, "broken:tiny", "'broken' does not load"),
        (CHAT_MODELS, "maker:tiny?size=1", "unexpected keyword argument 'size'"),
        (CHAT_MODELS, "mine", "A model is named provider:name"),
    ],
)
def test_a_name_that_leads_to_no_model_is_one_sentence(folder, package, kind, name, said):
    with pytest.raises(ModelError, match=said) as caught:
        shared.model_of(kind, name)
    sentence, _, shape = str(caught.value).partition("\n")
    assert sentence and ("def generate(self, requests):" in shape) == (name == "mine:Loose")


def test_a_package_that_a_file_needs_is_named_before_anything_starts(folder):
    (folder / "needy.py").write_text("import no_such_package")
    problem = model_problem("generation", "needy:Chat")
    assert problem.startswith("models.generation (needy:Chat): ")
    assert "No module named 'no_such_package'" in problem
