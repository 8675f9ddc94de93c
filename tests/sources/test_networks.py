"""Kafka by librdkafka's own mock cluster, and a web service on loopback."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue

import httpx
import pytest
from changing_source import look, texts
from confluent_kafka import Producer

from rag_lab.sources.follow import _watch
from rag_lab.sources.kafka_and_http import HttpSource, KafkaSource


@pytest.fixture
def topic():
    cluster = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
    servers = ",".join(f"{b.host}:{b.port}" for b in cluster.list_topics("changes", timeout=10).brokers.values())
    producer = Producer({"bootstrap.servers": servers})

    def send(key, value, envelope=True):
        key = json.dumps({"schema": {}, "payload": {"id": key}}) if envelope else key
        producer.produce("changes", value if isinstance(value, str | None) else json.dumps(value), key)
        producer.flush(10)

    yield servers, send
    del cluster


def changed(op, before, after):
    return {"schema": {}, "payload": {"op": op, "before": before, "after": after, "source": {"table": "t"}}}


def test_messages_of_a_topic_change_documents_and_a_poisoned_one_is_passed_over(tmp_path, topic):
    servers, send = topic
    source = KafkaSource(servers, "changes")
    for n in (1, 2, 3, 4):
        send(n, changed("r" if n < 3 else "c", None, {"id": n, "text": f"text {n}"}))
    send("plain", {"text": "a record without an envelope"}, envelope=False)
    send(9, "{torn")
    send(8, changed("m", None, None))
    found = look(tmp_path, source, template="{{ text }}")
    assert found.new == 5 and len(found.problems) == 2 and "is no JSON object" in found.problems["9"]
    send(1, changed("u", {"id": 1}, {"id": 1, "text": "newer"}))
    send(2, changed("d", {"id": 2}, None))
    send(2, None)
    send(3, None)
    found = look(tmp_path, source, template="{{ text }}")
    assert (found.new, found.changed, found.gone) == (0, 1, 2)
    expected = ["a record without an envelope", "newer", "text 4"]
    assert texts(tmp_path) == expected
    again = look(tmp_path, KafkaSource(servers, "changes"), template="{{ text }}")
    assert again.whole and not again.new + again.changed + again.gone + again.same
    assert look(tmp_path, source, template="{{ text }}!").whole  # from the beginning, for documents made in another way
    assert texts(tmp_path) == [f"{text}!" for text in expected]
    heard, stop = SimpleQueue(), threading.Event()
    thread = threading.Thread(target=_watch, args=(source, heard.put, stop))
    thread.start()
    try:
        heard.get(timeout=10)
        send(5, changed("c", None, {"text": "five"}))
        heard.get(timeout=10)
    finally:
        stop.set()
        thread.join()


def test_a_broker_that_is_not_there_is_down(tmp_path, monkeypatch):
    monkeypatch.setattr("rag_lab.sources.kafka_and_http._WAIT_S", 0.2)
    assert "KafkaException" in look(tmp_path, KafkaSource("127.0.0.1:1", "changes")).failure


class Service(ThreadingHTTPServer):
    """Pages of items; `broken` are paths that answer 500, `cut` one whose reply ends in the middle."""

    def __init__(self):
        self.items, self.broken, self.cut, self.asked = {}, set(), False, []
        super().__init__(("127.0.0.1", 0), Answering)
        self.address = f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    def do_GET(self):
        path, _, query = self.path.partition("?")
        self.server.asked.append(self.path)
        items = list(self.server.items.values())
        status, body, etag = 200, {}, f'"{hash(json.dumps(items))}"'
        if path in self.server.broken or self.headers["X-Key"] != "letmein!":
            status = 500
        elif path == "/list" and self.headers["If-None-Match"] == etag:
            status = 304
        elif path == "/list":
            body = {"data": {"rows": items}}
        elif path == "/pages":
            n = int(query.partition("=")[2] or 0)
            body = {"data": {"rows": items[n : n + 2]}, "next": f"/pages?from={n + 2}" if n + 2 < len(items) else None}
        elif path == "/newer":
            body = [item for item in items if item["v"] > int(query.partition("=")[2] or 0)]
        else:
            body = self.server.items.get(path.rpartition("/")[2])
            status = 200 if body else 404
        content = json.dumps(body).encode() if status != 304 else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(content) + 10 * (self.server.cut and "from=2" in query)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def service():
    server = Service()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def source_of(service, path, **rest):
    return HttpSource(service.address + path, "id", headers={"X-Key": "letmein!"}, **rest)


def put(service, *numbers, v=1, **rest):
    service.items |= {str(n): {"id": n, "v": v, "text": f"text {n} {v}", **rest} for n in numbers}


def test_items_come_page_by_page_and_a_listing_that_breaks_off_deletes_nothing(tmp_path, service):
    put(service, 1, 2, 3)
    source = source_of(
        service, "/pages", items="data.rows", next="next", version_field="v", item=service.address + "/i/{key}"
    )
    service.broken = {"/i/2"}
    found = look(tmp_path, source, template="{{ text }}")
    assert texts(tmp_path) == ["text 1 1", "text 3 1"] and "answers 500" in found.problems["2"]
    service.broken, service.cut = set(), True
    found = look(tmp_path, source, template="{{ text }}")
    assert found.gone == 0 and "RemoteProtocolError" in found.failure and len(texts(tmp_path)) == 2
    service.cut = False
    put(service, 3, v=0)
    del service.items["1"]
    look(tmp_path, source, template="{{ text }}")
    assert texts(tmp_path) == ["text 2 1", "text 3 0"]


def test_an_etag_saves_the_listing_and_a_parameter_asks_for_what_is_newer(tmp_path, service):
    put(service, 1, 2)
    source = source_of(service, "/list", items="data.rows")
    look(tmp_path / "a", source)
    assert look(tmp_path / "a", source).same == 2
    put(service, 2, v=2)
    assert look(tmp_path / "a", source).changed == 1
    newer = source_of(service, "/newer", version_field="v", since="after", deleted="gone")
    look(tmp_path / "b", newer, template="{{ text }}")
    put(service, 1, v=10, gone=True)
    put(service, 3, v=9)
    found = look(tmp_path / "b", newer, template="{{ text }}")
    assert (found.new, found.gone) == (1, 1) and service.asked[-1] == "/newer?after=2"
    look(tmp_path / "b", newer, template="{{ text }}")
    assert service.asked[-1] == "/newer?after=10" and texts(tmp_path / "b") == ["text 2 2", "text 3 9"]


def test_a_webhook_is_heard_with_its_token_alone(service):
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as free:
        port = free.server_port
    put(service, 1)
    address = service.address + "/i/{key}"
    source = source_of(service, "/list", port=port, token="s3cret-s3cret", item=address, version_field="v")
    heard, stop = SimpleQueue(), threading.Event()
    thread = threading.Thread(target=_watch, args=(source, heard.put, stop))
    thread.start()
    try:
        for _ in range(100):
            try:
                reply = httpx.post(f"http://127.0.0.1:{port}", headers={"Authorization": "Bearer other"})
                break
            except httpx.ConnectError:
                stop.wait(0.05)
        assert reply.status_code == 401 and heard.empty()
        for body, keys in ((b'{"id": 1}', ("1",)), (b"[1]", ()), (b"", ()), (b"[" * 60_000, ())):
            reply = httpx.post(
                f"http://127.0.0.1:{port}", headers={"Authorization": "Bearer s3cret-s3cret"}, content=body
            )
            assert reply.status_code == 204 and heard.get(timeout=1) == keys
        assert [(entry.key, entry.fingerprint) for entry in source.entries("", ["1", "2"])] == [("1", "1")]
    finally:
        stop.set()
        thread.join()
