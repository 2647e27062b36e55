"""Dry runs of shovels and federation: what would be made at which end, and which rights are missing.

Both ends are connected to, and nothing is changed there: queues and exchanges are declared passively. What
another broker permits is only found when a shovel starts; at this node, the permissions are known.
"""

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from warren.access.authorize import Authorizer
from warren.access.grants import grants_of
from warren.client.channel import ChannelListener
from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.client.rabbitmq_uri import parse_target, uri_without_credentials
from warren.errors import AccessRefused
from warren.federation.link_names import upstream_queue_name
from warren.federation.link_rights import check_publish
from warren.federation.upstream_settings import targets_of
from warren.management.metadata_changes import run_coroutine
from warren.management.relay_view import DryRunStep, StepState
from warren.metadata.commands import Json, parameter_user
from warren.metadata.federation_definition import Upstream
from warren.metadata.federation_upstreams import upstreams_of_exchange, upstreams_of_queue
from warren.metadata.machine import Metadata
from warren.metadata.shovel_definition import ShovelDestination, ShovelSource, parse_shovel
from warren.metadata.users import User
from warren.metadata.vhosts import VhostMetadata
from warren.model.decided import decided
from warren.model.names import ExchangeName, QueueName
from warren.relay.dialer import Dialer
from warren.relay.endpoint import Endpoint, connect
from warren.relay.status import LinkKey, LinkKind
from warren.wire import methods
from warren.wire.method import Method

_NOT_FOUND = 404
_REMOTE = "whether the user of the address may do this is found when the shovel starts"


class _End(Struct, frozen=True):
    """One end of a dry run: its name in the steps, its address, and its connection."""

    name: str
    uri: str
    connection: ClientConnection
    # The permissions at this node; None at another broker.
    rights: Authorizer | None

    def step(self, action: str, name: str, state: StepState, text: str = "") -> DryRunStep:
        return DryRunStep(end=self.name, uri=self.uri, action=action, name=name, state=state, text=text)


class LinkDryRun:
    """Dry runs on one node."""

    def __init__(self, metadata: Metadata, dialer: Dialer, cluster_name: Callable[[], str]) -> None:
        self._metadata = metadata
        self._dialer = dialer
        self._cluster_name = cluster_name

    def check_shovel(
        self, vhost: str, definition: Mapping[str, Json], user: User
    ) -> Awaitable[list[DryRunStep]]:
        """The steps of a shovel that `user` would make; raises ValueError for an invalid definition."""
        parsed = parse_shovel(definition)
        if isinstance(parsed, str):
            raise ValueError(parsed)
        return run_coroutine(self._shovel(parsed.source, parsed.destination, user))

    def explain(self, vhost: str, kind: str, name: str) -> list[DryRunStep]:
        """The links of an exchange or queue by its policy, and what each has at its upstream."""
        found = self._metadata.vhosts.by_name[vhost]
        if kind == "queue":
            queue = found.topology.queues.get(name)
            upstreams = [] if queue is None else upstreams_of_queue(found, queue)
        else:
            exchange = found.topology.exchanges.get(name)
            upstreams = [] if exchange is None else upstreams_of_exchange(found, exchange)
        steps = [step for one in upstreams for step in self._upstream(found, one, kind, name)]
        return steps or [
            DryRunStep(
                end="local",
                uri="",
                action=f"federate {kind}",
                name=name,
                state=StepState.REFUSED,
                text=f"there is no such {kind}, or no policy that matches it names an upstream that exists",
            )
        ]

    def _upstream(self, vhost: VhostMetadata, upstream: Upstream, kind: str, name: str) -> list[DryRunStep]:
        """The steps of one link; nothing is examined at the upstream."""
        uri = ", ".join(map(uri_without_credentials, upstream.uris))
        if upstream.error:
            return [
                DryRunStep(
                    end="upstream",
                    uri=uri,
                    action="connect",
                    name=upstream.name,
                    state=StepState.REFUSED,
                    text=upstream.error,
                )
            ]
        if kind == "queue":
            made = [("declare queue", upstream.queue), ("consume", upstream.queue)]
        else:
            there = (next(iter(targets_of(upstream, vhost.name))).vhost, upstream.exchange)
            queue = upstream_queue_name(there, (vhost.name, name), self._cluster_name())
            made = [
                ("declare exchange", upstream.exchange),
                ("declare queue", queue),
                ("declare exchange of type x-federation-upstream", f"{queue} A"),
                ("bind", f"{upstream.exchange} to {queue} A"),
            ]
        steps = [
            DryRunStep(end="upstream", uri=uri, action=action, name=what, state=StepState.UNKNOWN)
            for action, what in made
        ]
        return [*steps, self._publish_step(vhost, upstream, kind, name)]

    def _publish_step(self, vhost: VhostMetadata, upstream: Upstream, kind: str, name: str) -> DryRunStep:
        """The last step of a link: it publishes here, as the user who made the upstream."""
        refusal = ""
        try:
            check_publish(self._metadata, upstream.user, LinkKey(LinkKind(kind), vhost.name, name))
        except BrokerRefused as error:
            refusal = error.text
        return DryRunStep(
            end="local",
            uri="",
            action=f"publish to {kind}",
            name=name,
            state=StepState.REFUSED if refusal else StepState.EXISTS,
            text=refusal,
        )

    async def _shovel(
        self, source: ShovelSource, destination: ShovelDestination, user: User
    ) -> list[DryRunStep]:
        async def examine(end: _End) -> list[DryRunStep]:
            if end.name == "source":
                return await _examine_source(end, source)
            return await _examine_destination(end, destination)

        steps: list[DryRunStep] = []
        for name, uris in (("source", source.uris), ("destination", destination.uris)):
            endpoint = Endpoint(
                targets=tuple(map(parse_target, uris)),
                uris=tuple(map(uri_without_credentials, uris)),
                name="Dry run of a shovel",
                user=parameter_user(user.identity),
            )
            try:
                found = await connect(self._dialer, endpoint, ConnectionListener())
            except BrokerRefused as error:
                shown = ", ".join(endpoint.uris)
                steps.append(
                    DryRunStep(
                        end=name,
                        uri=shown,
                        action="connect",
                        name="",
                        state=StepState.REFUSED,
                        text=error.text,
                    )
                )
                continue
            rights = None
            if found.target.is_local:
                rights = Authorizer(grants_of(self._metadata, user), user, found.target.vhost)
            end = _End(name, found.uri, found.connection, rights)
            steps.append(end.step("connect", "", StepState.EXISTS))
            try:
                steps += await examine(end)
            except BrokerRefused as error:
                steps.append(end.step("examine", "", StepState.UNKNOWN, error.text))
            await found.connection.close()
        return steps


