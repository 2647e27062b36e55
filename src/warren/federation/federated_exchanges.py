"""The links of federated exchanges: one for each exchange and each of its upstreams, as policies say.

What exists follows the metadata: exchanges, policies, upstreams and sets. A link whose upstream has other
settings is replaced, and continues with the queue it has there; a link that shall not exist any more removes
what it has declared.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from warren.federation.exchange_link import ExchangeLink, Successor
from warren.federation.exchange_run import FederatedExchange
from warren.federation.link_rights import check_publish
from warren.federation.upstream_settings import link_settings
from warren.federation.vhost_scan import VhostScan
from warren.limits_relay import FEDERATION_LINKS_MAX
from warren.metadata import parameters
from warren.metadata.events import (
    BindingAdded,
    BindingRemoved,
    Event,
    ExchangeDeclared,
    ExchangeDeleted,
    ParameterChanged,
)
from warren.metadata.federation_definition import Upstream
from warren.metadata.federation_upstreams import upstreams_of_exchange
from warren.metadata.machine import Metadata
from warren.metadata.records import BindingRecord, ExchangeRecord
from warren.metadata.vhosts import VhostMetadata
from warren.model.coroutine_driver import Later
from warren.relay.link import Link, LinkDependencies
from warren.relay.links import Links
from warren.relay.status import LinkKey, LinkKind

_HEARD = (BindingAdded, BindingRemoved, ExchangeDeclared, ExchangeDeleted, ParameterChanged)


class FederationDependencies(Struct, frozen=True, kw_only=True):
    """What the links of federated exchanges and queues need."""

    metadata: Metadata
    links: Links
    link: LinkDependencies
    later: Later
    # The name of the cluster of this broker.
    cluster_name: Callable[[], str]

    def log_too_many(self, key: LinkKey) -> None:
        """Log that the link `key` is not started, because there are as many as may be."""
        text = f"{key.kind} {key.name!r} of vhost {key.vhost!r} is not federated with upstream"
        text += f" {key.upstream!r}: there are {FEDERATION_LINKS_MAX} links already"
        self.link.log("error", text, {})


class _MadeOf(Struct, frozen=True):
    """What a link was made of."""

    record: ExchangeRecord
    upstream: Upstream
    policy: str
    cluster_name: str


class _Entry(Struct, frozen=True):
    """A link."""

    made_of: _MadeOf
    plan: ExchangeLink


class FederatedExchanges:
    """Starts, replaces and stops the links."""

    __slots__ = ("_count", "_dependencies", "_entries", "_scan")

    def __init__(self, dependencies: FederationDependencies) -> None:
        self._dependencies = dependencies
        # By vhost, exchange and key.
        self._entries: dict[str, dict[str, dict[LinkKey, _Entry]]] = {}
        self._count = 0
        self._scan = VhostScan(
            dependencies.metadata,
            dependencies.later,
            names=lambda vhost: vhost.topology.exchanges,
            known=lambda vhost: self._entries.get(vhost, ()),
            check=self._check_name,
        )

    def start(self) -> None:
        """Start the links there are, and follow the metadata from here on."""
        self._dependencies.metadata.listen(self._on_event, _HEARD)
        self._scan.start()

    def stop(self) -> None:
        """Follow the metadata no more; the links go on."""
        self._dependencies.metadata.ignore(self._on_event)
        self._scan.stop()

    def _on_event(self, event: Event) -> None:
        match event:
            case BindingAdded(vhost=vhost, binding=binding):
                for entry in self._entries_of(vhost, binding):
                    entry.plan.bound(binding)
            case BindingRemoved(vhost=vhost, binding=binding):
                for entry in self._entries_of(vhost, binding):
                    entry.plan.unbound(binding)
            case ExchangeDeclared(vhost=vhost, exchange=exchange):
                metadata = self._dependencies.metadata.vhost(vhost)
                if metadata is not None:
                    self._check(metadata, exchange)
            case ExchangeDeleted(vhost=vhost, exchange=exchange):
                self._keep(vhost, exchange.name, {})
            case ParameterChanged(vhost="", name=parameters.CLUSTER_NAME):
                # The names at the upstreams contain it.
                for name in list(self._entries):
                    self._scan.scan(name)
            case _:
                pass

    def _entries_of(self, vhost: str, binding: BindingRecord) -> list[_Entry]:
        """The links of the source of `binding`."""
        return list(self._entries.get(vhost, {}).get(binding.source, {}).values())

    # --- which links exist --------------------------------------------------------------------------

    def _check_name(self, vhost_name: str, name: str) -> None:
        """Check the exchange `name`, which may have been deleted since."""
        vhost = self._dependencies.metadata.vhost(vhost_name)
        record = None if vhost is None else vhost.topology.exchanges.get(name)
        if vhost is None or record is None:
            self._keep(vhost_name, name, {})
        else:
            self._check(vhost, record)

    def _check(self, vhost: VhostMetadata, record: ExchangeRecord) -> None:
        """Have the links of the exchange `record` that its policy asks for, and no others."""
        wanted: dict[LinkKey, Upstream] = {}
        for upstream in upstreams_of_exchange(vhost, record):
            key = LinkKey(LinkKind.EXCHANGE, vhost.name, record.name, upstream.name, upstream.exchange)
            wanted.setdefault(key, upstream)
        if wanted or self._entries.get(vhost.name, {}).get(record.name):
            self._keep(vhost.name, record.name, wanted)
        if not wanted:
            return
        policy, _ = vhost.policies_of(record.name, "exchange")
        assert policy is not None
        entries = self._entries.setdefault(vhost.name, {}).setdefault(record.name, {})
        for key, upstream in wanted.items():
            entry = entries.get(key)
            made_of = _MadeOf(record, upstream, policy.name, self._dependencies.cluster_name())
            if entry is None or entry.made_of != made_of:
                self._put(entries, key, made_of)

    def _put(self, entries: dict[LinkKey, _Entry], key: LinkKey, made_of: _MadeOf) -> None:
        """Start the link `key`, in place of the one there is."""
        dependencies = self._dependencies
        if key not in entries:
            if self._count == FEDERATION_LINKS_MAX:
                dependencies.log_too_many(key)
                return
            self._count += 1
        federated = FederatedExchange(
            vhost=key.vhost,
            record=made_of.record,
            upstream=made_of.upstream,
            cluster_name=made_of.cluster_name,
            bindings=lambda: self._bindings(key),
            check_rights=lambda: check_publish(dependencies.metadata, made_of.upstream.user, key),
        )
        settings = link_settings(made_of.upstream, made_of.policy, vhost=key.vhost)
        former_names: Sequence[str] = ()
        if key in entries:
            before = entries[key].plan
            before.successor = Successor(federated, settings.source)
            former_names = before.cluster_names_before(made_of.cluster_name)
        plan = ExchangeLink(federated, former_names)
        entries[key] = _Entry(made_of, plan)
        dependencies.links.put(Link(key, plan, settings, dependencies.link))

    def _keep(self, vhost: str, exchange: str, wanted: Mapping[LinkKey, Upstream]) -> None:
        """Remove the links of `exchange` that are not `wanted`."""
        entries = self._entries.get(vhost, {}).get(exchange, {})
        for key in [key for key in entries if key not in wanted]:
            entries.pop(key).plan.is_removed = True
            self._count -= 1
            self._dependencies.links.remove(key)
        if not entries and exchange in self._entries.get(vhost, {}):
            del self._entries[vhost][exchange]
            if not self._entries[vhost]:
                del self._entries[vhost]

    def _bindings(self, key: LinkKey) -> list[BindingRecord]:
        """The bindings of the exchange of `key`."""
        vhost = self._dependencies.metadata.vhost(key.vhost)
        return [] if vhost is None else vhost.topology.bindings_from(key.name)
