"""The properties key of a binding: RabbitMQ's encoding, distinct for distinct arguments."""

import pytest

from warren.management.views.bindings import binding_view, properties_key
from warren.metadata.records import BindingRecord, arguments_bytes
from warren.wire.table import Int32


def record(routing_key: str, **arguments: object) -> BindingRecord:
    return BindingRecord("x", True, "q", routing_key, arguments_bytes(arguments))


@pytest.mark.parametrize(
    ("routing_key", "key"),
    [
        ("", "~"), ("k", "k"), ("a.#", "a.%23"), ("a/b", "a%2Fb"), ("~", "%7E"),
        ("ü ~+%", "%C3%BC+%7E%2B%25"),
    ],
)  # fmt: skip
def test_a_routing_key_is_quoted_as_rabbitmq_does(routing_key: str, key: str) -> None:
    assert properties_key(record(routing_key)) == key


def test_bindings_with_different_arguments_have_different_keys() -> None:
    keys = {
        properties_key(record("k")),
        properties_key(record("k", a=1)),
        properties_key(record("k", a=Int32(1))),
        properties_key(record("k", b=1)),
        properties_key(record("", a=1)),
    }
    assert len(keys) == 5
    # The hash of RabbitMQ 3.10.8: clients store the key of a binding, so it must not change.
    assert properties_key(record("", **{"x-match": "all"})) == "~3ujGfg"
    assert properties_key(record("k", n=1)) == "k~hadFaw"
    assert properties_key(record("k", a=1, b=2)) == properties_key(record("k", b=2, a=1))


def test_a_binding_is_shown_with_its_key() -> None:
    assert binding_view(("v", record("k", a=[1]))) == {
        "source": "x", "vhost": "v", "destination": "q", "destination_type": "queue", "routing_key": "k",
        "arguments": {"a": [1]}, "properties_key": properties_key(record("k", a=[1])),
    }  # fmt: skip
