"""Imports RabbitMQ's definitions document: the commands that create what it contains."""

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping

from warren.metadata.commands import (
    INTERNAL_USER,
    Bind,
    DeclareExchange,
    DeclareQueue,
    Json,
    MetadataCommand,
    PutUser,
    PutVhost,
    SetGlobalParameter,
    SetParameter,
    SetPermissions,
    SetPolicy,
    SetTopicPermissions,
)
from warren.metadata.definition_entries import DefinitionKey, place_of
from warren.metadata.parameters import VHOST_LIMITS
from warren.metadata.users import PasswordHash
from warren.model.arguments import QUEUE_KINDS
from warren.model.names import RESERVED_PREFIX
from warren.wire.table import Value

# Port: hashes a plain-text password with a random salt.
PasswordHasher = Callable[[str], PasswordHash]

# The algorithm of a hash that comes without one.
DEFAULT_HASHING = "rabbit_password_hashing_sha256"
# The algorithm of RabbitMQ up to 3.5, which did not name it.
OLDEST_HASHING = "rabbit_password_hashing_md5"
IMPORTER = INTERNAL_USER
# What some versions of RabbitMQ write in place of a value that is not set.
UNDEFINED = "undefined"


class DefinitionsError(Exception):
    """The document cannot be imported; the text names the invalid entry."""


def import_commands(
    document: Json,
    hash_password: PasswordHasher,
    *,
    vhost: str | None = None,
    user: str = IMPORTER,
    left_out: list[str] | None = None,
) -> list[MetadataCommand]:
    """The commands with which `user` imports `document`; with `vhost`, its topology only, into that vhost.

    Existing exchanges, queues and bindings are kept; users, permissions, parameters and policies are
    replaced. An invalid entry is described in `left_out` if that is given, and otherwise raised as
    DefinitionsError, as a document is that is no object, or has a section that is no list.
    """
    if not isinstance(document, Mapping):
        raise DefinitionsError("not_json")
    version = str(document.get("rabbitmq_version", document.get("rabbit_version", "")))
    commands: list[MetadataCommand] = []

    def each(section: str, command: Callable[[_Fields], MetadataCommand | None]) -> None:
        entries = document.get(section)
        if entries is None:
            return
        if not isinstance(entries, list):
            raise DefinitionsError(f"{section} is not a list")
        for entry in entries:
            try:
                made = command(_Fields(section, entry, vhost))
            except DefinitionsError as error:
                if left_out is None:
                    raise
                left_out.append(str(error))
                continue
            if made is not None:
                commands.append(made)

    if vhost is None:
        each("users", lambda entry: _put_user(entry, version, hash_password))
        each("vhosts", _put_vhost)
        each("permissions", _set_permissions)
        each("topic_permissions", _set_topic_permissions)
    each("exchanges", _declare_exchange)
    if vhost is None:
        each(
            "global_parameters",
            lambda entry: SetGlobalParameter(name=entry.string("name"), value=entry["value"]),
        )
    each("policies", _set_policy)
    each("parameters", lambda entry: _set_parameter(entry, user))
    each("queues", _declare_queue)
    each("bindings", _bind)
    return commands


class _Fields:
    """The fields of one entry of a document; errors name the entry and the field."""

    __slots__ = ("_entry", "_section", "_vhost")

    def __init__(self, section: str, entry: Json, vhost: str | None) -> None:
        if not isinstance(entry, Mapping):
            raise DefinitionsError(f"an entry of {section} is not an object")
        self._section = section
        self._entry = entry
        self._vhost = vhost

    def __getitem__(self, key: str) -> Json:
        return self._entry.get(key)

    @property
    def vhost(self) -> str:
        return self._vhost if self._vhost is not None else self.string("vhost")

    def string(self, key: str, default: str | None = None) -> str:
        value = self._entry.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, value)
        return value

    def optional_string(self, key: str) -> str:
        """A string; empty also for null, and if there is none."""
        return "" if self._entry.get(key) is None else self.string(key)

    def boolean(self, key: str, *, default: bool = False) -> bool:
        value = self._entry.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, value)
        return value

    def mapping(self, key: str) -> Mapping[str, Json]:
        value = self._entry.get(key)
        # RabbitMQ writes an empty table as an empty list in some places.
        if value is None or value == []:
            return {}
        if not isinstance(value, Mapping):
            raise self.wrong(key, value)
        return value

    def limits(self, key: str) -> Mapping[str, Json]:
        """Limits by name, without those that are not set: RabbitMQ writes these in several ways."""
        return set_limits(self._entry.get(key), lambda value: self.wrong(key, value))

    def strings(self, key: str) -> tuple[str, ...]:
        """A list of strings, or one comma-separated string, as in documents from before RabbitMQ 3.9."""
        value = self._entry.get(key, [])
        if isinstance(value, str):
            return tuple(filter(None, (word.strip() for word in value.split(","))))
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, value)
        return tuple(value)

    def arguments(self) -> dict[str, Value]:
        try:
            return {key: table_value(value) for key, value in self.mapping("arguments").items()}
        except TypeError as error:
            raise self.wrong("arguments", str(error)) from None

    def wrong(self, key: str, value: Json) -> DefinitionsError:
        if value is None:
            return DefinitionsError(f"{self._place()}: {key} is missing")
        shown = repr(value) if isinstance(value, str) else json.dumps(value)
        return DefinitionsError(f"{self._place()}: {key} cannot be {shown}")

    def _place(self) -> str:
        """The entry by type, name and virtual host, as far as the document says."""

        def shown(key: str) -> str:
            value = self._entry.get(key, "")
            return value if isinstance(value, str) else json.dumps(value)

        name_key, *more = _IDENTITY.get(self._section, ("name",))
        vhost = self._vhost if self._vhost is not None else shown("vhost")
        key = DefinitionKey(self._section, vhost, shown(name_key), tuple(shown(key) for key in more))
        return place_of(key)