async def _examine_source(end: _End, source: ShovelSource) -> list[DryRunStep]:
    if source.queue is not None:
        steps = [await _queue(end, source.queue, source.is_predeclared)]
        return [*steps, await _consume(end, source.queue)]
    exchange = source.exchange or ""
    steps = [await _exchange(end, exchange)]
    refusal = ""
    if end.rights is not None:
        refusal = await _refusal(end.rights.check_read, ExchangeName(end.rights.vhost, exchange))
    state = StepState.REFUSED if refusal else StepState.CREATE
    return [*steps, end.step("declare and bind a queue of its own", exchange, state, refusal)]


async def _examine_destination(end: _End, destination: ShovelDestination) -> list[DryRunStep]:
    steps = []
    exchange = destination.exchange or ""
    if destination.queue is not None:
        steps.append(await _queue(end, destination.queue, destination.is_predeclared))
    elif destination.exchange:
        steps.append(await _exchange(end, exchange))
    elif destination.exchange is None:
        return [end.step("publish to the exchange of each message", "", StepState.UNKNOWN)]
    if end.rights is None:
        return [*steps, end.step("publish", exchange, StepState.UNKNOWN, _REMOTE)]
    refusal = await _refusal(end.rights.check_write, ExchangeName(end.rights.vhost, exchange))
    return [
        *steps,
        end.step("publish", exchange, StepState.REFUSED if refusal else StepState.EXISTS, refusal),
    ]


async def _consume(end: _End, queue: str) -> DryRunStep:
    if end.rights is None:
        return end.step("consume", queue, StepState.UNKNOWN, _REMOTE)
    refusal = await _refusal(end.rights.check_read, QueueName(end.rights.vhost, queue))
    return end.step("consume", queue, StepState.REFUSED if refusal else StepState.EXISTS, refusal)


async def _queue(end: _End, queue: str, is_predeclared: bool) -> DryRunStep:
    """Whether `queue` exists, or would be declared."""
    action = "declare queue"
    passive = methods.QueueDeclare(queue=queue, passive=True)
    error = await _error(end.connection, passive, methods.QueueDeclareOk)
    if error is None:
        return end.step(action, queue, StepState.EXISTS)
    if error.code != _NOT_FOUND:
        return end.step(action, queue, StepState.REFUSED, error.text)
    if is_predeclared:
        return end.step(action, queue, StepState.REFUSED, "it does not exist, and the shovel may not make it")
    if end.rights is None:
        return end.step(action, queue, StepState.CREATE)
    refusal = await _refusal(end.rights.check_configure, QueueName(end.rights.vhost, queue))
    return end.step(action, queue, StepState.REFUSED if refusal else StepState.CREATE, refusal)


async def _exchange(end: _End, exchange: str) -> DryRunStep:
    """Whether `exchange` exists: a shovel declares none."""
    passive = methods.ExchangeDeclare(exchange=exchange, passive=True)
    error = await _error(end.connection, passive, methods.ExchangeDeclareOk)
    state = StepState.EXISTS if error is None else StepState.REFUSED
    return end.step("find exchange", exchange, state, "" if error is None else error.text)


async def _error(connection: ClientConnection, method: Method, answer: type[Method]) -> BrokerRefused | None:
    """The refusal of `method` on a channel of its own, which it may close."""
    channel = await connection.open_channel(ChannelListener())
    try:
        await channel.call(method, answer)
    except BrokerRefused as error:
        return error
    await channel.close()
    return None


async def _refusal(
    check: Callable[[QueueName | ExchangeName], None], entity: QueueName | ExchangeName
) -> str:
    """The text of the refusal of `check`; empty if it is permitted."""

    async def checked() -> None:
        check(entity)

    try:
        await decided(checked)
    except AccessRefused as refused:
        return refused.message
    return ""
