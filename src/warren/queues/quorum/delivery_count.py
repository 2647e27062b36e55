"""The header `x-delivery-count` in messages of a quorum queue: how often they came back (RabbitMQ, measured).

A message has it when it is delivered again, and always as the answer to basic.get. It is a long (`l`) and
replaces one that the publisher set. The headers are sorted by name then, as RabbitMQ does; a first delivery
leaves them as they were published.
"""

from warren.model.message import Message

DELIVERY_COUNT_HEADER = "x-delivery-count"


def with_delivery_count(message: Message, count: int) -> Message:
    """Copy `message` with its header for `count` earlier deliveries."""
    properties = message.properties()
    headers = {**(properties.headers or {}), DELIVERY_COUNT_HEADER: count}
    properties.headers = dict(sorted(headers.items()))
    return message.with_property_list(properties.encode_list())
