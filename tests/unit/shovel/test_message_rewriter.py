"""What a shovel changes in messages, compared with what RabbitMQ 3.10.8 has sent."""

from tests.clock import ManualClock

from warren.limits_relay import SHOVELLED_ENTRIES_MAX
from warren.metadata.shovel_definition import ShovelDefinition, ShovelDestination, ShovelSource
from warren.model.message import Message, encode_address
from warren.shovel.message_rewriter import MessageRewriter, forward_entry
from warren.shovel.shovel_settings import ShovelSettings
from warren.wire.properties import BasicProperties
from warren.wire.table import Int32

NOW = 1_795_438_723_456
SOURCE = "amqp://127.0.0.1:44305/%2f"
DESTINATION = "amqp://127.0.0.1:38693/%2f"
# What RabbitMQ 3.10.8 has sent (measured): the property lists of messages with and without headers.
SHOVELLED = (
    b"\x0bx-shovelledA\x00\x00\x00\xd2F\x00\x00\x00\xcd\x0cshovelled-byS\x00\x00\x00\x0ctest21617@vm"
    b"\x0bshovel-typeS\x00\x00\x00\x07dynamic\x0bshovel-nameS\x00\x00\x00\x01a"
    b"\x0cshovel-vhostS\x00\x00\x00\x01/\x07src-uriS\x00\x00\x00\x1aamqp://127.0.0.1:44305/%2f"
    b"\x08dest-uriS\x00\x00\x00\x1aamqp://127.0.0.1:38693/%2f"
    b"\tsrc-queueS\x00\x00\x00\x02s1\ndest-queueS\x00\x00\x00\x02d1"
    b"\x15x-shovelled-timestampl\x00\x00\x00\x00k\x048\x83"
)
WITHOUT_PROPERTIES = b" \x00\x00\x00\x01\x02" + SHOVELLED
WITH_HEADERS = b"0\x00\x00\x00\x01\r\x01al\x00\x00\x00\x00\x00\x00\x00\x01" + SHOVELLED + b"\x02"
STATIC = (
    b"0\x00\x00\x00\x00\xcb\x0bx-shovelledA\x00\x00\x00\x9bF\x00\x00\x00\x96"
    b"\x0cshovelled-byS\x00\x00\x00\x0ctest24818@vm\x0bshovel-typeS\x00\x00\x00\x06static"
    b"\x0bshovel-nameS\x00\x00\x00\tmy_static\x07src-uriS\x00\x00\x00\x16amqp://127.0.0.1:45419"
    b"\x08dest-uriS\x00\x00\x00\x16amqp://127.0.0.1:44089"
    b"\x15x-shovelled-timestampl\x00\x00\x00\x00k\x049\x8f\x02"
)


def settings(source: dict[str, object] | None = None, **destination: object) -> ShovelSettings:
    """The shovel `a` from the queue s1, or another source, to a destination."""
    definition = ShovelDefinition(
        source=ShovelSource(uris=(SOURCE,), **(source or {"queue": "s1"})),  # type: ignore[arg-type]
        destination=ShovelDestination(uris=(DESTINATION,), **destination),  # type: ignore[arg-type]
        reconnect_delay_s=5,
    )
    return ShovelSettings(name="a", vhost="/", user="guest", definition=definition)


def rewriter(shovel: ShovelSettings, size_max: int = 1000) -> MessageRewriter:
    entry = forward_entry(shovel, "test21617@vm", SOURCE, DESTINATION)
    return MessageRewriter(shovel.definition.destination, entry, ManualClock(NOW).turn, size_max)


def message(properties: BasicProperties | None = None, exchange: str = "", key: str = "s1") -> Message:
    property_list = (properties or BasicProperties()).encode_list()
    return Message(encode_address(exchange, key), property_list, b"hello\xce", NOW)


def address(sent: Message) -> tuple[str, str]:
    return sent.exchange, sent.routing_key


def test_the_headers_are_byte_for_byte_those_of_rabbitmq() -> None:
    shovel = settings(queue="d1", adds_forward_headers=True, adds_timestamp_header=True)
    assert rewriter(shovel).rewrite(message()).property_list == WITHOUT_PROPERTIES
    sent = rewriter(shovel).rewrite(message(BasicProperties(headers={"a": 1}, delivery_mode=2)))
    assert sent.property_list == WITH_HEADERS
    assert sent.content == b"hello\xce"


def test_a_static_shovel_names_neither_a_vhost_nor_its_queues() -> None:
    dynamic = settings(
        adds_forward_headers=True, adds_timestamp_header=True, publish_properties={"delivery_mode": 2}
    )
    shovel = ShovelSettings(name="my_static", vhost="", user="", definition=dynamic.definition)
    entry = forward_entry(shovel, "test24818@vm", "amqp://127.0.0.1:45419", "amqp://127.0.0.1:44089")
    turn = ManualClock(0x6B04398F * 1000).turn
    changed = MessageRewriter(shovel.definition.destination, entry, turn, 1000)
    assert changed.rewrite(message()).property_list == STATIC


