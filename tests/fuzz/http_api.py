"""The fuzz target of the HTTP API: every request is answered, and never with an internal error."""

import asyncio
import json
import logging
import re
from base64 import b64encode
from contextlib import suppress

from tests.fuzz.arrow import staged_seeds
from tests.fuzz.documents import DOCUMENT

from warren.management.routes import ROUTES
from warren.node.boot import Node
from warren.node.config import Config
from warren.node.config_file import ConfigEntry
from warren.node.node_log import NodeLog

LOOP = asyncio.new_event_loop()
SETTINGS = {
    "in_memory": "true", "log.console": "false", "listeners.tcp": "none", "stream.listeners.tcp": "none",
    "management.tcp.ip": "127.0.0.1", "management.tcp.port": "0", "prometheus.tcp.ip": "127.0.0.1",
    "prometheus.tcp.port": "0",
}  # fmt: skip
CREDENTIALS = b64encode(b"guest:guest").decode()
# A request that takes longer is a finding; of an endless answer only the header is read.
ANSWER_S = 8.0
# After this number of requests, objects created by them are removed.
REQUESTS_PER_NODE = 300
_LINE = re.compile(rb"([A-Z]{3,7}) (/[^\n]*)(?:\n(.*))?", re.DOTALL)
_SAFE = frozenset(range(0x21, 0x7F))
# Longer paths are refused by the parser of aiohttp, and not of interest.
_LINE_SIZE_MAX = 4000
_NAMES = {
    "vhost": "%2F", "queue": "q", "exchange": "e", "user": "u", "source": "e", "kind": "q",
    "destination": "q", "properties": "k", "name": "p", "component": "shovel", "node": "n", "lease": "l",
    "filter": "a",
    "job": "1", "resource": "memory", "port": "5672", "within": "1", "unit": "weeks", "pattern": "%5Eq",
}  # fmt: skip
_QUERY = "?page=1&page_size=5&name=q&use_regex=true&sort=name&sort_reverse=true&columns=name,arguments.a"
# By the end of the path.
_BODIES: dict[str, object] = {
    "PUT {vhost}": {"description": "d", "tags": "t", "default_queue_type": "classic", "tracing": False},
    "PUT {user}": {"password": "x", "tags": "management"},
    "PUT {exchange}": {"type": "topic", "durable": True, "arguments": {"alternate-exchange": "x"}},
    "PUT {queue}": {"durable": True, "arguments": {"x-max-length": 5, "x-queue-type": "stream"}},
    "PUT {name}": {"pattern": "^q", "definition": {"max-length": 5}, "priority": 1, "value": 5},
    "PUT permissions": {"configure": ".*", "write": "", "read": "^a"},
    "PUT cluster-name": {"name": "c"},
    "PUT {resource}": {"absolute": "2GB"},
    "PUT level": {"level": "error", "category": "queue"},
    "PUT pause": {},
    "POST bulk-delete": {"users": ["u"]},
    "POST publish": {
        "properties": {"headers": {"a": 1}, "delivery_mode": 2}, "routing_key": "q", "payload": "eA==",
        "payload_encoding": "base64",
    },
    "POST get": {"count": 2, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 5},
    "POST actions": {"action": "sync"},
    "POST {destination}": {"routing_key": "k", "arguments": {"x": 1}},
    "POST definitions": DOCUMENT, "POST plan": DOCUMENT, "POST apply": DOCUMENT, "POST {vhost}": DOCUMENT,
    "POST leases": {"count": 5, "seconds": 30},
    "POST settle": {"outcome": "ack", "offsets": [0]},
    "POST renew": {"seconds": 30},
    "POST route": {"routing_key": "a.b", "headers": {"x": 1}},
    "POST redrive": {"where": ["routing_key=q"], "limit": 5, "dry_run": True},
    "POST move": {"exchange": "e", "routing_key": "q", "where": [], "limit": 5},
    "POST return": {"limit": 1},
    "POST commit": {"query": "x", "batch": 0, "partitions": [{"partition": 0, "attempt": 0}]},
    "POST authenticate": {"username": "guest", "password": "guest"},
}  # fmt: skip


