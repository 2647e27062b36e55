"""The exchange type `x-federation-upstream`: what a broker that federates one of our exchanges reads from.

The other broker, the downstream, declares it beside the federated exchange and binds its own queue to it. The
exchange routes as a fanout, but not what that downstream must not receive: each broker that a message passes
prepends an entry to its header `x-received-from`, and neither may there be as many entries as `x-max-hops`,
nor one of the downstream itself. Arguments and texts are those of RabbitMQ 3.10.8, measured.
"""

from collections.abc import Iterable, Mapping

from warren.errors import PreconditionFailed
from warren.model.message import HAS_HEADERS, Message
from warren.routing.exchange import BY_PROPERTIES, Binding
from warren.routing.fanout import FanoutExchange
from warren.routing.verdict import Verdict, shown
from warren.wire.properties import decode_some_headers
from warren.wire.table import type_name

RECEIVED_FROM = "x-received-from"
MAX_HOPS = "x-max-hops"
DOWNSTREAM_NAME = "x-downstream-name"
DOWNSTREAM_VHOST = "x-downstream-vhost"
# The entry of a broker has these two among its fields.
CLUSTER_NAME = "cluster-name"
VHOST = "vhost"

_LONG = "long"
_WANTED = {RECEIVED_FROM: 0}
# The encoded name of the header in a field table.
_ENCODED = b"\x0fx-received-from"


class FederationUpstreamExchange(FanoutExchange):
    """Federation upstream helper exchange"""

    __slots__ = ("_cluster_name", "_max_hops", "_vhost")

    type_name = "x-federation-upstream"
    internal_purpose = "federation"
    compared_arguments = (MAX_HOPS,)

    def prepare(self) -> None:
        super().prepare()
        arguments = self.settings.arguments
        max_hops = arguments.get(MAX_HOPS)
        self._max_hops = max_hops if isinstance(max_hops, int) else 0
        # Of another type they equal nothing, as in RabbitMQ.
        self._cluster_name = arguments.get(DOWNSTREAM_NAME)
        self._vhost = arguments.get(DOWNSTREAM_VHOST)

    @property
    def decides(self) -> int:
        """BY_PROPERTIES: messages with the same key may have passed other brokers."""
        return BY_PROPERTIES

    @staticmethod
    def validate_arguments(arguments: Mapping[str, object]) -> None:
        """Raise PreconditionFailed unless `x-max-hops` is a 64-bit integer."""
        if MAX_HOPS not in arguments:
            raise PreconditionFailed(f"Argument {MAX_HOPS} missing")
        if type_name(arguments[MAX_HOPS]) != _LONG:
            raise PreconditionFailed(f"Argument {MAX_HOPS} must be of type {_LONG}")

    def route(self, routing_key: str, message: Message) -> Iterable[object]:
        """All bound destinations, unless the downstream must not receive `message`."""
        passed = received_from(message)
        if passed is None or is_forwarded(passed, self._max_hops, self._cluster_name, self._vhost):
            return self._destinations
        return ()

    def explain(self, binding: Binding, routing_key: str, message: Message) -> Verdict:
        """Explains whether the downstream may receive the message."""
        passed = received_from(message)
        if passed is None:
            return Verdict(True, "the message was published at this broker")
        if len(passed) >= self._max_hops:
            return Verdict(
                False, f"the message has passed {len(passed)} links, of at most {self._max_hops}", 0.0
            )
        if has_passed(passed, self._cluster_name, self._vhost):
            where = f"{shown(self._cluster_name)}, virtual host {shown(self._vhost)}"
            return Verdict(False, f"the message comes from {where}", 0.0)
        return Verdict(True, f"the message has passed {len(passed)} links, of at most {self._max_hops}")


def received_from(message: Message) -> list[object] | None:
    """The entries of the brokers that `message` has passed; None if it has no such header."""
    if not message.flags & HAS_HEADERS or message.property_list.find(_ENCODED) < 0:
        return None
    found = decode_some_headers(message.property_list, _WANTED).get(RECEIVED_FROM)
    return found if isinstance(found, list) else None


def is_forwarded(passed: list[object], max_hops: int, cluster_name: object, vhost: object) -> bool:
    """True if the vhost `vhost` of `cluster_name` may receive a message that has `passed` other brokers."""
    return len(passed) < max_hops and not has_passed(passed, cluster_name, vhost)


def has_passed(passed: list[object], cluster_name: object, vhost: object) -> bool:
    """True if an entry of `passed` is of the vhost `vhost` of `cluster_name`."""
    if not isinstance(cluster_name, str) or not isinstance(vhost, str):
        return False
    return any(
        isinstance(entry, dict) and entry.get(CLUSTER_NAME) == cluster_name and entry.get(VHOST) == vhost
        for entry in passed
    )
