"""connectors.yaml, formatters, and following several sources of which one is down."""

import json
import re
import threading
from pathlib import Path

import pytest
from changing_source import Rows, connector, look, texts

from rag_lab.errors import ConfigError
from rag_lab.models.protocols import ChatReply
from rag_lab.sources import config, follow
from rag_lab.sources.config import Connector, read_connectors
from rag_lab.sources.ingestion import Ingestion
from rag_lab.sources.source import Entry

CONNECTOR = "connectors:\n- {name: a, kind: sql, %s}\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("colour: red", "Unknown key 'connectors.0.colour'"),
        ("template: '{% if %}'", "the template is not Jinja"),
        ("template: x, formatter: llamacpp:smollm2", "give one of them"),
        (
            "options: {url: 'postgresql://me:hunter2hunter2@host/db'}",
            "url may hold a secret; put it into the environment",
        ),
        ("options: {token: abcdefgh}", "token may hold a secret"),
        ("options: {headers: {Authorization: x}}", "headers.Authorization may hold a secret"),
    ],
)
def test_what_a_file_cannot_say_is_a_sentence_without_the_secret(tmp_path, line, said):
    (tmp_path / "c.yaml").write_text(CONNECTOR % line)
    with pytest.raises(ConfigError, match=said.replace("{", r"\{")) as error:
        read_connectors(tmp_path / "c.yaml")
    assert "hunter2" not in str(error.value)


def test_options_are_filled_in_from_the_environment_and_checked(tmp_path, monkeypatch):
    options = "options: {url: 'sqlite:///${NOTICES_DB}', query: q, key: id}"
    (tmp_path / "c.yaml").write_text(f"dataset: mine\n{CONNECTOR % options}")
    folder, (one,) = read_connectors(tmp_path / "c.yaml")
    with pytest.raises(ConfigError, match="a: url names the variable NOTICES_DB, which is not set"):
        one.open()
    monkeypatch.setenv("NOTICES_DB", "x.db")
    assert folder == tmp_path / "mine" and one.open().url == "sqlite:///x.db"
    with pytest.raises(ConfigError, match="Unknown parameter of the source 'plant'"):
        connector(options={"folder": "x"}).open()


def test_a_model_writes_documents_and_its_ids_are_checked(tmp_path, monkeypatch):
    class Writer:
        replies, cut = ["1", "1", "3", "stranger"], None

        def identity(self):
            return {"name": "writer"}

        def generate(self, requests):
            asked = json.loads(requests[0].messages[0].content.partition("\n\n")[2])
            items = [{"id": key, "text": f"of {key}"} for key in self.replies if key in {row["id"] for row in asked}]
            return [ChatReply(f"Here: {json.dumps({'items': items})}"[: self.cut], truncated=bool(self.cut))]

    monkeypatch.setattr(config, "chat_model", lambda *_: Writer())
    found = look(tmp_path, Rows({str(n): {"a": n} for n in (1, 2, 3)}), formatter="writer")
    assert texts(tmp_path) == ["of 3"] and set(found.problems) == {"1", "2"}
    assert "the formatter writer wrote no text with its id alone; name another model" in found.problems["1"]
    Writer.cut = 30
    found = look(tmp_path, Rows({str(n): {"a": n} for n in (1, 2, 3)}), formatter="writer")
    assert "writer came to no end in 800 tokens; name another model" in found.problems["2"]
    Writer.cut = None
    Writer.replies = ["1", "2", "3"]
    assert look(tmp_path, Rows({str(n): {"a": n} for n in (1, 2, 3)}), formatter="writer").new == 2


def test_a_source_that_is_down_is_tried_again_and_the_others_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(follow, "_FIRST_PAUSE_S", 0.01)
    up, down = Rows({"1": {"text": "up"}}), Rows({"1": {"text": "down"}}, breaks=0)
    both = [connector("down", every_s=0.1), connector("up", every_s=0.1)]
    opened = {"up": up, "down": down}
    monkeypatch.setattr(type(both[0]), "open", lambda self: opened[self.name])
    seen = []
    ingestion = Ingestion(tmp_path, both)
    with ingestion.writing():
        found = follow.ingest(ingestion, False, seen.append, threading.Event())
        assert [each.source for each in seen] == ["down", "up", "down", "down"]
        assert found[0].failure == "ConnectionError: the line went dead" and texts(tmp_path, "up") == ["text: up"]
        assert ingestion.status()["down"].startswith("down: 0 documents, never listed whole; down: ConnectionError")
        assert re.fullmatch(r"up: 1 document, as of [\d-]{10} [\d:]{8}", ingestion.status()["up"])
        stop = threading.Event()

        def mend(found):
            down.breaks = None
            if texts(tmp_path, "down"):
                stop.set()

        follow.ingest(ingestion, True, mend, stop)
    assert texts(tmp_path, "down") == ["text: down"]


def test_an_event_that_names_a_key_has_it_alone_read_and_one_that_is_gone_has_all_listed(tmp_path, monkeypatch):
    source, passes, stop = Rows({str(n): {"text": f"{n}"} for n in range(3)}), [], threading.Event()
    listings = []
    whole = source.entries

    def entries(cursor, keys=()):
        if keys:
            return (Entry(key, str(row), raw=key) for key, row in source.rows.items() if key in keys)
        listings.append(cursor)
        return whole(cursor)

    source.entries = entries
    one = connector(every_s=600)
    monkeypatch.setattr(type(one), "open", lambda self: source)
    source.watch = lambda changed, stop: told.append(changed)
    told = []

    def turn(found):
        passes.append((found.new, found.changed, found.gone, found.same, len(listings)))
        if len(passes) == 1:
            source.rows |= {"1": {"text": "new"}, "2": {"text": "unheard"}}
            told[0]("1")
        elif len(passes) == 2:
            assert texts(tmp_path) == ["text: 0", "text: 2", "text: new"]
            del source.rows["0"]
            told[0]("0")
        elif len(passes) == 4:
            stop.set()

    ingestion = Ingestion(tmp_path, [one])
    with ingestion.writing():
        follow.ingest(ingestion, True, turn, stop)
    assert passes == [(3, 0, 0, 0, 1), (0, 1, 0, 0, 1), (0, 0, 0, 0, 1), (0, 1, 1, 1, 2)]


def test_a_source_of_one_s_own_as_the_page_shows_it(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs/sources.md").read_text()
    (tmp_path / "mine.py").write_text(next(b for b in re.findall("```python\n(.*?)```", page, re.S) if "Tickets" in b))
    (tmp_path / "tickets.txt").write_text("The pump leaks.\nThe lamp is broken.\n")
    monkeypatch.chdir(tmp_path)
    tickets = Connector(name="plant", kind="mine:Tickets", options={"path": "tickets.txt"})
    ingestion = Ingestion(tmp_path, [tickets])
    with ingestion.writing():
        assert ingestion.look("plant", tickets.open()).new == 2
    assert texts(tmp_path) == ["text: The lamp is broken.\n", "text: The pump leaks.\n"]
