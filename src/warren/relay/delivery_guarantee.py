"""How often a link delivers a message: what its settings ask for, and what both brokers can do."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from warren.model.message_position import POSITIONS_CAPABILITY


class Guarantee(StrEnum):
    """How often each message of the source arrives at the destination."""

    EXACTLY_ONCE = "exactly once"
    AT_LEAST_ONCE = "at least once"
    AT_MOST_ONCE = "at most once"


class DeliveryGuarantee(NamedTuple):
    """The guarantee of a link, and why it is not exactly once although that was asked for; else empty."""

    guarantee: Guarantee
    reason: str


def exactly_once(
    source: Mapping[str, object] | None, destination: Mapping[str, object] | None
) -> DeliveryGuarantee:
    """The delivery of a link that asks for exactly once; with the server properties of what is connected."""
    if source is None or destination is None:
        return DeliveryGuarantee(Guarantee.AT_LEAST_ONCE, "it is not connected to both brokers")
    without = [
        end
        for end, properties in (("source", source), ("destination", destination))
        if properties.get(POSITIONS_CAPABILITY) is not True
    ]
    if not without:
        return DeliveryGuarantee(Guarantee.EXACTLY_ONCE, "")
    ends = " and the ".join(without)
    verb = "is" if len(without) == 1 else "are"
    return DeliveryGuarantee(
        Guarantee.AT_LEAST_ONCE, f"the {ends} {verb} not Warren, or of a version without message positions"
    )
