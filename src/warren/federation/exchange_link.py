"""The link of a federated exchange to one upstream: its runs, and what it leaves behind at the upstream.

    upstream                                                            here
    exchange X ── bindings as here ──▶ internal exchange ──▶ queue ──▶ exchange X
                                       "federation: X -> C A"

`exchange_run` is what one run does there.
"""

from collections.abc import Sequence

from msgspec import Struct

from warren.client.channel import ChannelListener
from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.client.uri import Target
from warren.errors import NotFound
from warren.federation.exchange_forwarding import ExchangeForwarding
from warren.federation.exchange_run import ExchangeRun, FederatedExchange
from warren.federation.link_names import SUFFIXES, internal_exchange_name, is_possible
from warren.limits_relay import FORMER_CLUSTER_NAMES_MAX
from warren.metadata.records import BindingRecord
from warren.model.coroutine_driver import drive
from warren.model.message import Message
from warren.relay.endpoint import Endpoint, EndpointConnection
from warren.relay.link_run import LinkRun, at_end
from warren.wire import methods


class Successor(Struct, frozen=True):
    """What takes the place of a link: the same exchange and upstream with other settings."""

    federated: FederatedExchange
    source: Endpoint


class ExchangeLink:
    """The plan of a link; `relay/link` runs it."""

    __slots__ = ("_federated", "_former_cluster_names", "_forwarding", "_run", "is_removed", "successor")

    def __init__(self, federated: FederatedExchange, former_cluster_names: Sequence[str] = ()) -> None:
        """`former_cluster_names`: names of this cluster under which it may have a queue at the upstream."""
        self._federated = federated
        self._former_cluster_names = tuple(former_cluster_names)
        self._run: ExchangeRun | None = None
        self._forwarding: ExchangeForwarding | None = None
        # True if the link is stopped because it shall not exist any more, and not just for a while.
        self.is_removed = False
        # The link that takes its place; None if it is stopped for another reason.
        self.successor: Successor | None = None

    def cluster_names_before(self, name: str) -> Sequence[str]:
        """The names of this cluster, other than `name`, under which the link may have a queue."""
        names = dict.fromkeys((*self._former_cluster_names, self._federated.cluster_name))
        names.pop(name, None)
        return tuple(names)[-FORMER_CLUSTER_NAMES_MAX:]

    # --- for the link -------------------------------------------------------------------------------

    async def set_up(self, run: LinkRun) -> None:
        """Declare at both ends, make the bindings at the upstream, and consume. Raises BrokerRefused."""
        self._run = None
        if self._federated.upstream.error:
            raise BrokerRefused(self._federated.upstream.error)
        self._federated.check_rights()
        # First: while it cannot be reached, nothing is opened here.
        await run.connect_source()
        await run.connect_destination()
        await run.open_destination_channel()
        await at_end("source", self._set_up_source(run))

    async def _set_up_source(self, run: LinkRun) -> None:
        await run.open_source_channel()
        run.forwarder.reuses_transformed = True
        self._run = exchange_run = ExchangeRun(self._federated, run)
        self._forwarding = exchange_run.forwarding()
        await exchange_run.open_command_channel()
        await exchange_run.declare()
        await exchange_run.replace_bindings()
        exchange_run.check_later()
        if self._former_cluster_names and self._federated.upstream.is_cleaned_up:
            drive(self._continue(exchange_run))
        else:
            await exchange_run.consume()

    async def _continue(self, exchange_run: ExchangeRun) -> None:
        """Forward what waits under former names of this cluster, and then consume."""
        try:
            for name in self._former_cluster_names:
                await exchange_run.drain(name)
            self._former_cluster_names = ()
            await exchange_run.consume()
        except BrokerRefused as error:
            exchange_run.ended(error)

    @property
    def leaves_objects(self) -> bool:
        """True if the link shall not exist any more: an earlier run has perhaps declared its objects."""
        return self.is_removed and self._federated.upstream.is_cleaned_up

    async def tear_down(self, run: LinkRun) -> None:
        """Delete the queue and the exchange at the upstream if no link shall use them any more."""
        if not self._federated.upstream.is_cleaned_up:
            return
        if self.is_removed:
            await self._delete_all(run)
        elif self.successor is not None and run.is_connected and await _is_elsewhere(run, self.successor):
            assert run.source is not None
            await self._delete(run.source, self._federated.cluster_name)

    async def _delete_all(self, run: LinkRun) -> None:
        """Delete the queue and the internal exchanges of the link, also those of former names.

        A link that is not connected, or that has not declared all yet, connects once more for this.
        """
        names = (*self._former_cluster_names, self._federated.cluster_name)
        if run.is_connected and run.source is not None:
            for name in names:
                await self._delete(run.source, name)
            return
        try:
            found = await run.connect_to_tear_down()
            for name in names:
                await self._delete(found, name)
        except BrokerRefused as error:
            raise BrokerRefused(
                f"what it has at the upstream stays there: {error.text}", error.code
            ) from None
        await found.connection.close()

    async def _delete(self, upstream: EndpointConnection, cluster_name: str) -> None:
        """Delete the queue and the internal exchanges that the link has under `cluster_name`."""
        queue = self._federated.queue_name(upstream.target.vhost, cluster_name)
        if not is_possible(queue):
            return
        channel = await upstream.connection.open_channel(ChannelListener())
        await channel.call(methods.QueueDelete(queue=queue), methods.QueueDeleteOk)
        for suffix in SUFFIXES:
            exchange = methods.ExchangeDelete(exchange=internal_exchange_name(queue, suffix))
            await channel.call(exchange, methods.ExchangeDeleteOk)

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        """The message to publish here; None if it must not be."""
        assert self._forwarding is not None
        return self._forwarding.transform(message, is_redelivered)

    def completed(self) -> None:
        """Never called: a link forwards without end."""

    # --- from the metadata --------------------------------------------------------------------------

    def bound(self, binding: BindingRecord) -> None:
        """Make `binding`, which the exchange has got, at the upstream."""
        if self._run is not None:
            self._run.bound(binding)

    def unbound(self, binding: BindingRecord) -> None:
        """Remove `binding`, which the exchange has lost, at the upstream."""
        if self._run is not None:
            self._run.unbound(binding)


async def _is_elsewhere(run: LinkRun, successor: Successor) -> bool:
    """True if the addresses of `successor` are those of another broker than that of `run`.

    A broker that has the queue is taken for the same one under another address. Raises BrokerRefused if none
    of the addresses can be reached.
    """
    assert run.source is not None
    targets = successor.source.targets
    if not targets or _place(run.source.target) in map(_place, targets):
        return False
    try:
        found = await run.connect_elsewhere(successor.source, ConnectionListener())
    except BrokerRefused as error:
        text = f"what it has declared at {run.source.uri} stays there, since the new address was not reached"
        raise BrokerRefused(f"{text}: {error.text}", error.code) from None
    queue = successor.federated.queue_name(found.target.vhost)
    try:
        return not await _has_queue(found.connection, queue)
    finally:
        await found.connection.close()


def _place(target: Target) -> tuple[str, int, str]:
    """What an address says about where the queue is."""
    return target.host, target.port, target.vhost


async def _has_queue(connection: ClientConnection, queue: str) -> bool:
    channel = await connection.open_channel(ChannelListener())
    try:
        await channel.call(methods.QueueDeclare(queue=queue, passive=True), methods.QueueDeclareOk)
    except BrokerRefused as error:
        if error.code == NotFound.code:
            return False
        raise
    return True