def test_what_is_not_asked_for_is_the_same_object() -> None:
    received = message(BasicProperties(headers={"z": 1, "a": 2}))
    assert rewriter(settings()).rewrite(received) is received


def test_only_the_address_changes_if_nothing_else_is_asked_for() -> None:
    received = message(BasicProperties(headers={"z": 1, "a": 2}))
    sent = rewriter(settings(queue="d1")).rewrite(received)
    assert sent.property_list is received.property_list
    assert sent.content is received.content
    assert address(sent) == ("", "d1")


def test_exchange_and_key_are_kept_unless_they_are_given() -> None:
    received = message(exchange="x", key="k")
    assert address(rewriter(settings()).rewrite(received)) == ("x", "k")
    assert address(rewriter(settings(exchange="y")).rewrite(received)) == ("y", "k")
    assert address(rewriter(settings(exchange_key="l")).rewrite(received)) == ("x", "l")
    assert address(rewriter(settings(exchange="", exchange_key="")).rewrite(received)) == ("", "")


def test_consecutive_messages_with_other_addresses_are_told_apart() -> None:
    changed = rewriter(settings(exchange="y"))
    keys = [changed.rewrite(message(exchange="x", key=key)).routing_key for key in ("a", "a", "b", "a")]
    assert keys == ["a", "a", "b", "a"]


def test_consecutive_messages_with_other_properties_are_told_apart() -> None:
    changed = rewriter(settings(queue="d1", publish_properties={"priority": 3}))
    sent = [changed.rewrite(message(BasicProperties(type=kind))).properties() for kind in ("a", "a", "b")]
    assert [(one.type, one.priority) for one in sent] == [("a", 3), ("a", 3), ("b", 3)]


def test_adding_a_header_sorts_the_headers_and_not_the_tables_in_them() -> None:
    headers = {"z": Int32(1), "a": {"y": Int32(1), "b": Int32(2)}}
    sent = rewriter(settings(queue="d1", adds_timestamp_header=True)).rewrite(
        message(BasicProperties(headers=headers))
    )
    found = sent.properties().headers
    assert found is not None
    assert list(found) == ["a", "x-shovelled-timestamp", "z"]
    assert list(found["a"]) == ["y", "b"]


def test_the_entry_comes_before_those_of_earlier_shovels() -> None:
    received = message(BasicProperties(headers={"x-shovelled": [{"q": "r"}]}))
    sent = rewriter(settings(queue="d1", adds_forward_headers=True)).rewrite(received)
    found = (sent.properties().headers or {})["x-shovelled"]
    assert [one.get("shovel-name") for one in found] == ["a", None]


def test_a_header_that_should_have_been_an_array_is_kept_apart() -> None:
    received = message(BasicProperties(headers={"x-shovelled": "forged"}))
    sent = rewriter(settings(queue="d1", adds_forward_headers=True)).rewrite(received)
    found = sent.properties().headers or {}
    assert len(found["x-shovelled"]) == 1
    assert found["x-invalid-headers"] == {"x-shovelled": ["forged"]}


def test_an_exchange_is_named_with_its_key() -> None:
    shovel = settings(source={"exchange": "e"}, exchange="f")
    entry = forward_entry(shovel, "c", SOURCE, DESTINATION)
    assert list(entry)[6:] == ["src-exchange", "src-exchange-key", "dest-exchange"]


def test_properties_that_cannot_be_decoded_pass_unchanged() -> None:
    received = Message(encode_address("", "s1"), b" \x00\x00\x00\x00\x09", b"hello\xce", NOW)
    sent = rewriter(settings(queue="d1", adds_forward_headers=True)).rewrite(received)
    assert sent.property_list == received.property_list
    assert address(sent) == ("", "d1")


def test_a_message_without_room_for_the_headers_keeps_its_own() -> None:
    properties = {"app_id": "moved"}
    shovel = settings(queue="d1", adds_forward_headers=True, publish_properties=properties)
    source = message(BasicProperties(headers={"n": "x" * 400}))
    for size_max, expected in ((700, True), (500, False)):
        sent = rewriter(shovel, size_max).rewrite(source).properties()
        assert sent.app_id == "moved"
        assert sent.headers is not None
        assert sent.headers["n"] == "x" * 400
        assert ("x-shovelled" in sent.headers) is expected


def test_shovels_that_send_a_message_round_do_not_let_its_headers_grow_without_end() -> None:
    changed = rewriter(settings(adds_forward_headers=True), size_max=1_000_000)
    sent = message()
    for _ in range(10 * SHOVELLED_ENTRIES_MAX):
        sent = changed.rewrite(sent)
    entries = (sent.properties().headers or {})["x-shovelled"]
    assert isinstance(entries, list)
    assert len(entries) == SHOVELLED_ENTRIES_MAX
