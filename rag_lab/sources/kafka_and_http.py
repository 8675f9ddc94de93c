"""Sources behind a network: a topic of Kafka that tells changes as Debezium does, and lists of a web service.

A web service may be heard, too: it sends an empty POST to a port of this machine whenever something changed.
"""

import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import compare_digest
from typing import Any, ClassVar
from urllib.parse import quote

import httpx

from rag_lab._kit.digest import digest
from rag_lab.errors import ConfigError
from rag_lab.sources.source import AsBefore, Content, Entry, Source, UnusableItem

_WAIT_S = 10.0  # for a message that the broker says is there
# Other requests of a connection wait for the broker's answer to one for messages.
_KAFKA = {"enable.partition.eof": True, "log_level": 2, "fetch.wait.max.ms": 50}
_BODY = 2**16  # bytes of an event that are read
_LOOK_S = 0.25  # between two looks for messages, or for the wish to end


@dataclass(frozen=True, eq=False)
class KafkaSource(Source):
    """The messages of a topic, in Debezium's envelope or plain records; the offset of each partition is the cursor.

    The cursor is kept with the documents; the group's offsets are committed after that, for who watches its lag.
    """

    servers: str
    topic: str
    group: str = "rag_lab"
    settings: Mapping[str, Any] | None = None  # of librdkafka, as security.protocol
    is_log: ClassVar[bool] = True  # type: ignore[misc]
    version: ClassVar[int] = 1

    @cached_property
    def _consumer(self) -> Any:
        from confluent_kafka import Consumer

        ours = {"bootstrap.servers": self.servers, "group.id": self.group, "enable.auto.commit": False}
        return Consumer({**_KAFKA, **ours, **(self.settings or {})})

    def _ends(self) -> dict[int, tuple[int, int]]:
        from confluent_kafka import KafkaException, TopicPartition

        found = self._consumer.list_topics(self.topic, timeout=_WAIT_S).topics[self.topic]
        if found.error:
            raise KafkaException(found.error)
        partitions = (TopicPartition(self.topic, number) for number in found.partitions)
        return {each.partition: self._consumer.get_watermark_offsets(each, timeout=_WAIT_S) for each in partitions}

    def entries(self, cursor: str, keys: Collection[str] = ()) -> Iterator[Entry]:
        """Yield what each message behind the cursor says of its key, up to those that are there now."""
        from confluent_kafka import KafkaError, KafkaException, TopicPartition

        ends, begins = self._ends(), {int(number): offset for number, offset in json.loads(cursor or "{}").items()}
        for number, (low, high) in ends.items():  # beyond the end: the topic was made anew
            begins[number] = low if begins.get(number, 0) > high else max(low, begins.get(number, 0))
        open_ones = {number for number, (_, high) in ends.items() if begins[number] < high}
        self._consumer.assign([TopicPartition(self.topic, number, begins[number]) for number in open_ones])
        while open_ones:
            message = self._consumer.poll(_WAIT_S)
            if message is None:
                raise TimeoutError(f"no message of {self.topic} came in {_WAIT_S:g} s")
            number = message.partition()
            if message.error() is None:
                begins[number] = message.offset() + 1
                yield _entry_of(message, json.dumps(begins))
            elif message.error().code() != KafkaError._PARTITION_EOF:
                raise KafkaException(message.error())
            if message.error() or begins[number] >= ends[number][1]:
                open_ones.discard(number)
        self._consumer.unassign()

    def settle(self, cursor: str) -> None:
        """Commit the offsets of the group; where that fails, the next commit makes up for it."""
        from confluent_kafka import KafkaException, TopicPartition

        offsets = [TopicPartition(self.topic, int(number), n) for number, n in json.loads(cursor).items()]
        with suppress(KafkaException):
            self._consumer.commit(offsets=offsets, asynchronous=False)

    def watch(self, changed: Callable[..., object], stop: threading.Event) -> None:
        """Call `changed` when the topic has grown."""
        before = None
        while not stop.wait(_LOOK_S):
            now = self._ends()
            if now != before:
                changed()
            before = now


def _entry_of(message: Any, cursor: str) -> Entry:
    """Return what a message says: `op` c, u and r put `after`, d and a message without value delete."""
    key, place = (message.key() or b"").decode(errors="replace"), f"{message.partition()}:{message.offset()}"
    try:
        named = _payload(json.loads(key))
        if isinstance(named, dict):
            key = str(*named.values()) if len(named) == 1 else json.dumps(named, sort_keys=True)
    except ValueError:  # plain text
        pass
    problem, record, is_gone = "" if key else "it has no key, so what it changes is not known.", None, False
    try:
        value = _payload(json.loads(message.value())) if message.value() else None
        operation = "d" if value is None else value.get("op", "r")
        record, is_gone = value.get("after") if value and "op" in value else value, operation == "d"
        if not is_gone and (not isinstance(record, dict) or operation not in ("c", "u", "r")):
            problem = problem or f"the message {place} is no change of a record; it was passed over."
    except (ValueError, AttributeError):
        problem = problem or f"the message {place} is no JSON object; it was passed over."
    content = record if isinstance(record, dict) and not is_gone else None
    return Entry(key or place, place, message.offset(), None, content, is_gone, problem, cursor)


