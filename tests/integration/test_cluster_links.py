"""Links between nodes over real sockets: exchange, cuts, strangers, and TLS."""

import asyncio
import contextlib
import logging
import re
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.integration.dialing import run
from tests.integration.link_proxy import LinkProxy, link_proxy
from tests.warren_process import free_port

from warren.access.login_throttle import LoginThrottleSettings
from warren.cluster import link_connection, node_link
from warren.cluster.hello import NO_CLUSTER, NO_NODE, LinkPurpose, LocalNode
from warren.cluster.link_connection import LinkConnection
from warren.cluster.link_handshake import RefusalCode
from warren.cluster.node_link import LinkListener, NodeLink, PeerNode
from warren.limits_cluster import (
    CLUSTER_PAYLOAD_SIZE_MAX,
    CLUSTER_UNPROVEN_PER_ADDRESS_MAX,
)
from warren.model.turn import Turn
from warren.runtime.clock import Clock
from warren.transport.cluster.cluster_listener import ClusterListenerSettings
from warren.transport.cluster.cluster_tls import ClusterTlsSettings
from warren.transport.cluster.cluster_transport import (
    ClusterTransport,
    ClusterTransportDependencies,
    ClusterTransportSettings,
)
from warren.transport.protocol import LoopContext

CONTROL, DATA, BULK, JOIN, _ = LinkPurpose
COOKIE = b"the cookie"
NEVER_MS = 1 << 62