# The fields that identify an entry in its virtual host, in the order of DefinitionKey, unless it is `name`.
_IDENTITY = {
    "bindings": ("source", "destination_type", "destination", "routing_key"),
    "permissions": ("user",),
    "topic_permissions": ("user", "exchange"),
    "parameters": ("name", "component"),
}


def set_limits(value: Json, wrong: Callable[[Json], Exception]) -> Mapping[str, Json]:
    """The limits of `value` that are set; raises what `wrong` makes of a value that is not limits.

    Limits that were cleared are an empty list in an export of RabbitMQ, and `undefined` in some of 4.x.
    """
    if value in (None, [], UNDEFINED):
        return {}
    if not isinstance(value, Mapping):
        raise wrong(value)
    return {name: limit for name, limit in value.items() if limit not in (None, UNDEFINED)}


def table_value(value: Json) -> Value:
    """A JSON value as RabbitMQ converts it to a field table: integers become `long`, and null is not
    permitted.
    """
    if isinstance(value, Mapping):
        return {str(key): table_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [table_value(item) for item in value]
    if value is None:
        raise TypeError("null_not_allowed")
    return value


def _put_user(entry: _Fields, version: str, hash_password: PasswordHasher) -> MetadataCommand:
    password = entry["password"]
    if isinstance(password, str):
        hashed = hash_password(password)
    else:
        try:
            data = b64decode(entry.string("password_hash", ""), validate=True)
        except (Base64Error, ValueError):
            raise entry.wrong("password_hash", "anything but base64") from None
        is_oldest = version.startswith(("3.0", "3.1.", "3.2", "3.3", "3.4", "3.5"))
        algorithm = entry.string("hashing_algorithm", OLDEST_HASHING if is_oldest else DEFAULT_HASHING)
        hashed = PasswordHash(data, algorithm)
    return PutUser(
        name=entry.string("name"),
        password_hash=hashed.salted_hash,
        hashing_algorithm=hashed.algorithm,
        tags=_user_tags(entry),
        limits=entry.limits("limits"),
    )


def _user_tags(entry: _Fields) -> tuple[str, ...]:
    """The tags of a user, which must be there; `administrator` is the field of RabbitMQ before version 3."""
    if entry["tags"] is None:
        if entry["administrator"] is None:
            raise entry.wrong("tags", None)
        return ("administrator",) if entry.boolean("administrator") else ()
    return entry.strings("tags")


def _put_vhost(entry: _Fields) -> MetadataCommand:
    metadata = _Fields("vhosts", entry.mapping("metadata"), None)
    default_queue_type = metadata["default_queue_type"] or entry["default_queue_type"] or None
    if default_queue_type == UNDEFINED:
        default_queue_type = None
    if default_queue_type not in (None, *QUEUE_KINDS):
        raise entry.wrong("default_queue_type", default_queue_type)
    return PutVhost(
        name=entry.string("name"),
        description=entry.string("description", metadata.string("description", "")),
        tags=entry.strings("tags") or metadata.strings("tags"),
        default_queue_type=default_queue_type if isinstance(default_queue_type, str) else None,
        tracing=entry.boolean("tracing"),
        protected_from_deletion=metadata.boolean("protected_from_deletion"),
    )


def _set_permissions(entry: _Fields) -> MetadataCommand:
    return SetPermissions(
        user=entry.string("user"),
        vhost=entry.string("vhost"),
        configure=entry.string("configure"),
        write=entry.string("write"),
        read=entry.string("read"),
    )


def _set_topic_permissions(entry: _Fields) -> MetadataCommand:
    return SetTopicPermissions(
        user=entry.string("user"),
        vhost=entry.string("vhost"),
        exchange=entry.string("exchange"),
        write=entry.string("write"),
        read=entry.string("read"),
    )


def _set_policy(entry: _Fields) -> MetadataCommand:
    return SetPolicy(
        vhost=entry.vhost,
        name=entry.string("name"),
        pattern=entry["pattern"],
        definition=entry["definition"],
        priority=entry["priority"],
        apply_to=entry["apply-to"],
    )


def _set_parameter(entry: _Fields, user: str) -> MetadataCommand:
    component = entry.string("component")
    return SetParameter(
        vhost=entry.vhost,
        component=component,
        name=entry.string("name"),
        value=entry.limits("value") if component == VHOST_LIMITS else entry["value"],
        user=user,
    )


def _declare_exchange(entry: _Fields) -> MetadataCommand | None:
    name = entry.string("name")
    if not name or name.startswith(RESERVED_PREFIX):
        return None
    return DeclareExchange(
        vhost=entry.vhost,
        name=name,
        type=entry.string("type"),
        durable=entry.boolean("durable", default=True),
        auto_delete=entry.boolean("auto_delete"),
        internal=entry.boolean("internal"),
        arguments=entry.arguments(),
        user=IMPORTER,
    )


def _declare_queue(entry: _Fields) -> MetadataCommand | None:
    name = entry.string("name")
    if name.startswith(RESERVED_PREFIX):
        return None
    return DeclareQueue(
        vhost=entry.vhost,
        name=name,
        durable=entry.boolean("durable", default=True),
        auto_delete=entry.boolean("auto_delete"),
        arguments=entry.arguments(),
        user=IMPORTER,
    )


def _bind(entry: _Fields) -> MetadataCommand | None:
    return Bind(
        vhost=entry.vhost,
        source=entry.string("source"),
        destination=entry.string("destination"),
        is_to_queue=entry.string("destination_type") == "queue",
        routing_key=entry.optional_string("routing_key"),
        arguments=entry.arguments(),
    )