def _payload(value: Any) -> Any:
    return value["payload"] if isinstance(value, dict) and "payload" in value else value


@dataclass(frozen=True, eq=False)
class HttpSource(Source):
    """The items of a list, page by page; with `since` only those that changed after the newest one that was seen."""

    url: str
    key: str  # a field of an item, as `version_field`, `deleted`
    items: str = ""  # where the list stands in a reply, with dots; '' for the reply itself
    version_field: str = ""  # differs wherever the item does; the whole item where it is left out
    next: str = ""  # where a reply has the address of the next page; a `Link` with rel="next" is followed, too
    item: str = ""  # the address of one item, with {key}; '' where the list has the items whole
    since: str = ""  # the parameter that asks for what is newer
    deleted: str = ""  # says, with `since`, that an item is gone
    headers: Mapping[str, str] | None = None
    port: int = 0  # on which a POST says that something changed, with `token` as its bearer
    token: str = ""
    timeout_s: float = 30.0
    version: ClassVar[int] = 1

    @property
    def is_log(self) -> bool:  # type: ignore[override]
        """Whether it lists what changed, and not all that there is."""
        return bool(self.since)

    @cached_property
    def _client(self) -> httpx.Client:
        return httpx.Client(headers=dict(self.headers or {}), timeout=self.timeout_s)

    def entries(self, cursor: str, keys: Collection[str] = ()) -> Iterator[Entry]:
        """Yield the items of all pages; the last one has the cursor: the newest version, or the ETag of one page."""
        for entry, found in self.contents([Entry(key) for key in keys]):
            if isinstance(found, Mapping):
                version = found.get(self.version_field)
                yield replace(entry, fingerprint=digest(found) if version is None else str(version), content=found)
        if keys:
            return
        asked = {"If-None-Match": cursor} if cursor and not self.since else {}
        parameters = {self.since: cursor} if self.since and cursor else None
        address: httpx.URL | None = httpx.URL(self.url)
        etag, held, newest = "", None, None
        while address:
            reply = self._client.get(address, params=parameters, headers=asked)
            if reply.status_code == httpx.codes.NOT_MODIFIED and asked:
                raise AsBefore
            found = reply.raise_for_status().json()
            following = _at(found, self.next) if self.next else reply.links.get("next", {}).get("url")
            etag = "" if following or held else reply.headers.get("ETag", "")
            for item in _at(found, self.items):
                if held:
                    yield held
                key, version = item.get(self.key), item.get(self.version_field) if self.version_field else digest(item)
                if key is None or version is None:
                    held = Entry(str(key), problem="the item has no key or no version; fill both.")
                    continue
                newest = version if newest is None or not self.since else max(newest, version)
                gone, whole = bool(self.deleted and item.get(self.deleted)), None if self.item else item
                held = Entry(str(key), str(version), content=whole, is_gone=gone)
            before, address = address, address.join(following) if following else None
            if address and address.host != before.host:
                raise ValueError(f"the next page is on another host, {address.host}, which must not see the headers")
            parameters, asked = None, {}
        if held:
            yield replace(held, cursor=str(cursor if newest is None else newest) if self.since else etag)

    def contents(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Content | UnusableItem]]:
        """Yield each item by its address."""
        for entry in entries:
            reply = self._client.get(self.item.format(key=quote(entry.key, safe="")))
            if reply.is_success:
                is_json = "json" in reply.headers.get("Content-Type", "")
                yield entry, reply.json() if is_json else {"key": entry.key, "text": reply.text}
            elif self.is_log and reply.status_code not in (404, 410):  # a log is not read again
                reply.raise_for_status()
            elif reply.status_code not in (404, 410):
                yield entry, UnusableItem(f"the service answers {reply.status_code} for it; it is asked for again.")

    def watch(self, changed: Callable[..., object], stop: threading.Event) -> None:
        """Hear what the service sends to `port`, where one is named; a body may be an item, or its key alone."""
        if not self.port:
            return
        if not self.token:
            raise ConfigError("A port needs a token, as token: ${WEBHOOK_TOKEN}: anybody could send a POST.")
        wanted, source = f"Bearer {self.token}".encode(), self

        class Receiver(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                is_known = compare_digest(self.headers.get("Authorization", "").encode(), wanted)
                if is_known:
                    keys = []
                    with suppress(ValueError, LookupError, TypeError, RecursionError):  # a body that names no item
                        body = json.loads(self.rfile.read(min(_BODY, max(0, int(self.headers["Content-Length"])))))
                        keys = [str(body[source.key])]
                    changed(*keys if source.item and not source.is_log else ())
                self.send_response(204 if is_known else 401)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", self.port), Receiver) as server:
            threading.Thread(target=server.serve_forever, args=(_LOOK_S,), daemon=True).start()
            stop.wait()
            server.shutdown()


def _at(value: Any, path: str) -> Any:
    """Return what stands in a reply at a path with dots."""
    for part in filter(None, path.split(".")):
        value = value[part]
    return value