class RunningNode(LinkListener):
    """A node on loopback, and what its links tell."""

    def __init__(
        self,
        node_id: int,
        *,
        cookie: bytes = COOKIE,
        tls: ClusterTlsSettings | None = None,
        throttle: LoginThrottleSettings | None = None,
        incarnation: int = 1,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.id = node_id
        self.name = f"node {node_id or 'new'}"
        self.told: list[object] = []
        self.digests = 0
        self.changed = asyncio.Event()
        self.on_received: Callable[[NodeLink, bytes], None] = lambda link, body: None
        listener = ClusterListenerSettings(
            host=host, port=port, login_throttle=throttle or LoginThrottleSettings()
        )
        self.transport = ClusterTransport(
            ClusterTransportSettings(listener=listener, tls=tls),
            LocalNode(
                cluster_id=b"c" * 16 if node_id else NO_CLUSTER, node_id=node_id or NO_NODE, name=self.name,
                incarnation=incarnation, feature_level=1,
            ),
            cookie,
            ClusterTransportDependencies(
                loop_context=LoopContext(loop, Turn(Clock().now, loop.call_soon)), listener=self,
                digest=self.name.encode,
            ),
        )  # fmt: skip

    @property
    def port(self) -> int:
        return self.transport.addresses[0][1]

    def connect(self, peer: "RunningNode", port: int | None = None, host: str = "127.0.0.1") -> NodeLink:
        return self.transport.links.connect(
            PeerNode(node_id=peer.id, name=peer.name, host=host, port=port or peer.port), Clock().now()
        )

    def note(self, what: object) -> None:
        self.told.append(what)
        self.changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` is met, which is asked whenever a link tells anything."""
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    async def has(self, *what: object) -> None:
        """Wait until all of `what` was told."""
        await self.until(lambda: all(one in self.told for one in what))

    def payloads(self) -> list[bytes]:
        return [one[1] for one in self.told if isinstance(one, tuple) and isinstance(one[1], bytes)]

    def received(self, link: NodeLink, purpose: LinkPurpose, kind: int, body: bytes) -> None:
        self.note((purpose, body))
        self.on_received(link, body)

    def session_began(self, link: NodeLink, purpose: LinkPurpose) -> None:
        pass

    def session_lost(self, link: NodeLink, purpose: LinkPurpose) -> None:
        self.note(("lost", purpose))

    def silent(self, link: NodeLink) -> None:
        self.note("silent")

    def heard(self, link: NodeLink) -> None:
        self.note("heard")

    def writable(self, link: NodeLink, purpose: LinkPurpose) -> None:
        self.note(("writable", purpose))

    def pinged(self, link: NodeLink, digest: bytes) -> None:
        self.digests += 1
        self.changed.set()


@contextlib.asynccontextmanager
async def running(*nodes: RunningNode) -> AsyncIterator[None]:
    """Start `nodes`, and stop them in the end."""
    for node in nodes:
        await node.transport.start()
    try:
        yield
    finally:
        for node in nodes:
            await node.transport.stop()


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[tuple[RunningNode, RunningNode, LinkProxy]]:
    """Two nodes that are linked through a proxy."""
    one, two = RunningNode(1), RunningNode(2)
    async with running(one, two), link_proxy(two.port) as proxy:
        of_one, of_two = one.connect(two, proxy.port), two.connect(one)
        for node, link in ((one, of_one), (two, of_two)):
            await node.until(lambda link=link: link.counters.connections == 2)  # type: ignore[misc]
        yield one, two, proxy


def links(one: RunningNode, two: RunningNode) -> tuple[NodeLink, NodeLink]:
    return one.connect(two), two.connect(one)


def test_two_nodes_exchange_payloads_of_every_size_on_every_connection() -> None:
    async def work() -> None:
        one, two = RunningNode(1), RunningNode(2)
        async with running(one, two):
            to_two, to_one = links(one, two)
            for purpose in (CONTROL, DATA, BULK):
                for size in (0, 1, 300_000, CLUSTER_PAYLOAD_SIZE_MAX):
                    to_two.send(purpose, 1, bytes(size))
                    to_one.send(purpose, 1, bytes(size))
            sizes = [0, 1, 300_000, CLUSTER_PAYLOAD_SIZE_MAX]
            for node in (one, two):
                await node.until(lambda node=node: len(node.payloads()) == 12)  # type: ignore[misc]
                for purpose in (CONTROL, DATA, BULK):
                    assert [len(one[1]) for one in node.told if one[0] is purpose] == sizes  # type: ignore[index]
            await one.until(lambda: one.digests > 2)
            assert to_two.lost_count == to_one.lost_count == 0

    run(work())


def test_nothing_is_lost_or_delivered_twice_when_connections_are_cut() -> None:
    async def work() -> None:
        async with connected() as (one, two, proxy):
            to_two, to_one = one.connect(two, proxy.port), two.connect(one)
            for number in range(300):
                to_two.send(DATA, 1, b"%d" % number)
                to_one.send(DATA, 1, b"%d" % number)
                if number % 100 == 50:
                    proxy.cut()
                await asyncio.sleep(0)
                if number % 100 == 99:
                    await two.has((DATA, b"%d" % number))
                    await one.has((DATA, b"%d" % number))
            wanted = [b"%d" % number for number in range(300)]
            assert one.payloads() == two.payloads() == wanted
            assert to_two.resumed_count >= 3
            assert to_two.lost_count == to_one.lost_count == 0

    run(work())


@pytest.mark.parametrize("place", [0, 1])
def test_a_node_whose_process_has_ended_is_gone_at_once_for_the_one_that_dials_and_the_other(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        nodes = RunningNode(1), RunningNode(2)
        async with running(*nodes):
            of_both = links(*nodes)
            for node, link in zip(nodes, of_both, strict=True):
                await node.until(lambda link=link: link.counters.connections == 2)  # type: ignore[misc]
            link, node = of_both[1 - place], nodes[1 - place]
            # No time that passes tells this one that the other is silent, or that a session is over.
            for bound in ("CLUSTER_SILENT_MS", "CLUSTER_SESSION_MS"):
                monkeypatch.setattr(node_link, bound, NEVER_MS)
            await nodes[place].transport.stop()
            await node.has("silent", ("lost", CONTROL), ("lost", DATA))
            assert link.is_gone

    run(work())


@pytest.mark.parametrize("direction", ["in", "out"])
def test_a_network_that_is_silent_in_one_direction_is_noticed_and_survived(direction: str) -> None:
    async def work() -> None:
        async with connected() as (one, two, proxy):
            to_two, to_one = one.connect(two, proxy.port), two.connect(one)
            proxy.silent.add(direction)
            deaf = one if direction == "in" else two
            to_two.send(DATA, 1, b"to two")
            to_one.send(DATA, 1, b"to one")
            await deaf.has("silent")
            proxy.silent.clear()
            await two.has((DATA, b"to two"))
            await one.has((DATA, b"to one"))
            assert one.payloads() == [b"to one"]
            assert two.payloads() == [b"to two"]
            assert to_two.lost_count == to_one.lost_count == 0

    run(work())


def test_a_node_that_has_gone_loses_its_sessions_and_one_that_restarts_begins_anew() -> None:
    async def work() -> None:
        async with connected() as (one, two, proxy):
            port = two.port
            to_two = one.connect(two, proxy.port)
            to_two.send(DATA, 1, b"before")
            await two.has((DATA, b"before"))
            await two.transport.stop()
            again = RunningNode(2, incarnation=2)
            async with running(again):
                assert again.port != port
                proxy.target = again.port
                again.connect(one)
                await one.has(("lost", DATA), ("lost", CONTROL))
                to_two.send(DATA, 1, b"after")
                await again.has((DATA, b"after"))
                assert again.payloads() == [b"after"]

    run(work())


def test_a_node_joins_and_becomes_a_member() -> None:
    async def work() -> None:
        one, new = RunningNode(1), RunningNode(0)
        one.on_received = lambda link, body: link.send(JOIN, 2, b"yes")
        async with running(one, new):
            new.transport.links.join("127.0.0.1", one.port, Clock().now()).send(JOIN, 1, b"may I")
            await new.has((JOIN, b"yes"))

    run(work())


def test_a_node_that_is_not_there_yet_is_dialed_again(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        port = free_port()
        one = RunningNode(1)
        async with running(one):
            two = RunningNode(2, port=port)
            one.connect(two, port)
            async with asyncio.timeout(20):
                while "no data connection to node 'node 2'" not in caplog.text:
                    await asyncio.sleep(0.01)
            async with running(two):
                two.connect(one)
                await one.has("heard")
                await two.has("heard")

    run(work())


def test_another_cookie_is_refused_and_costs_time_after_ten_failures(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work() -> None:
        throttle = LoginThrottleSettings(failures_free=3, delay_ms_max=200)
        one, two = RunningNode(1, cookie=b"another"), RunningNode(2, throttle=throttle)
        async with running(one, two):
            links(one, two)
            counts = two.transport.links.unowned.refusals
            async with asyncio.timeout(20):
                while not any("are delayed" in record.getMessage() for record in caplog.records):
                    await asyncio.sleep(0.01)
            assert set(counts) == {RefusalCode.COOKIE}
            assert one.told == two.told == []
        assert COOKIE.decode() not in caplog.text
        assert "another cookie" in caplog.text

    with caplog.at_level(logging.INFO, "warren.cluster"):
        run(work())


def test_garbage_is_refused_without_a_reason_and_the_node_serves_others() -> None:
    async def work() -> None:
        one, two = RunningNode(1), RunningNode(2)
        async with running(one, two):
            for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"AMQP\x00\x00\x09\x01", b"\x00" * 5000):
                reader, writer = await asyncio.open_connection("127.0.0.1", two.port)
                writer.write(garbage + bytes(16))
                answer = await reader.read()
                assert answer == b"" or answer.endswith(b"refused")
                writer.close()
            links(one, two)
            await two.has("heard")

    run(work())


def test_peers_that_say_nothing_are_bounded_and_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_connection, "CLUSTER_HANDSHAKE_MS", 300)

    async def work() -> None:
        two = RunningNode(2)
        async with running(two):
            opened = [
                await asyncio.open_connection("127.0.0.1", two.port)
                for _ in range(CLUSTER_UNPROVEN_PER_ADDRESS_MAX + 3)
            ]
            # Those beyond the bound are closed at once, and the others after the time of a handshake.
            refused = [await reader.read() for reader, _ in opened[-3:]]
            assert refused == [b""] * 3
            answers = [await reader.read() for reader, _ in opened[:-3]]
            assert all(answer.endswith(b"refused") for answer in answers)
            assert two.transport.links.unowned.refusals == {
                RefusalCode.TIMEOUT: CLUSTER_UNPROVEN_PER_ADDRESS_MAX
            }
            for _, writer in opened:
                writer.close()

    run(work())


def test_peers_whose_network_fell_silent_are_not_delayed_when_it_is_mended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link_connection, "CLUSTER_HANDSHAKE_MS", 100)

    async def work() -> None:
        # A delay that nothing survives.
        throttle = LoginThrottleSettings(failures_free=3, delay_ms_max=600_000)
        one, two = RunningNode(1), RunningNode(2, throttle=throttle)
        async with running(one, two):
            for _ in range(5):
                opened = [await asyncio.open_connection("127.0.0.1", two.port) for _ in range(4)]
                for reader, writer in opened:
                    assert (await reader.read()).endswith(b"refused")
                    writer.close()
            links(one, two)
            async with asyncio.timeout(20):
                await two.has("heard")

    run(work())


def test_peers_that_close_their_connections_keep_nobody_out() -> None:
    async def work() -> None:
        one, two = RunningNode(1), RunningNode(2)
        async with running(one, two):
            for _ in range(2 * CLUSTER_UNPROVEN_PER_ADDRESS_MAX):
                reader, writer = await asyncio.open_connection("127.0.0.1", two.port)
                writer.write_eof()
                assert await reader.read() == b""
                writer.close()
            links(one, two)
            await two.has("heard")

    run(work())


def test_an_error_of_a_listener_ends_the_session_and_not_the_node(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with connected() as (one, two, proxy):
            to_two = one.connect(two, proxy.port)

            def fail(link: NodeLink, body: bytes) -> None:
                raise RuntimeError("a mistake")

            two.on_received = fail
            to_two.send(DATA, 1, b"bad")
            await one.has(("lost", DATA))
            two.on_received = lambda link, body: None
            to_two.send(DATA, 1, b"good")
            await two.has((DATA, b"good"), ("lost", DATA))
            assert ("lost", CONTROL) not in one.told

    run(work())
    assert "a mistake" in caplog.text


# --- TLS ---------------------------------------------------------------------------------------------


def certified(folder: Path, authority: trustme.CA, *names: str) -> ClusterTlsSettings:
    """Write a certificate for `names`."""
    folder.mkdir(exist_ok=True)
    certificate = authority.issue_cert(*names)
    certificate.cert_chain_pems[0].write_to_path(folder / "node.pem")
    certificate.private_key_pem.write_to_path(folder / "node.key")
    authority.cert_pem.write_to_path(folder / "authority.pem")
    return ClusterTlsSettings(
        authority_file=str(folder / "authority.pem"),
        certificate_file=str(folder / "node.pem"),
        key_file=str(folder / "node.key"),
    )


def test_nodes_with_certificates_of_one_authority_are_linked(tmp_path: Path) -> None:
    async def work() -> None:
        authority = trustme.CA()
        one = RunningNode(1, tls=certified(tmp_path / "1", authority, "127.0.0.1"))
        two = RunningNode(2, tls=certified(tmp_path / "2", authority, "127.0.0.1"))
        async with running(one, two):
            to_two, to_one = links(one, two)
            to_two.send(DATA, 1, bytes(1_000_000))
            to_one.send(BULK, 1, b"back")
            await two.has((DATA, bytes(1_000_000)))
            await one.has((BULK, b"back"))

    run(work())


def test_nobody_without_a_certificate_is_listened_to(tmp_path: Path) -> None:
    async def work() -> None:
        authority = trustme.CA()
        two = RunningNode(2, tls=certified(tmp_path / "2", authority, "127.0.0.1"))
        context = ssl.create_default_context()
        authority.configure_trust(context)
        async with running(two):
            answer = b""
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", two.port, ssl=context)
                writer.write(b"garbage" * 9)
                answer = await reader.read()
                writer.close()
            assert answer == b""

    run(work())


@pytest.mark.parametrize(
    ("who", "reason"),
    [
        ("dialer is of another authority", "TLS handshake|unknown ca|certificate"),
        ("listener is of another authority", "its certificate is not accepted"),
        ("listener has another name", "its certificate is not accepted"),
        ("dialer has another name", "is not for its host '127.0.0.1'"),
        ("dialer has no TLS", "wrong version number|wrong_version|handshake|SSL"),
        ("listener has no TLS", "wrong version number|record layer failure|reset|closed|eof"),
    ],
)
def test_a_node_without_the_right_certificate_is_not_linked(
    tmp_path: Path, who: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    authority, other = trustme.CA(), trustme.CA()
    is_of_dialer = who.startswith("dialer")
    right = certified(tmp_path / "right", authority, "127.0.0.1")
    wrong = {
        "of": certified(tmp_path / "other", other, "127.0.0.1"),
        "another": certified(tmp_path / "name", authority, "other.example"),
        "no": None,
    }["no" if "no TLS" in who else "of" if "authority" in who else "another"]

    async def work() -> None:
        one = RunningNode(1, tls=wrong if is_of_dialer else right)
        two = RunningNode(2, tls=right if is_of_dialer else wrong)
        async with running(one, two):
            _, to_one = links(one, two)
            async with asyncio.timeout(20):
                while not re.search(reason, caplog.text):
                    await asyncio.sleep(0.01)
            assert one.told == two.told == []
            assert to_one.counters.connections == 0

    with caplog.at_level(logging.INFO, "warren.cluster"):
        run(work())


@pytest.mark.parametrize(("host", "is_warned"), [("127.0.0.1", False), ("", True)])
def test_the_log_warns_of_links_that_are_not_encrypted(
    host: str, is_warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with running(RunningNode(1, host=host)):
            pass

    run(work())
    assert ("not encrypted" in caplog.text) == is_warned


@pytest.mark.parametrize("side", ["accept", "dialed"])
def test_a_node_that_stops_while_a_socket_is_being_connected_forgets_the_connection(
    side: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The loop closes such a socket, and does not say so."""

    async def work() -> None:
        one, two = RunningNode(1), RunningNode(2)
        stopping = {"dialed": one, "accept": two}[side]
        node_links = stopping.transport.links
        connect = getattr(node_links, side)
        stops: list[asyncio.Task[None]] = []
        made: list[LinkConnection] = []

        def connect_and_stop(*arguments: Any) -> LinkConnection:
            stops.append(asyncio.ensure_future(stopping.transport.stop()))
            made.append(connect(*arguments))
            stopping.note("stopping")
            return made[-1]

        setattr(node_links, side, connect_and_stop)
        async with running(one, two):
            links(one, two)
            await stopping.has("stopping")
            await asyncio.gather(*stops)
            for _ in range(10):
                await asyncio.sleep(0)
            assert all(connection.is_finished for connection in made)

    run(work())
    assert "internal error" not in caplog.text
