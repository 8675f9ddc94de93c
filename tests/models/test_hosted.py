"""Models in processes of their own, as kernels see them; real processes, most with a model of next to no weights."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from import_traps import set_traps
from other_user import as_nobody, needs_root
from tiny_models import write_tiny_gguf

from rag_lab.errors import ModelError
from rag_lab.models import hosted, shared
from rag_lab.models.hosted import HOST_VARIABLE, model_host, model_processes
from rag_lab.models.local.llamacpp import LlamaCppChat
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.providers import CHAT_MODELS

pytestmark = pytest.mark.slow

REQUEST = ChatRequest((Message("user", "What is greased every month?"),), max_tokens=8)
OF_A_KERNEL = """
import json, sys
from rag_lab.models import shared
from rag_lab.models.protocols import ChatRequest, Message
model = shared.chat_model(sys.argv[1])
print("asks", flush=True)
for _ in range(int(sys.argv[2])):
    (reply,) = model.generate([ChatRequest((Message("user", "What is greased every month?"),), max_tokens=8)])
heavy = [name for name in ("torch", "transformers", "xllamacpp") if name in sys.modules]
print(json.dumps([reply.text, reply.error, heavy]))
"""


@pytest.fixture
def place(monkeypatch):
    """The folder where this process, as a kernel, meets those that hold models."""
    monkeypatch.setattr(shared, "_NAMED", {})
    monkeypatch.setattr(hosted, "PEAKS_MB", {})
    with model_host() as environment:
        monkeypatch.setenv(HOST_VARIABLE, environment[HOST_VARIABLE])
        yield Path(environment[HOST_VARIABLE])


@pytest.fixture
def tiny(tmp_path):
    return f"llamacpp:{write_tiny_gguf(tmp_path / 'tiny.gguf')}?context=256"


def alone(monkeypatch, spec, kind=shared.chat_model):
    """The same model in this process."""
    monkeypatch.setattr(shared, "_NAMED", {})
    monkeypatch.delenv(HOST_VARIABLE)
    return kind(spec)


def kernel(spec, n_calls):
    command = [sys.executable, "-c", OF_A_KERNEL, spec, str(n_calls)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_chat_model_is_the_same_elsewhere(place, tiny, monkeypatch):
    model = shared.chat_model(tiny)
    told = (model.identity(), model.context_tokens, model.constrains_json, model.concurrency, model.count_tokens("a b"))
    assert model_processes(place) == []  # what needs no weights starts nothing
    assert model.generate([]) == []
    assert model_processes(place) == []
    requests = [REQUEST, ChatRequest((Message("user", "x " * 300),)), ChatRequest(REQUEST.messages, max_tokens=3)]
    replies = model.generate(requests)
    (held,) = model_processes(place)
    assert held.model == tiny and held.device == "cpu" and held.memory_mb > 10
    assert replies[0].machine.load_s > 0 and sum(hosted.PEAKS_MB.values()) > 50
    here = alone(monkeypatch, tiny)
    assert told == (
        here.identity(),
        here.context_tokens,
        here.constrains_json,
        here.concurrency,
        here.count_tokens("a b"),
    )
    expected = here.generate(requests)
    assert [(one.text, one.error, one.tokens_in, one.tokens_out) for one in replies] == [
        (one.text, one.error, one.tokens_in, one.tokens_out) for one in expected
    ]
    assert replies[1].error.startswith("The prompt has")


def test_two_kernels_share_one_process_and_load_nothing(place, tiny):
    kernels = [kernel(tiny, 3) for _ in range(2)]
    found = [json.loads(one.communicate()[0].splitlines()[1]) for one in kernels]
    assert found[0] == found[1] == [found[0][0], "", []]
    assert len(model_processes(place)) == 1


def test_one_that_is_loaded_ahead_is_the_one_that_is_asked(place, tiny, tmp_path):
    model, remote = shared.chat_model(tiny), shared.chat_model("ollama:llama3.2@http://127.0.0.1:9")
    broken = f"llamacpp:{tmp_path / 'none.gguf'}"
    for folder, spec, made in (
        (place, tiny, model),
        (place, tiny, model),
        (place, "ollama:llama3.2", remote),
        ("", tiny, model),
        (place, broken, LlamaCppChat(broken.partition(":")[2])),  # said where it is asked
    ):
        hosted.load_ahead(str(folder), CHAT_MODELS, spec, made)
    (held,) = model_processes(place)
    model.generate([REQUEST])
    assert model_processes(place)[0].process == held.process and held.model == tiny


def test_a_second_process_for_a_model_that_is_held_ends_and_disturbs_nobody(place, tiny):
    shared.chat_model(tiny).generate([REQUEST])
    (held,) = model_processes(place)
    arguments = [str(place), held.name, CHAT_MODELS.name, tiny]
    command = [sys.executable, "-m", "rag_lab.models.model_process", *arguments]
    alone = {name: value for name, value in os.environ.items() if name != HOST_VARIABLE}
    second = subprocess.run(command, capture_output=True, text=True, env=alone)  # as of a kernel that was killed
    assert (second.returncode, second.stdout) == (0, "{}")
    assert [one.process for one in model_processes(place)] == [held.process]


def test_the_process_of_a_model_imports_nothing_from_the_working_folder(place, tiny, tmp_path, monkeypatch):
    sprung = set_traps(tmp_path / "foreign", monkeypatch)
    (reply,) = shared.chat_model(tiny).generate([REQUEST])
    assert (reply.error, sprung.exists()) == ("", False)


def test_a_kernel_that_is_killed_or_interrupted_disturbs_nobody(place, tiny):
    (first,) = shared.chat_model(tiny).generate([REQUEST])
    (held,) = model_processes(place)
    for sign in (signal.SIGKILL, signal.SIGINT):
        busy = kernel(tiny, 10_000)
        assert busy.stdout.readline() == "asks\n"
        busy.send_signal(sign)
        busy.communicate()
    (again,) = shared.chat_model(tiny).generate([REQUEST])
    assert again.text == first.text
    assert [one.process for one in model_processes(place)] == [held.process]


GARBAGE = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x00\x00\x00\x05hello",
    b"\x00\x00\x00\x02[]",
    b"\x00\x00\x00\x02{}",
    b'\x00\x00\x00\x0e{"n_parts": 0}',
    b"\x00\x01\x00\x00" + b"[" * 65_536,
    b"\xff\xff\xff\xff\x00\x00\x7f\xff\xff\xff\xff\xff",
]


def knock(folder, name, sent):
    """Connect to the process of a model as it does not expect it; the connection is returned open."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(str(folder / f"{name}.sock"))
    line.sendall(sent)
    return line


