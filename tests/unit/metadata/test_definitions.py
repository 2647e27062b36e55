"""Import and export of the definitions document."""

import json
from collections.abc import Callable

import pytest
from tests.exported import export_definitions, export_vhost_definitions

from warren.metadata.commands import (
    DONE,
    Bind,
    DeclareExchange,
    DeclareQueue,
    MetadataCommand,
    Outcome,
    PutVhost,
    RemoveVhost,
    Reply,
    SetParameter,
)
from warren.metadata.defaults import DefaultsSettings, initial_commands
from warren.metadata.definitions import json_value
from warren.metadata.definitions_import import DefinitionsError, import_commands
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.metadata.users import PasswordHash
from warren.wire.table import Float32, Int8, Int32, Timestamp, UInt16

Apply = Callable[[MetadataCommand], Reply]

# As exported by the HTTP API of RabbitMQ 3.10.8, reduced to the parts that matter here.
DOCUMENT = json.loads("""
{"rabbit_version":"3.10.8","rabbitmq_version":"3.10.8","product_name":"RabbitMQ","product_version":"3.10.8",
 "users":[
  {"name":"bob","password_hash":"cYwGJW27q9+YZDHgF+Dvfi9W3MmYKsA0JPWqBjX6NAigJARf",
   "hashing_algorithm":"rabbit_password_hashing_sha256","tags":["management","policymaker"],"limits":{}},
  {"name":"alice","password_hash":"vlqRbUuS5AjatGtzHW5g/c6g4CaA6YaWhuTsNEMf4hXDNufR",
   "hashing_algorithm":"rabbit_password_hashing_sha256","tags":["monitoring"],
   "limits":{"max-channels":100,"max-connections":10}}],
 "vhosts":[{"name":"snap","metadata":{"description":"a snapshot","tags":["qa"]}},{"name":"/"}],
 "permissions":[{"user":"bob","vhost":"snap","configure":".*","write":".*","read":".*"}],
 "topic_permissions":[{"user":"alice","vhost":"snap","exchange":"amq.topic","write":"^a","read":".*"}],
 "parameters":[
  {"value":{"dest-queue":"q.dst","dest-uri":"amqp://","src-queue":"q.src","src-uri":"amqp://"},
   "vhost":"snap","component":"shovel","name":"shov"},
  {"value":{"max-queues":500,"max-connections":500},"vhost":"snap","component":"vhost-limits","name":"limits"},
  {"value":{"pattern":"^q.policy","definition":{"expires":36000000,"max-length":500},"priority":1,
   "apply-to":"queues"},"vhost":"snap","component":"operator_policy","name":"oppol"}],
 "global_parameters":[{"name":"gp","value":{"a":1,"b":["x"]}}],
 "policies":[{"vhost":"snap","name":"pol","pattern":"^q.policy","apply-to":"queues",
   "definition":{"max-length":1000,"message-ttl":60000},"priority":3}],
 "queues":[
  {"name":"q.full","vhost":"snap","durable":true,"auto_delete":false,
   "arguments":{"x-dead-letter-exchange":"ex.fanout","x-max-length":100,"x-single-active-consumer":true}},
  {"name":"q.classic","vhost":"snap","durable":true,"auto_delete":false,"arguments":{}}],
 "exchanges":[
  {"name":"ex.direct","vhost":"snap","type":"direct","durable":true,"auto_delete":false,"internal":false,
   "arguments":{}},
  {"name":"ex.internal","vhost":"snap","type":"topic","durable":false,"auto_delete":true,"internal":true,
   "arguments":{"alternate-exchange":"ex.fanout"}}],
 "bindings":[
  {"source":"amq.headers","vhost":"snap","destination":"q.classic","destination_type":"queue",
   "routing_key":"","arguments":{"h1":"v1","n":1,"x-match":"all"}},
  {"source":"ex.direct","vhost":"snap","destination":"ex.internal","destination_type":"exchange",
   "routing_key":"ee","arguments":{}}]}
""")
SECTIONS = (
    "users",
    "permissions",
    "topic_permissions",
    "parameters",
    "global_parameters",
    "policies",
    "queues",
    "exchanges",
    "bindings",
)


def no_hash(password: str) -> PasswordHash:
    return PasswordHash(b"hashed " + password.encode(), "rot13")


def loaded(document: object, *, vhost: str | None = None, into: Metadata | None = None) -> Metadata:
    metadata = into or Metadata()
    local = LocalProposals(metadata, lambda: 0)
    for command in import_commands(document, no_hash, vhost=vhost):
        local.apply(command)
    return metadata


def as_sets(document: dict[str, object]) -> dict[str, set[str]]:
    return {
        section: {json.dumps(entry, sort_keys=True) for entry in entries}
        for section, entries in document.items()
        if isinstance(entries, list) and section in SECTIONS
    }


