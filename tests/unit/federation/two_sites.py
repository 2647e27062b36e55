"""A broker `here` that federates exchanges of the broker `there`, in one thread without sockets."""

from collections.abc import Mapping

from tests.unit.relay.network import Network
from tests.unit.session.client import Broker, publication

from warren.federation.federated_exchanges import FederatedExchanges, FederationDependencies
from warren.federation.link_rights import check_publish
from warren.metadata.commands import (
    ClearParameter,
    ClearPolicy,
    DeleteExchange,
    MetadataCommand,
    SetGlobalParameter,
    SetParameter,
    SetPolicy,
    SetUserTags,
)
from warren.metadata.records import BindingRecord
from warren.relay.link import Link
from warren.relay.link_rights import LinkRights
from warren.relay.links import Links
from warren.relay.status import LinkState
from warren.wire import methods
from warren.wire.method import Method


class TwoSites:
    """Both brokers, and the links of the federated exchanges of `here`; a host without a name is `here`."""

    def __init__(self) -> None:
        self.here, self.there = Broker(), Broker()
        # Who sets the upstream.
        self.user = "guest"
        self.network = Network(there=self.there, **{"": self.here})
        self.metadata = self.here.services.metadata
        self.links = Links("here")
        self.federated = FederatedExchanges(
            FederationDependencies(
                metadata=self.metadata,
                links=self.links,
                link=self.network.dependencies,
                later=self.here.turns.append,
                cluster_name=lambda: str(self.metadata.global_parameters.by_name.get("cluster_name", "c")),
            )
        )
        self.rights = LinkRights(
            self.metadata,
            self.links,
            self.here.turns.append,
            lambda link: check_publish(self.metadata, link.user, link.key),
        )
        # Only who has such a tag sets upstreams.
        self.here.proposals.apply(SetUserTags(name="guest", tags=("policymaker",)))
        self.client_here, self.client_there = self.here.client(), self.there.client()

    def start(self) -> "TwoSites":
        self.federated.start()
        self.rights.start()
        self.network.exchange()
        return self

    def federate(self, pattern: str = "^x", **settings: object) -> None:
        """Federate the exchanges whose names match `pattern`."""
        self.set_upstream(**settings)
        definition = {"federation-upstream": "u"}
        self.apply(SetPolicy(vhost="/", name="p", pattern=pattern, definition=definition))

    def set_upstream(self, **settings: object) -> None:
        value = {"uri": "amqp://there", **{name.replace("_", "-"): value for name, value in settings.items()}}
        self.apply(
            SetParameter(vhost="/", component="federation-upstream", name="u", value=value, user=self.user)
        )

    def clear_upstream(self) -> None:
        self.apply(ClearParameter(vhost="/", component="federation-upstream", name="u"))

    def rename_cluster(self, name: str) -> None:
        self.apply(SetGlobalParameter(name="cluster_name", value=name))

    def clear_policy(self) -> None:
        self.apply(ClearPolicy(vhost="/", name="p"))

    def delete_exchange(self, name: str = "x") -> None:
        self.apply(DeleteExchange(vhost="/", name=name))

    def apply(self, command: MetadataCommand) -> None:
        """Apply `command` here."""
        self.here.proposals.apply(command)
        self.network.exchange()

    def declare(self, name: str = "x", kind: str = "topic", **arguments: object) -> None:
        """Declare an exchange here."""
        self.ask_here(methods.ExchangeDeclare(exchange=name, type=kind, durable=True, arguments=arguments))

    def bind(self, key: str, queue: str = "q", exchange: str = "x", **arguments: object) -> None:
        """Declare a queue here, and bind it."""
        self.ask_here(
            methods.QueueDeclare(queue=queue),
            methods.QueueBind(queue=queue, exchange=exchange, routing_key=key, arguments=arguments),
        )

    def unbind(self, key: str, queue: str = "q", exchange: str = "x") -> None:
        self.ask_here(methods.QueueUnbind(queue=queue, exchange=exchange, routing_key=key))

    def ask_here(self, *calls: Method) -> None:
        self.client_here.ask(*calls)
        self.network.exchange()

    def publish_there(self, key: str, body: bytes, exchange: str = "x", **properties: object) -> None:
        self.client_there.send(publication(key, body, exchange=exchange, **properties))
        self.network.exchange()

    def bodies_here(self, queue: str = "q") -> list[bytes]:
        """The messages of `queue` here, which are taken out."""
        return [body for body, _ in self.messages_here(queue)]

    def messages_here(self, queue: str = "q") -> list[tuple[bytes, Mapping[str, object]]]:
        """Body and headers of the messages of `queue` here, which are taken out."""
        found: list[tuple[bytes, Mapping[str, object]]] = []
        while True:
            (answer,) = self.client_here.ask(methods.BasicGet(queue=queue, no_ack=True))
            if isinstance(answer.method, methods.BasicGetEmpty):
                return found
            assert answer.properties is not None
            found.append((answer.body, answer.properties.headers or {}))

    @property
    def link(self) -> Link:
        """The only link."""
        (link,) = self.links.all()
        return link

    @property
    def is_running(self) -> bool:
        return self.link.status().state is LinkState.RUNNING

    def internal_exchanges(self) -> list[str]:
        """The names of the exchanges that links have declared there."""
        return sorted(name for name in self.there.services.vhost.router.exchanges if " -> " in name)

    def bindings_there(self, exchange: str = "x") -> list[BindingRecord]:
        """The bindings of an exchange there to internal exchanges."""
        vhost = self.there.services.metadata.vhost("/")
        assert vhost is not None
        return sorted(
            binding for binding in vhost.topology.bindings_from(exchange) if " -> " in binding.destination
        )

    def keys_there(self, exchange: str = "x") -> list[str]:
        return [binding.routing_key for binding in self.bindings_there(exchange)]
