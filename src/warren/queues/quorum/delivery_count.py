"""The headers of messages of a quorum queue that say how often they came back.

x-delivery-count | deliveries that count towards the delivery limit: RabbitMQ 3.10.8, measured
x-acquired-count | all earlier deliveries: RabbitMQ 4

A message has them when it is delivered again; as the answer to basic.get it always has `x-delivery-count`.
They are longs (`l`) and replace those that the publisher set. The headers are sorted by name then, as
RabbitMQ does; a first delivery leaves them as they were published.
"""

from warren.model.message import Message

DELIVERY_COUNT_HEADER = "x-delivery-count"
ACQUIRED_COUNT_HEADER = "x-acquired-count"


def with_delivery_count(message: Message, count: int, acquired: int) -> Message:
    """Copy `message` with its headers for `acquired` earlier deliveries, of which `count` count."""
    properties = message.properties()
    headers = {**(properties.headers or {}), DELIVERY_COUNT_HEADER: count}
    if acquired:
        headers[ACQUIRED_COUNT_HEADER] = acquired
    properties.headers = dict(sorted(headers.items()))
    return message.with_property_list(properties.encode_list())