def test_a_document_of_rabbitmq_is_exported_as_it_was_imported() -> None:
    assert as_sets(export_definitions(loaded(DOCUMENT), version="3.10.8")) == as_sets(DOCUMENT)


def test_exporting_an_imported_document_gives_equal_bytes() -> None:
    first = export_definitions(loaded(DOCUMENT), version="3.10.8")
    second = export_definitions(loaded(json.loads(json.dumps(first))), version="3.10.8")
    assert json.dumps(first) == json.dumps(second)
    assert first["vhosts"] == [
        {"name": "snap", "metadata": {"description": "a snapshot", "tags": ["qa"]}},
        {"name": "/", "metadata": {"description": "", "tags": []}},
    ]


def test_the_document_of_a_vhost_can_be_imported_into_another_vhost() -> None:
    metadata = loaded(DOCUMENT)
    snap = metadata.vhost("snap")
    slash = metadata.vhost("/")
    assert snap is not None
    assert slash is not None
    document = export_vhost_definitions(snap, version="3.10.8")
    loaded(document, vhost="/", into=metadata)
    copied = export_vhost_definitions(slash, version="3.10.8")
    for section in ("queues", "exchanges", "bindings"):
        assert copied[section] == document[section]
    assert slash.policies.by_name == snap.policies.by_name


def test_exclusive_and_server_named_queues_are_not_exported(apply: Apply, metadata: Metadata) -> None:
    apply(DeclareQueue(vhost="v", name="exclusive", owner="c"))
    apply(DeclareQueue(vhost="v", name="amq.gen-1"))
    document = export_definitions(metadata, version="3.10.8")
    assert (document["queues"], document["exchanges"], document["bindings"]) == ([], [], [])


def test_plain_passwords_are_hashed_and_old_documents_are_accepted() -> None:
    document = {
        "rabbit_version": "3.5.7",
        "users": [
            {"name": "a", "password": "secret", "tags": "administrator, management"},
            {"name": "b", "password_hash": "AAAA", "tags": ""},
        ],
    }
    users = loaded(document).users.by_name
    assert users["a"].password_hash == b"hashed secret"
    assert users["a"].hashing_algorithm == "rot13"
    assert users["a"].tags == ("administrator", "management")
    assert (users["b"].password_hash, users["b"].tags) == (b"\0\0\0", ())
    assert users["b"].hashing_algorithm == "rabbit_password_hashing_md5"


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ([], "not_json"),
        ({"queues": {}}, "queues is not a list"),
        ({"queues": ["q"]}, "an entry of queues is not an object"),
        ({"queues": [{"name": "q", "vhost": 5}]}, "queue 'q' in vhost '5': vhost cannot be 5"),
        ({"queues": [{"name": "q"}]}, "queue 'q': vhost is missing"),
        ({"queues": [{"name": "q", "vhost": True}]}, "queue 'q' in vhost 'true': vhost cannot be true"),
        (
            {"queues": [{"name": "q", "vhost": "v", "durable": "yes"}]},
            "queue 'q' in vhost 'v': durable cannot be 'yes'",
        ),
        (
            {"queues": [{"name": "q", "vhost": "v", "arguments": {"a": None}}]},
            "queue 'q' in vhost 'v': arguments cannot be 'null_not_allowed'",
        ),
        (
            {"users": [{"name": "u", "password_hash": "!", "tags": []}]},
            "user 'u': password_hash cannot be 'anything but base64'",
        ),
        ({"users": [{"name": "u", "password_hash": "", "tags": [5]}]}, "user 'u': tags cannot be [5]"),
        ({"users": [{"name": "u", "password_hash": ""}]}, "user 'u': tags is missing"),
        ({"users": [{"name": "u", "password_hash": "", "tags": None}]}, "user 'u': tags is missing"),
        (
            {"vhosts": [{"name": "v", "metadata": {"default_queue_type": "nope"}}]},
            "virtual host 'v': default_queue_type cannot be 'nope'",
        ),
        (
            {"vhosts": [{"name": "v", "default_queue_type": 3}]},
            "virtual host 'v': default_queue_type cannot be 3",
        ),
    ],
)
def test_an_invalid_entry_is_named(document: object, text: str) -> None:
    with pytest.raises(DefinitionsError) as caught:
        import_commands(document, no_hash)
    assert str(caught.value) == text


@pytest.mark.parametrize(("value", "tags"), [(True, ("administrator",)), (False, ())])
def test_a_user_of_an_old_document_is_an_administrator_if_it_says_so(
    value: bool, tags: tuple[str, ...]
) -> None:
    document = {"users": [{"name": "u", "password_hash": "", "administrator": value}]}
    assert loaded(document).users.by_name["u"].tags == tags


