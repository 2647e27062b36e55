"""The BCC header, and nothing else, is removed from messages that leave the broker."""

from tests.unit.queues.samples import sent

from warren.model.blind_copies import strip_bcc, without_bcc
from warren.model.message import HAS_HEADERS
from warren.wire.properties import BasicProperties
from warren.wire.table import Int32


def test_bcc_is_removed_and_other_headers_stay() -> None:
    headers = {"BCC": ["secret"], "CC": ["open"], "n": Int32(7)}
    before = BasicProperties(headers=headers, delivery_mode=2, message_id="m").encode_list()
    properties = BasicProperties.decode_list(strip_bcc(before))
    assert properties.headers == {"CC": ["open"], "n": 7}
    assert isinstance(properties.headers["n"], Int32)
    assert (properties.delivery_mode, properties.message_id) == (2, "m")


def test_the_header_table_stays_when_bcc_was_its_only_entry() -> None:
    data = strip_bcc(BasicProperties(headers={"BCC": []}).encode_list())
    assert BasicProperties.decode_list(data).headers == {}


def test_a_property_list_without_bcc_is_returned_unchanged() -> None:
    for properties in (
        BasicProperties(),
        BasicProperties(headers={"CC": ["a"]}),
        BasicProperties(message_id="\x03BCC"),
    ):
        data = properties.encode_list()
        assert strip_bcc(data) is data


def test_a_message_without_bcc_is_returned_unchanged() -> None:
    for headers in ({}, {"CC": ["b"]}):
        message = sent(headers=headers)
        assert message.flags & HAS_HEADERS
        assert without_bcc(message) is message
    message = sent()
    assert without_bcc(message) is message


def test_a_message_whose_bcc_was_removed_is_otherwise_equal() -> None:
    message = without_bcc(sent(headers={"BCC": ["b"], "n": 1}, priority=3, delivery_mode=2))
    assert (message.headers(), message.priority, message.is_persistent) == ({"n": 1}, 3, True)
