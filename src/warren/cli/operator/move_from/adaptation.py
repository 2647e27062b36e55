"""What of a broker's definitions Warren gets while that broker runs, and which policies federate its queues.

Until the old broker has stopped, Warren gets nothing that moves messages by itself, and not the name of its
cluster: other brokers know a link by that name, and two links with one name share what they move.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Definitions = dict[str, Any]
Entry = dict[str, Any]

UPSTREAM = "move-from"
# The policy for the queues to which no other policy applies.
CATCH_ALL = "move-from"
_FEDERATE = {"federation-upstream": UPSTREAM}
_FEDERATION_KEY = "federation-"
_MOVING = frozenset(("shovel", "federation-upstream", "federation-upstream-set"))
_CLUSTER_NAME = "cluster_name"
# The identity of a cluster, which no other cluster may have.
_CLUSTER_ID = "internal_cluster_id"
# The values of `apply-to` that include queues that can be federated; a stream cannot.
_QUEUES = frozenset(("all", "queues", "classic_queues", "quorum_queues"))
# What identifies an entry of each section.
_KEYS: Mapping[str, tuple[str, ...]] = {
    "vhosts": ("name",),
    "users": ("name",),
    "permissions": ("vhost", "user"),
    "topic_permissions": ("vhost", "user", "exchange"),
    "parameters": ("vhost", "component", "name"),
    "global_parameters": ("name",),
    "policies": ("vhost", "name"),
    "queues": ("vhost", "name"),
    "exchanges": ("vhost", "name"),
    "bindings": ("vhost", "source", "destination_type", "destination", "routing_key", "arguments"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptedDefinitions:
    """An export in three parts."""

    # What Warren gets at once.
    imported: Definitions
    # What it gets when the old broker has stopped.
    withheld: Definitions
    # What it does not get: a sentence for each.
    left_out: list[str]


def adapt(export: Mapping[str, Any], user: str) -> AdaptedDefinitions:
    """Divide `export`; `user` runs the move, whose password and tags are not changed."""
    imported: Definitions = {section: list(export.get(section, ())) for section in _KEYS}
    withheld: Definitions = {}
    left_out = []
    if any(entry["name"] == user for entry in imported["users"]):
        left_out.append(f"user {user!r}, who runs the move: password and tags stay those of Warren")
    imported["users"] = [entry for entry in imported["users"] if entry["name"] != user]
    _withhold(imported, withheld, "parameters", lambda entry: entry["component"] in _MOVING)
    imported["global_parameters"] = [
        entry for entry in imported["global_parameters"] if entry["name"] != _CLUSTER_ID
    ]
    _withhold(imported, withheld, "global_parameters", lambda entry: entry["name"] == _CLUSTER_NAME)
    withheld["policies"] = [entry for entry in imported["policies"] if _is_federating(entry)]
    imported["policies"] = [
        stripped for entry in imported["policies"] if (stripped := _without_federation(entry)) is not None
    ]
    return AdaptedDefinitions(
        imported=imported,
        withheld={section: entries for section, entries in withheld.items() if entries},
        left_out=left_out,
    )


def _withhold(imported: Definitions, withheld: Definitions, section: str, is_withheld: Any) -> None:
    withheld[section] = [entry for entry in imported[section] if is_withheld(entry)]
    imported[section] = [entry for entry in imported[section] if not is_withheld(entry)]


def _is_federating(policy: Entry) -> bool:
    return any(key.startswith(_FEDERATION_KEY) for key in policy["definition"])


def _without_federation(policy: Entry) -> Entry | None:
    """`policy` without the keys that name upstreams; None if it has no others."""
    if not _is_federating(policy):
        return policy
    kept = {key: value for key, value in policy["definition"].items() if not key.startswith(_FEDERATION_KEY)}
    return policy | {"definition": kept} if kept else None


def federating_policies(policies: Sequence[Entry], vhosts: Collection[str]) -> list[Entry]:
    """The policies to set so that all queues of `vhosts` are federated, in the order in which to set them.

    Only one policy applies to a queue, so each that applies to queues gets the key, and a further one of the
    lowest priority applies to the rest. One for exchanges and queues is divided, since its exchanges would be
    federated as well, and messages arrive twice. One that federates already is not changed.
    """
    changed: list[Entry] = []
    for vhost in vhosts:
        present = [policy for policy in policies if policy["vhost"] == vhost]
        names = {policy["name"] for policy in present}
        for policy in present:
            if policy["apply-to"] not in _QUEUES or _is_federating(policy):
                continue
            federated = policy | {"definition": policy["definition"] | _FEDERATE}
            if policy["apply-to"] != "all":
                changed.append(federated)
                continue
            name = _unused(f"{policy['name']} (queues)", names)
            changed.append(federated | {"name": name, "apply-to": "queues"})
            changed.append(policy | {"apply-to": "exchanges"})
        if CATCH_ALL not in names:
            lowest = min((policy["priority"] for policy in present), default=0) - 1
            changed.append(_catch_all(vhost, lowest))
    return changed


def _unused(name: str, names: set[str]) -> str:
    while name in names:
        name += "'"
    names.add(name)
    return name


def _catch_all(vhost: str, priority: int) -> Entry:
    return {
        "vhost": vhost,
        "name": CATCH_ALL,
        "pattern": ".*",
        "apply-to": "queues",
        "priority": priority,
        "definition": dict(_FEDERATE),
    }


def foreign_policies(policies: Sequence[Entry], vhosts: Collection[str]) -> list[Entry]:
    """The policies of `vhosts` by which queues are federated with another broker than the old one."""
    return [
        policy
        for policy in policies
        if policy["vhost"] in vhosts
        and policy["apply-to"] in _QUEUES
        and _is_federating(policy)
        and policy["definition"].get("federation-upstream") != UPSTREAM
    ]


def added_and_changed(before: Definitions, imported: Definitions) -> tuple[Definitions, Definitions]:
    """What an import of `imported` adds to `before`, by its identity, and the entries that it changes.

    `before` is an export. Queues, exchanges and bindings are never changed by an import.
    """
    added: Definitions = {}
    changed: Definitions = {}
    for section, fields in _KEYS.items():
        known = {_key(entry, fields): entry for entry in before.get(section, ())}
        entries = imported.get(section, ())
        added[section] = [identity(section, entry) for entry in entries if _key(entry, fields) not in known]
        if section not in ("queues", "exchanges", "bindings"):
            changed[section] = [
                old
                for entry in entries
                if (old := known.get(_key(entry, fields))) is not None and old != entry
            ]
    return added, changed


def identity(section: str, entry: Entry) -> Entry:
    """The fields of an entry that say which object it is about."""
    return {field: entry[field] for field in _KEYS[section] if field in entry}


def new_entries(section: str, known: Iterable[Entry], entries: Iterable[Entry]) -> list[Entry]:
    """Those `entries` of a section that are about other objects than those in `known`."""
    fields = _KEYS[section]
    keys = {_key(entry, fields) for entry in known}
    return [entry for entry in entries if _key(entry, fields) not in keys]


def _key(entry: Entry, fields: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(repr(entry.get(field)) for field in fields)


def label(section: str, entry: Entry) -> str:
    """Name an entry of a section, as a line of the command shows it."""
    kind = section.removesuffix("s").replace("_", " ").replace("policie", "policy")
    name = entry.get("name", entry.get("user"))
    if section == "bindings":
        name = f"{entry['source']} -> {entry['destination']} {entry['routing_key']}".rstrip()
    if section == "parameters":
        kind = str(entry["component"])
    return f"{kind} {name!r}" + (f" in vhost {entry['vhost']!r}" if "vhost" in entry else "")