@pytest.mark.parametrize("entry", [{"default_queue_type": ""}, {"metadata": {"default_queue_type": ""}}])
def test_an_empty_default_queue_type_of_a_document_is_none(entry: dict[str, object]) -> None:
    vhost = loaded({"vhosts": [{"name": "v", **entry}]}).vhosts.by_name["v"]
    assert vhost.default_queue_type is None


def test_an_invalid_binding_is_named_by_its_ends() -> None:
    binding = {"source": "x", "vhost": "v", "destination": "q", "destination_type": "queue", "routing_key": 5}
    left_out: list[str] = []
    assert import_commands({"bindings": [binding]}, no_hash, left_out=left_out) == []
    assert left_out == [
        "binding from exchange 'x' to queue 'q' with key '5' in vhost 'v': routing_key cannot be 5"
    ]


@pytest.mark.parametrize("key", [{}, {"routing_key": None}])
def test_a_binding_needs_no_routing_key(key: dict[str, None]) -> None:
    binding = {"source": "x", "vhost": "v", "destination": "q", "destination_type": "queue"}
    (bind,) = import_commands({"bindings": [binding | key]}, no_hash)
    assert bind == Bind(vhost="v", source="x", destination="q")


def test_exchanges_and_queues_that_do_not_say_so_are_durable() -> None:
    document = {
        "exchanges": [{"name": "x", "vhost": "v", "type": "fanout"}],
        "queues": [{"name": "q", "vhost": "v"}],
    }
    exchange, queue = import_commands(document, no_hash)
    assert isinstance(exchange, DeclareExchange)
    assert isinstance(queue, DeclareQueue)
    assert (exchange.durable, queue.durable) == (True, True)


@pytest.mark.parametrize("undefined", [None, [], "undefined", {"max-connections": "undefined"}])
def test_limits_that_are_not_set_are_no_limits(undefined: object) -> None:
    document = {
        "users": [{"name": "u", "password_hash": "", "tags": [], "limits": undefined}],
        "vhosts": [{"name": "v", "limits": [], "default_queue_type": "undefined"}],
        "parameters": [{"vhost": "v", "component": "vhost-limits", "name": "limits", "value": undefined}],
    }
    metadata = loaded(document)
    vhost = metadata.vhosts.by_name["v"]
    assert (metadata.users.by_name["u"].limits, vhost.limits, vhost.default_queue_type) == ({}, {}, None)


def test_a_protected_virtual_host_cannot_be_deleted_and_is_exported_as_one() -> None:
    entry = {
        "name": "v",
        "metadata": {
            "description": "ledger",
            "tags": [],
            "default_queue_type": "quorum",
            "protected_from_deletion": True,
        },
    }
    metadata = loaded({"vhosts": [entry]})
    local = LocalProposals(metadata, lambda: 0)
    refused = local.apply(RemoveVhost(name="v"))
    text = "Refusing to delete virtual host 'v' because it is protected from deletion"
    assert refused == Reply(Outcome.REFUSED, text)
    assert export_definitions(metadata, version="4.1.0")["vhosts"] == [entry]
    local.apply(PutVhost(name="v"))
    assert local.apply(RemoveVhost(name="v")) == DONE


def test_the_field_type_of_a_queue_is_not_read() -> None:
    """RabbitMQ 4.3.6 exports it, and reads only the arguments."""
    vhost = {"name": "v"}
    entry = {"name": "q", "vhost": "v", "durable": True, "auto_delete": False, "type": "quorum"}
    queues = [{**entry, "arguments": {}}, {**entry, "name": "r", "arguments": {"x-queue-type": "stream"}}]
    found = loaded({"vhosts": [vhost], "queues": queues}).vhosts.by_name["v"].topology.queues
    assert {name: queue.kind for name, queue in found.items()} == {"q": "classic", "r": "stream"}


def test_an_empty_broker_has_the_user_guest_and_the_default_vhost() -> None:
    metadata = Metadata()
    local = LocalProposals(metadata, lambda: 0)
    for command in initial_commands(DefaultsSettings(), no_hash):
        local.apply(command)
    assert metadata.users.by_name["guest"].tags == ("administrator",)
    permission = metadata.permissions.get("guest", "/")
    assert permission is not None
    assert (permission.configure, permission.write, permission.read) == (".*", ".*", ".*")


@pytest.mark.parametrize("value", [Int8(2), Int32(2), UInt16(2), Timestamp(2)])
def test_integers_of_every_type_become_json_integers(value: int) -> None:
    assert json_value({"a": [value]}) == {"a": [2]}
    assert type(json_value(value)) is int


def test_32_bit_floats_become_json_numbers() -> None:
    assert type(json_value(Float32(0.5))) is float
    assert json_value(True) is True


def test_parameters_are_set_by_the_user_who_imports_them() -> None:
    commands = import_commands(DOCUMENT, no_hash, user="alice")
    users = {command.user for command in commands if isinstance(command, SetParameter)}
    assert users == {"alice"}
