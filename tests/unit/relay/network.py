"""Brokers that a link reaches by the name of their host, in one thread without sockets, and its timers."""

from collections.abc import Callable, Mapping

from tests.clock import ManualClock
from tests.unit.client.broker_pair import BrokerPair
from tests.unit.session.client import Broker

from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.client.login import ClientLogin
from warren.client.uri import Target
from warren.relay.attempts import LinkAttempts
from warren.relay.dialer import Dialer
from warren.relay.endpoint import Endpoint
from warren.relay.link import Link, LinkDependencies
from warren.relay.link_run import LinkPlan, LinkSettings
from warren.relay.status import LinkKey, LinkKind, LinkState


def target(host: str) -> Target:
    """The address of the broker `host`."""
    return Target(host=host, port=5672, user="guest", password="secret", vhost="/", is_tls=False)


def endpoint(*hosts: str) -> Endpoint:
    """An end with several addresses."""
    return Endpoint(targets=tuple(target(host) for host in hosts), name="link", user="guest")


class Network(Dialer):
    """Dials the brokers in `brokers`; a host that is in no broker, or in `refusals`, is refused."""

    def __init__(self, **brokers: Broker) -> None:
        self.brokers = brokers
        # Why a host is refused.
        self.refusals: dict[str, str] = {}
        self.dialed: list[str] = []
        # Hosts to and from which nothing passes.
        self.held: set[str] = set()
        self.pairs: list[tuple[str, BrokerPair]] = []
        self.clock = ManualClock(1_000_000)
        # Timers: when they are due, and what they do.
        self.timers: list[tuple[int, Callable[[], None]]] = []
        self.log: list[str] = []
        # The virtual host of each link that an unexpected exception has ended.
        self.failed_in: list[str] = []
        self.states: list[tuple[LinkKey, LinkState]] = []
        attempts = LinkAttempts(self.clock.turn, self.after)
        self.dependencies = LinkDependencies(
            self, self.clock.turn, self.after, self._log, attempts, self._changed, self.failed_in.append
        )

    async def dial(
        self, target: Target, name: str, user: str, listener: ConnectionListener
    ) -> ClientConnection:
        self.dialed.append(target.host)
        refusal = self.refusals.get(target.host)
        if refusal is not None or target.host not in self.brokers:
            raise BrokerRefused(refusal or "connection refused")
        login = ClientLogin(user="guest", password="guest", vhost=target.vhost, connection_name=name)
        pair = BrokerPair(self.brokers[target.host], login, listener)
        self.pairs.append((target.host, pair))
        await pair.client.open()
        return pair.client

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.timers.append((self.clock.now + delay_ms, action))

    def _log(self, level: str, text: str, fields: Mapping[str, object]) -> None:
        self.log.append(f"{level}: {text}")

    def _changed(self, link: Link) -> None:
        self.states.append((link.key, link.state))

    def exchange(self) -> None:
        """Pass bytes until no connection has any."""
        is_busy = True
        while is_busy:
            is_busy = False
            for host, pair in list(self.pairs):
                if host in self.held:
                    continue
                is_busy |= bool(pair.exchange())
                if pair.client.is_finished:
                    pair.server.lost()
                    self.pairs.remove((host, pair))
            for broker in self.brokers.values():
                while broker.turns:
                    broker.turn()
                    is_busy = True

    def hold(self, host: str) -> None:
        """Let nothing pass to and from `host` until `release`."""
        self.held.add(host)

    def release(self, host: str) -> None:
        """Let everything pass again."""
        self.held.discard(host)
        self.exchange()

    def cut(self, host: str) -> None:
        """Cut all connections to `host`."""
        for name, pair in list(self.pairs):
            if name == host:
                self.pairs.remove((name, pair))
                pair.server.lost()
                pair.client.lost()
        self.exchange()

    def pass_time(self, ms: int) -> None:
        """Advance the time, and run the timers that are due, in order."""
        end = self.clock.now + ms
        while True:
            due = min((at for at, _ in self.timers if at <= end), default=None)
            if due is None:
                break
            self.clock.now = max(self.clock.now, due)
            place = next(place for place, (at, _) in enumerate(self.timers) if at == due)
            self.timers.pop(place)[1]()
            self.exchange()
        self.clock.now = end
        self.exchange()

    def link(self, plan: LinkPlan, name: str = "s", **settings: object) -> Link:
        """A link from the host `source` to the host `destination`."""
        settings = {"source": endpoint("source"), "destination": endpoint("destination")} | settings
        key = LinkKey(LinkKind.SHOVEL, "/", name)
        return Link(key, plan, LinkSettings(**settings), self.dependencies)  # type: ignore[arg-type]
