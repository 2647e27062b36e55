"""The users, vhosts, permissions, limits and policies for transcripts, as a definitions document."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from tests.conformance.client import VHOST

# The number of concurrent transcripts; each uses one of these vhosts alone.
VHOSTS = [f"{VHOST}-{number}" for number in range(1, 13)]
# vhost -> limits; these exist beside the vhosts of transcripts.
LIMITED_VHOSTS = {"no-limits": {}, "no-connections": {"max-connections": 0}, "one-queue": {"max-queues": 1}}
_EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}
_NOTHING = {"configure": "^$", "write": "^$", "read": "^$"}
# user -> tags, permissions in every vhost of VHOSTS, limits
USERS: dict[str, tuple[str, dict[str, str] | None, dict[str, int]]] = {
    "alice": ("administrator", _EVERYTHING, {}),
    "guest": ("administrator", _EVERYTHING, {}),
    "bob": ("", _EVERYTHING, {}),
    "imposter": ("impersonator", _EVERYTHING, {}),
    "nobody": ("", _NOTHING, {}),
    "stranger": ("", None, {}),
    "reader": ("", {"configure": "^mine", "write": "^mine", "read": "^(mine|amq\\.)"}, {}),
    "writer": ("", {"configure": "^mine", "write": "^(mine|amq\\.)", "read": "^mine"}, {}),
    "topical": ("", _EVERYTHING, {}),
    "one-connection": ("", _EVERYTHING, {"max-connections": 1}),
    "one-channel": ("", _EVERYTHING, {"max-channels": 1}),
}
_TOPIC_PERMISSION = {
    "user": "topical",
    "exchange": "amq.topic",
    "write": "^{username}\\.",
    "read": "^free\\.",
}
# name -> pattern, apply-to, definition
POLICIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "short": ("^policy-short", "queues", {"max-length": 2}),
    "brief": ("^policy-brief", "queues", {"message-ttl": 200}),
    "dead": ("^policy-dead", "queues", {"dead-letter-exchange": "", "dead-letter-routing-key": "buried"}),
    "alternate": ("^policy-alternate", "exchanges", {"alternate-exchange": "amq.fanout"}),
    "strict": ("^policy-strict", "queues", {"max-length": 1, "overflow": "reject-publish"}),
}
OPERATOR_POLICIES = {"cap": ("^policy-short-capped", "queues", {"max-length": 1})}


def definitions() -> dict[str, Any]:
    """The document, as RabbitMQ's import_definitions and Warren's load_definitions read it."""
    return {
        "users": [_user(name, tags, limits) for name, (tags, _, limits) in USERS.items()],
        "vhosts": [{"name": name} for name in [*VHOSTS, *LIMITED_VHOSTS]],
        "permissions": [
            {"user": name, "vhost": vhost, **rights}
            for name, (_, rights, _) in USERS.items()
            if rights is not None
            for vhost in [*VHOSTS, *LIMITED_VHOSTS]
        ],
        "topic_permissions": [{**_TOPIC_PERMISSION, "vhost": vhost} for vhost in VHOSTS],
        "parameters": [
            {"component": "vhost-limits", "name": "limits", "vhost": vhost, "value": limits}
            for vhost, limits in LIMITED_VHOSTS.items()
            if limits
        ]
        + [
            {
                "component": "operator_policy",
                "name": name,
                "vhost": vhost,
                "value": {"pattern": pattern, "apply-to": kind, "definition": settings, "priority": 0},
            }
            for name, (pattern, kind, settings) in OPERATOR_POLICIES.items()
            for vhost in VHOSTS
        ],
        "policies": [
            {
                "name": name,
                "vhost": vhost,
                "pattern": pattern,
                "apply-to": kind,
                "definition": settings,
                "priority": 0,
            }
            for name, (pattern, kind, settings) in POLICIES.items()
            for vhost in VHOSTS
        ],
    }


def _user(name: str, tags: str, limits: dict[str, int]) -> dict[str, Any]:
    salt = name.encode().ljust(4, b"_")[:4]
    password = "guest" if name == "guest" else f"{name}-password"
    digest = hashlib.sha256(salt + password.encode()).digest()
    return {
        "name": name,
        "password_hash": base64.b64encode(salt + digest).decode(),
        "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": tags,
        "limits": limits,
    }


if __name__ == "__main__":
    print(json.dumps(definitions(), indent=1))
