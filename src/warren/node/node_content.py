"""What a node has beside what every first start makes: what it would lose by joining or leaving a cluster."""

from msgspec import Struct
from msgspec.structs import asdict

from warren.metadata.machine import Metadata
from warren.session.server import Server

_SINGULAR = {"virtual_hosts": "virtual host", "policies": "policy"}


class NodeContent(Struct, frozen=True, kw_only=True):
    """The numbers of objects of a node, without those of a first start."""

    virtual_hosts: int
    exchanges: int
    queues: int
    messages: int
    policies: int
    parameters: int
    users: int

    @property
    def is_there(self) -> bool:
        """True if there is anything."""
        return any(asdict(self).values())

    def __str__(self) -> str:
        """What there is, in words."""
        counts = {name: count for name, count in asdict(self).items() if count}
        return ", ".join(f"{count} {_noun(name, count)}" for name, count in counts.items()) or "nothing"


def content_of(metadata: Metadata, server: Server, *, default_vhost: str, default_user: str) -> NodeContent:
    """What a node has beside the virtual host and the user of a first start."""
    vhosts = metadata.vhosts.by_name.values()
    exchanges = [name for vhost in vhosts for name in vhost.topology.exchanges]
    return NodeContent(
        virtual_hosts=sum(vhost.name != default_vhost for vhost in vhosts),
        exchanges=sum(name != "" and not name.startswith("amq.") for name in exchanges),
        queues=sum(len(vhost.topology.queues) for vhost in vhosts),
        messages=sum(
            queue.led_here().total_count
            for services in server.vhost_services.values()
            for queue in services.vhost.queues.values()
        ),
        policies=sum(len(vhost.policies.by_name) + len(vhost.operator_policies.by_name) for vhost in vhosts),
        parameters=sum(len(vhost.parameters.by_key) for vhost in vhosts),
        users=sum(name != default_user for name in metadata.users.by_name),
    )


def message_count_on(metadata: Metadata, server: Server, node: int) -> int:
    """The number of messages in the queues whose home is `node`, as this node knows it."""
    return sum(
        queue.led_here().total_count
        for vhost in metadata.vhosts.by_name.values()
        if vhost.name in server.vhost_services
        for name, queue in server.vhost_services[vhost.name].vhost.queues.items()
        if name in vhost.topology.queues and vhost.topology.queues[name].home == node
    )


def _noun(name: str, count: int) -> str:
    words = name.replace("_", " ")
    return _SINGULAR.get(name, words.removesuffix("s")) if count == 1 else words
