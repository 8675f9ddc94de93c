import json

import pytest

from rag_lab.errors import ModelError
from rag_lab.models.remote import ollama_server as module
from rag_lab.models.remote.ollama_server import OllamaServer
from rag_lab.testing import Scripted, ollama_server


@pytest.fixture(autouse=True)
def _as_in_another_process():
    module._digest.cache_clear()


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("gpu-box", "http://gpu-box:11434"),
        ("gpu-box:80", "http://gpu-box:80"),
        ("http://gpu-box:11434/", "http://gpu-box:11434"),
        ("https://models.example/ollama/", "https://models.example/ollama"),
        ("http://[::1]:11434", "http://[::1]:11434"),
    ],
)
def test_the_address_is_written_as_ollama_takes_it(given, address, monkeypatch):
    assert OllamaServer(given).address == address
    monkeypatch.setenv("OLLAMA_HOST", given)
    assert OllamaServer().address == address


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("http://127.0.0.1:11434/v1", "OpenAI interface"),
        ("http://me:hunter2secret@host", "user"),
        ("http://", "address"),
    ],
)
def test_an_address_that_cannot_be_is_refused_without_repeating_it(given, said):
    with pytest.raises(ModelError, match=said) as caught:
        OllamaServer(given)
    assert "hunter2secret" not in str(caught.value)


def test_models_and_what_they_can():
    with ollama_server(models=["b", "a:7b"], context_tokens=512, capabilities=["vision"]) as server:
        models = OllamaServer(server.url).models()
        described = OllamaServer(server.url).described("b")
    assert [(model.name, model.size_bytes, model.parameters, model.quantization) for model in models] == [
        ("a:7b", 1_234_567, "1.2M", "Q4_K_M"),
        ("b", 1_234_567, "1.2M", "Q4_K_M"),
    ]
    assert (described.context_tokens, described.capabilities) == (512, ("vision",))


def test_the_digest_is_that_of_the_name_and_of_latest_where_no_tag_is_given():
    with ollama_server(models=["a:latest", "a:7b"]) as server:
        found = OllamaServer(server.url)
        assert found.digest("a") == found.digest("a:latest") != found.digest("a:7b")
        with pytest.raises(ModelError, match="rag-lab models pull ollama:b"):
            found.digest("b")


def test_the_last_digest_is_known_while_the_server_is_off(tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    with ollama_server() as server:
        digest = OllamaServer(server.url).digest("tiny")
    module._digest.cache_clear()
    assert OllamaServer(server.url).digest("tiny") == digest
    with pytest.raises(ModelError, match="No Ollama answers"):
        OllamaServer(server.url).digest("other")


def test_a_digest_that_another_process_writes_while_the_server_is_asked_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path))
    asked = OllamaServer.pulled

    def slow(server, name):
        (tmp_path / "ollama_digests.json").write_text('{"elsewhere tiny": "abc"}')
        return asked(server, name)

    monkeypatch.setattr(OllamaServer, "pulled", slow)
    with ollama_server() as server:
        digest = OllamaServer(server.url).digest("tiny")
    kept = json.loads((tmp_path / "ollama_digests.json").read_text())
    assert kept == {"elsewhere tiny": "abc", f"{server.url} tiny": digest}


def test_a_pull_tells_its_bytes_and_the_model_is_there():
    with ollama_server(models=[]) as server:
        found = OllamaServer(server.url)
        assert "rag-lab models pull ollama:tiny" in found.problem("tiny")
        steps = list(found.pull("tiny"))
        assert found.problem("tiny") == ""
    assert steps[0] == ("pulling manifest", 0, 0)
    assert steps[-2][1:] == (1_234_567, 1_234_567)
    assert steps[-1] == ("success", 0, 0)


def test_a_pull_that_fails_says_why():
    raw = '{"status": "pulling manifest"}\n{"error": "pull model manifest: file does not exist"}\n'
    with ollama_server() as server:
        server.seen = Scripted(raw=raw)
        with pytest.raises(ModelError, match="file does not exist"):
            list(OllamaServer(server.url).pull("none"))


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (Scripted(status=500), "status 500"),
        (Scripted(raw="<html><title>Login"), "a web page"),
        (Scripted(raw="[]"), "no description"),
        (Scripted(delay_s=1), "within 0.2 s"),
    ],
)
def test_a_check_ends_in_time_with_one_sentence(seen, said):
    with ollama_server() as server:
        server.seen = seen
        problem = OllamaServer(server.url).problem("tiny", within_s=0.2 if seen.delay_s else 10)
    assert said in problem
    assert "\n" not in problem


def test_a_check_of_a_server_that_is_not_there():
    with ollama_server() as server:
        pass
    assert OllamaServer(server.url).problem() == (
        f"No Ollama answers at {server.url}; start it with `ollama serve`, or name its address in OLLAMA_HOST."
    )
