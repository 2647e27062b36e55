"""Fuzz targets of documents: definitions, configuration, conditions on messages, and name filters."""

import json
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from warren.management.api.definitions import parsed
from warren.management.conditions import ConditionError, parse_conditions
from warren.management.name_filters import PatternError, name_filter
from warren.management.replies import RequestRefused
from warren.metadata.commands import Outcome
from warren.metadata.definitions import definition_sections
from warren.metadata.definitions_import import DefinitionsError, import_commands
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.metadata.users import PasswordHash
from warren.model.message import BODY_END, Message
from warren.node.config import load
from warren.node.config_file import ConfigError
from warren.vhost.definitions_check import check_definitions
from warren.wire.properties import BasicProperties

DOCUMENT = {
    "rabbit_version": "3.10.8",
    "users": [
        {"name": "u", "password_hash": "AAAAAA==", "hashing_algorithm": "rabbit_password_hashing_sha256",
         "tags": "administrator,x", "limits": {"max-connections": 5}},
        {"name": "v", "password": "secret", "tags": []},
    ],
    "vhosts": [
        {"name": "/"},
        {"name": "w", "metadata": {"description": "d", "tags": ["t"]}, "tracing": True},
    ],
    "permissions": [{"user": "u", "vhost": "/", "configure": ".*", "write": "^q", "read": ""}],
    "topic_permissions": [{"user": "u", "vhost": "w", "exchange": "e", "write": "a", "read": "b"}],
    "global_parameters": [{"name": "cluster_name", "value": "c"}],
    "parameters": [{"vhost": "/", "component": "vhost-limits", "name": "limits", "value": {"max-queues": 9}}],
    "policies": [
        {"vhost": "w", "name": "p", "pattern": "^q", "apply-to": "queues", "priority": 1,
         "definition": {"max-length": 5, "dead-letter-exchange": "e"}},
    ],
    "queues": [
        {"name": "q", "vhost": "w", "durable": True, "auto_delete": False,
         "arguments": {"x-max-priority": 3, "x-message-ttl": 60_000, "l": [1, "a", {"b": 1.5}]}},
        {"name": "s", "vhost": "w", "durable": True, "arguments": {"x-queue-type": "stream"}},
    ],
    "exchanges": [
        {"name": "e", "vhost": "w", "type": "topic", "durable": True, "internal": False, "arguments": {}},
        {"name": "h", "vhost": "w", "type": "headers", "auto_delete": True, "arguments": []},
    ],
    "bindings": [
        {"source": "e", "vhost": "w", "destination": "q", "destination_type": "queue", "routing_key": "a.#",
         "arguments": {}},
        {"source": "h", "vhost": "w", "destination": "e", "destination_type": "exchange", "routing_key": "",
         "arguments": {"x-match": "any", "k": 1}},
    ],
}  # fmt: skip
CONFIGURATION = """
# A comment
listeners.tcp.default = 127.0.0.1:5672
heartbeat = 60  # behind a value
vm_memory_high_watermark.absolute = 1GiB
vhost_restart_strategy = continue
default_pass = 'with # and ='
auth_mechanisms.1 = PLAIN
consumer_timeout = undefined
log.file.rotation.date = $W5D16
default_user = $(NAME)
ssl_options.verify = verify_peer
"""
TOML = """
heartbeat = 60
[listeners.tcp]
1 = "127.0.0.1:5672"
2 = 5673
[vm_memory_high_watermark]
relative = 0.4
[auth_mechanisms]
1 = "PLAIN"
"""
CONDITIONS = [
    "routing_key=a.b", "headers.tenant!=acme", "properties.priority>=5", "body.total<1e3", "body~refused",
    "body.list.1=x", "headers.list.0.k=null", "exchange<=z", "body.total>100\nheaders.a=true",
]  # fmt: skip
PATTERNS = ["^a.*b$", "(a+)+$", "[[:alpha:]]{2,5}", "q\\d+", "(?i)x|y", "a{1,1000}"]
NAMES = ["", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "queue-1", "é", "x" * 255]
MESSAGE_BODY = b'{"total": 150, "list": ["x", {"y": [1]}], "text": "refused", "null": null}'


def check_imported_definitions(data: bytes) -> None:
    """A document is refused, or its import can be exported and imported again with an equal result."""
    for vhost in (None, "w"):
        with suppress(DefinitionsError, RequestRefused):
            commands = check_definitions(
                import_commands(parsed(data), _hash, vhost=vhost), Metadata()
            ).complete()
            if vhost is not None:
                continue
            first = _made(commands)
            document = {name: list(entries) for name, entries in definition_sections(first)}
            again = _made(check_definitions(import_commands(document, _hash), Metadata()).complete())
            assert document == {name: list(entries) for name, entries in definition_sections(again)}


def _made(commands: list) -> Metadata:
    """The objects after `commands` were applied; a refusal ends it, as in an import."""
    metadata = Metadata()
    local = LocalProposals(metadata, lambda: 0)
    for command in commands:
        if local.apply(command).outcome is Outcome.REFUSED:
            break
    return metadata


def _hash(password: str) -> PasswordHash:
    return PasswordHash(password.encode("utf-8", "surrogateescape"), "rabbit_password_hashing_sha256")


def definition_seeds() -> list[bytes]:
    """A whole document, and parts of it."""
    parts = [{name: value} for name, value in DOCUMENT.items() if name != "vhosts"]
    topology = {name: DOCUMENT[name] for name in ("vhosts", "queues", "exchanges", "bindings")}
    return [json.dumps(each).encode() for each in (DOCUMENT, topology, *parts)]


def check_configuration(data: bytes) -> None:
    """A file of either format is a valid configuration, or a ConfigError names the mistake."""
    for suffix in (".conf", ".toml"):
        with NamedTemporaryFile(suffix=suffix) as file:
            Path(file.name).write_bytes(data)
            with suppress(ConfigError):
                load(file.name, {"NAME": "a user"})


def configuration_seeds() -> list[bytes]:
    """Both formats, whole and in parts."""
    lines = [line.encode() for line in CONFIGURATION.splitlines() if line]
    return [CONFIGURATION.encode(), TOML.encode(), *lines]


def check_conditions(data: bytes) -> None:
    """Conditions are parsed or refused, and match a message or do not, whatever it contains."""
    text, _, body = data.partition(b"\0")
    headers = {"tenant": "acme", "list": [{"k": None}, 2], "a": True, "n": 7, "b": b"\xff"}
    properties = BasicProperties(priority=5, headers=headers, timestamp=3).encode_list()
    message = Message(b"\x01e\x03a.b", properties, (body or MESSAGE_BODY) + BODY_END, 0)
    with suppress(ConditionError):
        for condition in parse_conditions(text.decode("utf-8", "surrogateescape").split("\n")):
            condition.fits(message)


def condition_seeds() -> list[bytes]:
    """Each kind of condition, alone and with a body."""
    return [*(text.encode() for text in CONDITIONS), b"body.a.0>=1\0" + b'{"a": [1e400, -0.0]}']


def check_names(data: bytes) -> None:
    """A pattern selects names within its time limit, or is refused."""
    text = data.decode("utf-8", "surrogateescape")
    with suppress(PatternError):
        assert len(name_filter(text, is_pattern=True).fits(NAMES)) == len(NAMES)
    name_filter(text, is_pattern=False).fits(NAMES)


def name_seeds() -> list[bytes]:
    """Patterns that are quick, and some that are not."""
    return [pattern.encode() for pattern in PATTERNS]
