"""The links of federated queues: one for each queue and each of its upstreams, as policies say.

What exists follows the metadata: queues, policies, upstreams and sets. All links of a queue share what is
observed of its demand.
"""

from collections.abc import Callable

from msgspec import Struct

from warren.client.errors import BrokerRefused
from warren.errors import NotFound
from warren.federation.federated_exchanges import FederationDependencies
from warren.federation.link_rights import check_publish
from warren.federation.pull_window import Demand
from warren.federation.queue_link import FederatedQueue, QueueLink
from warren.federation.upstream_settings import link_settings
from warren.federation.vhost_scan import VhostScan, may_federate
from warren.limits_relay import FEDERATION_LINKS_MAX
from warren.metadata.events import (
    Event,
    QueueDeclared,
    QueueDeleted,
)
from warren.metadata.federation_definition import Upstream
from warren.metadata.federation_upstreams import upstreams_of_queue
from warren.metadata.records import QueueRecord
from warren.model.arguments import CLASSIC, QUORUM
from warren.queues.capabilities import taking_queue
from warren.queues.demand import QueueDemand
from warren.queues.taking_queue import TakingQueue
from warren.queues.vhost_queue import VhostQueue
from warren.relay.link import Link
from warren.relay.status import LinkKey, LinkKind

_FEDERATED = (CLASSIC, QUORUM)

# Returns the live queue of a vhost and a name; None if there is none now.
FindQueue = Callable[[str, str], VhostQueue | None]


class _MadeOf(Struct, frozen=True):
    """What a link was made of."""

    record: QueueRecord
    upstream: Upstream
    policy: str


class _Federated:
    """A federated queue: its links, and its demand once a link has asked for it."""

    __slots__ = ("demand", "links", "live")

    def __init__(self) -> None:
        self.links: dict[LinkKey, tuple[_MadeOf, QueueLink]] = {}
        self.live: TakingQueue | None = None
        self.demand: QueueDemand | None = None

    def demand_changed(self) -> None:
        """Have all links follow the demand."""
        for _, plan in self.links.values():
            plan.demand_changed()

    def close(self) -> None:
        """Observe the queue no longer."""
        if self.demand is not None:
            self.demand.close()


class FederatedQueues:
    """Starts, replaces and stops the links."""

    __slots__ = ("_count", "_dependencies", "_find_queue", "_queues", "_scan")

    def __init__(self, dependencies: FederationDependencies, find_queue: FindQueue) -> None:
        self._dependencies = dependencies
        self._find_queue = find_queue
        # By vhost and name.
        self._queues: dict[str, dict[str, _Federated]] = {}
        self._count = 0
        self._scan = VhostScan(
            dependencies.metadata,
            dependencies.later,
            names=lambda vhost: vhost.topology.queues,
            known=lambda vhost: self._queues.get(vhost, ()),
            check=self._check_name,
        )

    def start(self) -> None:
        """Start the links there are, and follow the metadata from here on."""
        self._dependencies.metadata.listen(self._on_event, (QueueDeclared, QueueDeleted))
        self._scan.start()

    def stop(self) -> None:
        """Follow the metadata no more; the links go on."""
        self._dependencies.metadata.ignore(self._on_event)
        self._scan.stop()

    def _on_event(self, event: Event) -> None:
        match event:
            case QueueDeclared(vhost=name, queue=queue):
                vhost = self._dependencies.metadata.vhost(name)
                # If that changes later, all queues are examined.
                if vhost is not None and may_federate(vhost):
                    # The live queue, which a link needs, hears of it in this turn as well.
                    self._dependencies.later(lambda _: self._check_name(name, queue.name))
            case QueueDeleted(vhost=name, queue=queue):
                self._keep(name, queue.name, ())
            case _:
                pass

    # --- which links exist --------------------------------------------------------------------------

    def _check_name(self, vhost_name: str, name: str) -> None:
        """Have the links of the queue `name` that its policy asks for, and no others."""
        vhost = self._dependencies.metadata.vhost(vhost_name)
        # It may have been deleted or replaced since.
        record = None if vhost is None else vhost.topology.queues.get(name)
        if vhost is None or record is None or record.kind not in _FEDERATED or not may_federate(vhost):
            self._keep(vhost_name, name, ())
            return
        policy, _ = vhost.policies_of(name, record.kind)
        wanted: dict[LinkKey, _MadeOf] = {}
        for upstream in upstreams_of_queue(vhost, record):
            assert policy is not None
            key = LinkKey(LinkKind.QUEUE, vhost_name, name, upstream.name, upstream.queue)
            wanted.setdefault(key, _MadeOf(record, upstream, policy.name))
        self._keep(vhost_name, name, wanted)
        for key, made_of in wanted.items():
            self._put(key, made_of)

    def _put(self, key: LinkKey, made_of: _MadeOf) -> None:
        """Start the link `key`, in place of one that was made of something else."""
        dependencies = self._dependencies
        federated = self._queues.setdefault(key.vhost, {}).setdefault(key.name, _Federated())
        known = federated.links.get(key)
        if known is not None and known[0] == made_of:
            return
        if known is None:
            if self._count == FEDERATION_LINKS_MAX:
                dependencies.log_too_many(key)
                return
            self._count += 1
        upstream = made_of.upstream
        plan = QueueLink(
            FederatedQueue(
                record=made_of.record,
                upstream=upstream,
                observe=lambda: self._observe(key),
                check_rights=lambda: check_publish(dependencies.metadata, upstream.user, key),
            )
        )
        federated.links[key] = made_of, plan
        settings = link_settings(upstream, made_of.policy, vhost=key.vhost)
        dependencies.links.put(Link(key, plan, settings, dependencies.link))

    def _keep(self, vhost: str, name: str, wanted: "dict[LinkKey, _MadeOf] | tuple[()]") -> None:
        """Remove the links of the queue `name` that are not `wanted`."""
        federated = self._queues.get(vhost, {}).get(name)
        if federated is None:
            return
        for key in [key for key in federated.links if key not in wanted]:
            del federated.links[key]
            self._count -= 1
            self._dependencies.links.remove(key)
        if not federated.links:
            federated.close()
            del self._queues[vhost][name]
            if not self._queues[vhost]:
                del self._queues[vhost]

    # --- demand -------------------------------------------------------------------------------------

    def _observe(self, key: LinkKey) -> Demand:
        """Return the demand of the live queue of `key`. Raises BrokerRefused if there is none now.

        A virtual host that was restarted has another live queue.
        """
        federated = self._queues.get(key.vhost, {}).get(key.name)
        live = taking_queue(self._find_queue(key.vhost, key.name))
        if federated is None or live is None:
            text = f"no queue '{key.name}' in vhost '{key.vhost}'"
            raise BrokerRefused(f"destination: {text}", NotFound.code)
        if federated.demand is None or federated.live is not live:
            federated.close()
            federated.live = live
            federated.demand = QueueDemand(live, self._dependencies.later, federated.demand_changed)
        return federated.demand