def test_garbage_and_silence_at_its_socket_disturb_no_call_and_keep_no_memory(place, tiny, monkeypatch):
    monkeypatch.setenv("RAG_LAB_MODEL_MEMORY_GB", "0.5")  # of which one process takes 0.4 at least
    (first,) = shared.chat_model(tiny).generate([REQUEST])
    (held,) = model_processes(place)
    for sent in GARBAGE:
        knock(place, held.name, sent).close()
    silent = [knock(place, held.name, sent) for sent in (b"", *GARBAGE)]
    (again,) = shared.chat_model(tiny).generate([REQUEST])
    assert (again.text, [one.process for one in model_processes(place)]) == (first.text, [held.process])
    assert "Traceback" not in (place / f"{held.name}.log").read_text()
    other = tiny.replace("context=256", "context=512")
    shared.chat_model(other).generate([REQUEST])  # the first ends, whoever is silent there
    assert [one.model for one in model_processes(place)] == [other]
    for line in silent:
        line.close()


@needs_root
def test_another_user_reaches_no_process_of_a_model(place, tiny):
    shared.chat_model(tiny).generate([REQUEST])
    (held,) = model_processes(place)
    assert as_nobody(lambda: knock(place, held.name, b"")).startswith("PermissionError")


def test_one_that_died_is_started_again(place, tiny):
    model = shared.chat_model(tiny)
    (first,) = model.generate([REQUEST])
    (held,) = model_processes(place)
    os.kill(held.process.pid, signal.SIGKILL)
    (again,) = model.generate([REQUEST])  # which meets a socket that nobody listens to, or a process that dies
    assert again.text == first.text
    (new,) = model_processes(place)
    assert new.process != held.process


def test_one_that_always_dies_is_one_sentence(place, tiny, monkeypatch, tmp_path):
    dies = tmp_path / "dies"
    dies.write_text("#!/bin/sh\nexit 1\n")
    dies.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(dies))
    with pytest.raises(ModelError, match=r"The process that holds llamacpp:.* died, and once more"):
        shared.chat_model(tiny).generate([REQUEST])


