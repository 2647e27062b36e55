"""The names that a federation link gives to what it declares at its upstream: those of RabbitMQ 3.10.8.

A downstream that is replaced, also RabbitMQ by Warren, finds the queue of its predecessor by its name, with
all messages in it.
"""

from warren.limits import NAME_SIZE_MAX

# The two suffixes of internal exchanges: the bindings are made anew at one of them while the other has the
# old ones, which is deleted afterwards.
SUFFIXES = ("A", "B")


def upstream_queue_name(upstream: tuple[str, str], downstream: tuple[str, str], cluster_name: str) -> str:
    """The queue at the upstream; both exchanges are given by vhost and name, and `cluster_name` is ours.

    What both sides have in common is left out.
    """
    upstream_vhost, upstream_exchange = upstream
    vhost, exchange = downstream
    if vhost != upstream_vhost:
        rest = f":{vhost}:{exchange}"
    else:
        rest = "" if exchange == upstream_exchange else f":{exchange}"
    return f"federation: {upstream_exchange} -> {cluster_name}{rest}"


def internal_exchange_name(queue: str, suffix: str) -> str:
    """The exchange at the upstream that is bound to `queue`."""
    return f"{queue} {suffix}"


def is_possible(queue: str) -> bool:
    """True if the names of `queue` and of its internal exchanges are short enough for AMQP."""
    return len(internal_exchange_name(queue, SUFFIXES[0]).encode("utf-8", "surrogateescape")) <= NAME_SIZE_MAX


def connection_name(upstream: str, policy: str) -> str:
    """The name of the connections of a link, as both brokers show it."""
    return f"Federation link (upstream: {upstream}, policy: {policy})"
