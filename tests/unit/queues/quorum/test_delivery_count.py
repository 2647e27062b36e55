"""The headers with the number of earlier deliveries."""

from warren.model.message import Message, encode_address
from warren.queues.quorum.delivery_count import with_delivery_count
from warren.wire.properties import BasicProperties


def counted(count: int, acquired: int, **properties: object) -> BasicProperties:
    """The properties of a message with these properties, after it got its counts."""
    message = Message.compose(encode_address("", "q"), BasicProperties(**properties), b"a\xce", now=0)
    return with_delivery_count(message, count, acquired).properties()


def test_a_message_that_was_never_delivered_gets_one_count_and_keeps_its_other_properties() -> None:
    properties = counted(0, 0, content_type="text/plain", delivery_mode=1)
    assert properties.headers == {"x-delivery-count": 0}
    assert (properties.content_type, properties.delivery_mode) == ("text/plain", 1)


def test_the_headers_are_sorted_and_the_counts_replace_those_of_the_publisher() -> None:
    headers = {"z": 1, "x-delivery-count": "mine", "x-acquired-count": 7, "a": [2]}
    assert list((counted(3, 5, headers=headers).headers or {}).items()) == [
        ("a", [2]),
        ("x-acquired-count", 5),
        ("x-delivery-count", 3),
        ("z", 1),
    ]
