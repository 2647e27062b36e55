"""How often a link delivers a message, and why not exactly once."""

import pytest

from warren.model.message_position import POSITIONS_CAPABILITY
from warren.relay.delivery_guarantee import Guarantee, exactly_once

WARREN: dict[str, object] = {POSITIONS_CAPABILITY: True}
RABBITMQ: dict[str, object] = {"product": "RabbitMQ"}


def test_two_brokers_that_know_positions_deliver_exactly_once() -> None:
    assert exactly_once(WARREN, WARREN) == (Guarantee.EXACTLY_ONCE, "")


@pytest.mark.parametrize(
    ("source", "destination", "reason"),
    [
        (None, None, "it is not connected to both brokers"),
        (WARREN, None, "it is not connected to both brokers"),
        (RABBITMQ, WARREN, "the source is not Warren, or of a version without message positions"),
        (WARREN, RABBITMQ, "the destination is not Warren, or of a version without message positions"),
        (
            RABBITMQ,
            {POSITIONS_CAPABILITY: 1},
            "the source and the destination are not Warren, or of a version without message positions",
        ),
    ],
)
def test_otherwise_it_is_at_least_once_and_the_reason_says_whose_fault_it_is(
    source: dict[str, object] | None, destination: dict[str, object] | None, reason: str
) -> None:
    assert exactly_once(source, destination) == (Guarantee.AT_LEAST_ONCE, reason)