def test_what_a_model_cannot_do_is_the_same_sentence_elsewhere(place, tmp_path, monkeypatch):
    whole = write_tiny_gguf(tmp_path / "whole.gguf").read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(whole[: len(whole) // 2])
    said = []
    with pytest.raises(ModelError) as there:
        shared.chat_model(f"llamacpp:{path}").generate([REQUEST])
    said.append(str(there.value))
    with pytest.raises(ModelError) as here:
        alone(monkeypatch, f"llamacpp:{path}").generate([REQUEST])
    assert said == [str(here.value)]
    assert not list(place.glob("*.sock"))


def test_a_model_goes_where_another_needs_its_memory_and_comes_back(place, tiny, monkeypatch):
    monkeypatch.setenv("RAG_LAB_MODEL_MEMORY_GB", "0.5")  # of which one process takes 0.4 at least
    other = tiny.replace("context=256", "context=512")
    expected = [shared.chat_model(one).generate([REQUEST])[0].text for one in (tiny, other)]
    assert [one.model for one in model_processes(place)] == [other]
    both: dict[str, list[str]] = {tiny: [], other: []}

    def asks(spec):
        both[spec] += [shared.chat_model(spec).generate([REQUEST])[0].text for _ in range(3)]

    threads = [threading.Thread(target=asks, args=(spec,)) for spec in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [both[tiny], both[other]] == [[text] * 3 for text in expected]
    assert len(model_processes(place)) == 1


def test_what_holds_a_model_ends_with_the_sweep(tiny, monkeypatch):
    monkeypatch.setattr(shared, "_NAMED", {})
    with model_host() as environment:
        monkeypatch.setenv(HOST_VARIABLE, environment[HOST_VARIABLE])
        folder = Path(environment[HOST_VARIABLE])
        shared.chat_model(tiny).generate([REQUEST])
        (held,) = model_processes(folder)
    assert held.process.runs() is False
    with pytest.raises(ModelError, match="The sweep has ended"):
        shared.chat_model(tiny).generate([REQUEST])


SWEEP = """
import os, sys
from rag_lab.models.hosted import HOST_VARIABLE, model_processes, model_host
from rag_lab.models import shared
from rag_lab.models.protocols import ChatRequest, Message
from pathlib import Path
with model_host() as environment:
    os.environ.update(environment)
    shared.chat_model(sys.argv[1]).generate([ChatRequest((Message("user", "x"),), max_tokens=1)])
    (held,) = model_processes(Path(environment[HOST_VARIABLE]))
    print(environment[HOST_VARIABLE], held.process.pid, held.process.began, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_what_holds_a_model_ends_with_a_sweep_that_is_killed(tiny, monkeypatch):
    monkeypatch.delenv(HOST_VARIABLE, raising=False)
    done = subprocess.run([sys.executable, "-c", SWEEP, tiny], capture_output=True, text=True)
    folder, pid, _ = done.stdout.split()
    alive = threading.Event()
    while Path(f"/proc/{pid}").exists() and "model_process" in Path(f"/proc/{pid}/cmdline").read_text():
        alive.wait(0.05)
    assert not Path(folder).exists()


def test_a_scorer_is_the_same_elsewhere(place, tiny_cross_encoder, monkeypatch):
    spec = f"sentence_transformers:{tiny_cross_encoder}?max_tokens=32&device=cpu"
    pairs = [("how often is the filter changed ?", "monthly by maintenance"), ("who ?", "the press runs at 140 bar")]
    model = shared.scorer("cross_encoder", spec)
    scores, told = model.score(pairs), (model.most_tokens, model.pair_tokens(pairs), model.identity())
    assert model.score([]) == []
    here = alone(monkeypatch, spec, partial(shared.scorer, "cross_encoder"))
    assert scores == here.score(pairs)
    assert told == (here.most_tokens, here.pair_tokens(pairs), here.identity())


def test_a_scorer_shares_the_weights_of_the_chat_model(place, tiny_causal, monkeypatch):
    spec = f"transformers:{tiny_causal}"
    scorer, model = shared.scorer("likelihood", spec), shared.chat_model(spec)
    pairs = [("what pressure does it need ?", "the press runs at 140 bar")]
    request = ChatRequest((Message("user", "how often is the filter changed ?"),), max_tokens=6)
    scores, replies = scorer.score(pairs), model.generate([request])
    assert len(model_processes(place)) == 1
    here = alone(monkeypatch, spec, partial(shared.scorer, "likelihood"))
    assert scores == here.score(pairs)
    assert [one.text for one in replies] == [one.text for one in shared.chat_model(spec).generate([request])]


def test_packaged_models_give_the_same_vectors_and_replies_elsewhere(place, real_home, monkeypatch):
    texts = ["The ram guides are greased every five hundred hours.", "The filter is changed every month.", ""]
    embedder = shared.embedder("sentence_transformers:minilm")
    vectors = [embedder.embed_documents(texts), embedder.embed_queries(texts[:1]), embedder.embed_documents([])]
    replies = shared.chat_model("llamacpp:smollm2").generate([REQUEST])
    assert len(model_processes(place)) == 2
    here = alone(monkeypatch, "sentence_transformers:minilm", shared.embedder)
    expected = [here.embed_documents(texts), here.embed_queries(texts[:1]), here.embed_documents([])]
    for one, other in zip(vectors, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [one.text for one in replies] == [
        one.text for one in shared.chat_model("llamacpp:smollm2").generate([REQUEST])
    ]