class Served:
    """A node, its HTTP port, and what it logged with an exception."""

    def __init__(self) -> None:
        self._config = Config([ConfigEntry(key, value, "fuzz") for key, value in SETTINGS.items()])
        self._log = NodeLog(self._config)
        self.surprises: list[str] = []
        self.handler = _Surprises(self.surprises)
        for name in ("warren", "aiohttp", "asyncio"):
            logging.getLogger(name).addHandler(self.handler)
        self.requests = 0

    async def start(self) -> None:
        self.node = Node(self._config, _nobody, self._log, restart=_nobody)
        await self.node.start()
        self.port = next(view.port for view in self.node.listeners if view.protocol == "http")
        for line, body in PREPARATION:
            status = await self.ask(f"{line}\n{json.dumps(body)}".encode())
            assert status < 300, f"{line}: {status}"

    async def ask(self, data: bytes) -> int:
        """The status of the answer to a request line and its body; 0 for no answer."""
        found = _LINE.fullmatch(data)
        if found is None:
            return 0
        path = "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in found[2])
        body = found[3] or b""
        kind = "application/vnd.apache.arrow.stream" if "/staged/" in path else "application/json"
        head = [
            f"{found[1].decode()} /api{path[:_LINE_SIZE_MAX]} HTTP/1.1", "host: x",
            f"authorization: Basic {CREDENTIALS}", f"content-type: {kind}", f"content-length: {len(body)}",
            "connection: close", "", "",
        ]  # fmt: skip
        self.requests += 1
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write("\r\n".join(head).encode() + body)
            async with asyncio.timeout(ANSWER_S):
                answer = await reader.readuntil(b"\r\n\r\n")
                with suppress(asyncio.LimitOverrunError, ValueError):
                    await reader.read(65_536)
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0
        finally:
            writer.close()
        return int(answer.split(b" ", 2)[1])

    async def stop(self) -> None:
        await self.node.stop()
        self._log.stop()
        for name in ("warren", "aiohttp", "asyncio"):
            logging.getLogger(name).removeHandler(self.handler)


class _Surprises(logging.Handler):
    """A log handler that records exceptions."""

    def __init__(self, found: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._found = found
        self.setFormatter(logging.Formatter())

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None:
            self._found.append(self.format(record))


PREPARATION: list[tuple[str, object]] = [
    ("PUT /queues/%2F/q", {"durable": True, "arguments": {"x-dead-letter-exchange": "amq.fanout"}}),
    ("PUT /queues/%2F/s", {"durable": True, "arguments": {"x-queue-type": "stream"}}),
    ("PUT /exchanges/%2F/e", {"type": "topic"}),
    ("POST /bindings/%2F/e/e/q/q", {"routing_key": "k"}),
    ("PUT /users/u", {"password": "x", "tags": ""}),
    ("PUT /policies/%2F/p", {"pattern": "^q", "definition": {"max-length": 9}}),
    ("PUT /global-parameters/p", {"value": {"a": 1}}),
    *[
        ("POST /exchanges/%2F/amq.default/publish", {
            "properties": {"headers": {"a": [1, {"b": "x"}]}, "delivery_mode": 2}, "routing_key": queue,
            "payload": '{"total": 5}', "payload_encoding": "string",
        })
        for queue in ("q", "q", "q", "s", "s")
    ],
]  # fmt: skip
_served: list[Served] = []


def check_api(data: bytes) -> None:
    """Any request is answered in time, and no unexpected exception is logged."""
    LOOP.run_until_complete(_check(data))


async def _check(data: bytes) -> None:
    if not _served or _served[0].requests > REQUESTS_PER_NODE:
        if _served:
            await _served.pop().stop()
        served = Served()
        await served.start()
        _served.append(served)
    served = _served[0]
    status = await served.ask(data)
    surprises, served.surprises[:] = "\n".join(served.surprises), []
    assert status != 500, surprises
    assert not surprises, surprises
    if status == 401:
        # No user is left who may make requests.
        await _served.pop().stop()


def _nobody() -> None:
    """Do nothing instead of stopping the node or starting it again."""


def api_seeds() -> list[bytes]:
    """Every method of every route, with a body that it accepts."""
    seeds = []
    for route in ROUTES:
        path = re.sub(r"{(\w+)}", lambda match: _NAMES.get(match[1], "x"), route.path)
        if "/stream" in path:
            path = path.replace("/q", "/s")
        for method in route.handlers:
            end = route.path.rpartition("/")[2]
            if "permissions" in route.path and method == "PUT":
                end = "permissions"
            body = _BODIES.get(f"{method} {end}", {})
            written = (
                staged_seeds()[1] if "/staged/{vhost}/{exchange}" in route.path else json.dumps(body).encode()
            )
            query = _QUERY if method == "GET" else ""
            seeds.append(
                f"{method} {path}{query}".encode() + (b"\n" + written if method in ("PUT", "POST") else b"")
            )
    return [*seeds, *_QUERIES]


_QUERIES = [
    b"GET /warren/queues/%2F/q/messages?count=2&offset=0&where=body.total%3E1&where=headers.a.0%3D1",
    b"GET /warren/queues/%2F/q/rows?columns=body,headers,offset&start=0&end=5&compression=zstd",
    b"GET /warren/streams/%2F/s/rows?start=0&end=5&columns=body,offset,headers_json&epoch=1&routing_key=s",
    b"GET /warren/streams/%2F/s?timestamp=5",
    b"POST /warren/staged/%2F/e?query=x&batch=0&partition=0&attempt=0\n" + staged_seeds()[1],
    b"DELETE /warren/staged/%2F?query=x&batch=0",
    b"DELETE /queues/%2F/q?if-empty=true&if-unused=true",
    b"GET /queues/%2F/q?msg_rates_age=60&msg_rates_incr=5&lengths_age=60&lengths_incr=5",
]
