"""Dialing other brokers: what they answer, and what is said of those that cannot be reached."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from tests import rabbitmq
from tests.integration.broker_process import broker
from tests.integration.dialing import Deliveries, Ended, dialing, driven, peer, run
from tests.integration.test_http_tls import config, files

from warren.client.connection import ClientConnection
from warren.client.errors import BrokerRefused
from warren.client.rabbitmq_uri import parse_target
from warren.model.message import BODY_END, Message, encode_address
from warren.relay.endpoint import Endpoint, connect
from warren.wire import methods
from warren.wire.properties import BasicProperties

QUEUE = "dialed"


class Place:
    """A broker with certificates, and those of its clients."""

    def __init__(self, folder: Path, amqp: int, amqps: int) -> None:
        self.folder = folder
        self.amqp = amqp
        self.amqps = amqps

    def file(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    lines = {key: value for key, value in files(folder, authority, "ssl_options").items() if "file" in key}
    (folder / "lines.json").write_text(json.dumps(lines))
    for name, who in (("client", authority), ("stranger", trustme.CA())):
        certificate = who.issue_cert(common_name="guest")
        certificate.cert_chain_pems[0].write_to_path(str(folder / f"{name}.pem"))
        certificate.private_key_pem.write_to_path(str(folder / f"{name}.key"))
        who.cert_pem.write_to_path(str(folder / f"{name}-authority.pem"))
    return folder


@pytest.fixture(scope="module")
def warren(certificates: Path) -> Iterator[Place]:
    lines = json.loads((certificates / "lines.json").read_text())
    lines |= {
        "listeners.ssl.default": "127.0.0.1:0",
        "ssl_options.verify": "verify_peer",
        "ssl_options.fail_if_no_peer_cert": "false",
        "ssl_cert_login_from": "common_name",
        "auth_mechanisms.1": "PLAIN",
        "auth_mechanisms.2": "EXTERNAL",
    }
    with broker("--in-memory", config=config(certificates, lines)) as started:
        yield Place(certificates, started.port, started.ports["amqp/ssl"])


@pytest.fixture(scope="module")
def oracle(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if not rabbitmq.is_installed():
        pytest.skip("RabbitMQ is not installed")
    amqps = rabbitmq.free_port()
    lines = json.loads((certificates / "lines.json").read_text())
    settings = f"listeners.ssl.default = {amqps}\n" + "".join(
        f"{key} = {value}\n" for key, value in lines.items()
    )
    started = rabbitmq.RabbitMQ(tmp_path_factory.mktemp("rabbitmq"), settings=settings, plugins=())
    started.start()
    yield Place(certificates, started.port, amqps)
    started.stop()
    started.remove()


@pytest.fixture(params=["warren", "oracle"])
def place(request: pytest.FixtureRequest) -> Place:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Place)
    return found


def message(queue: str, body: bytes) -> Message:
    return Message.compose(encode_address("", queue), BasicProperties(), body + BODY_END, now=0)


async def pass_one_message(connection: ClientConnection) -> None:
    """Publish a message with a confirm, and consume it."""
    deliveries = Deliveries()
    channel = await driven(connection.open_channel(deliveries))
    await driven(channel.call(methods.QueueDeclare(queue=QUEUE, exclusive=True), methods.QueueDeclareOk))
    await driven(channel.call(methods.ConfirmSelect(), methods.ConfirmSelectOk))
    channel.publish(message(QUEUE, b"hello"))
    await deliveries.confirmed_up_to(1)
    await driven(channel.call(methods.BasicConsume(queue=QUEUE), methods.BasicConsumeOk))
    received, tag = await deliveries.messages.get()
    assert received.body == b"hello"
    channel.acknowledge(tag, False)
    await driven(connection.close())


def verified(place: Place, query: str = "") -> str:
    return (
        f"amqps://guest:guest@localhost:{place.amqps}?cacertfile={place.file('client-authority.pem')}{query}"
    )


def test_messages_pass_over_tcp(place: Place) -> None:
    async def work() -> None:
        async with dialing() as local:
            ended = Ended()
            connection = await local.dial(f"amqp://guest:guest@127.0.0.1:{place.amqp}?heartbeat=7", ended)
            await pass_one_message(connection)
            assert await ended.error is None

    run(work())


def test_messages_pass_over_tls_with_verification(place: Place) -> None:
    async def work() -> None:
        async with dialing() as local:
            await pass_one_message(await local.dial(verified(place)))

    run(work())


def test_a_broker_is_not_verified_if_the_uri_says_so(place: Place) -> None:
    async def work() -> None:
        async with dialing() as local:
            await pass_one_message(
                await local.dial(f"amqps://guest:guest@localhost:{place.amqps}?verify=verify_none")
            )

    run(work())


def test_a_certificate_of_another_authority_is_refused(place: Place) -> None:
    async def work() -> None:
        async with dialing() as local:
            uri = (
                f"amqps://al:secret@localhost:{place.amqps}?cacertfile={place.file('stranger-authority.pem')}"
            )
            reason = await local.refusal(uri)
            assert reason.startswith(
                f"TLS with localhost:{place.amqps}: the certificate of the broker is not accepted: "
            ), reason
            assert "cacertfile" in reason
            assert "secret" not in reason

    run(work())


def test_a_certificate_for_another_host_is_refused(place: Place) -> None:
    async def work() -> None:
        async with dialing() as local:
            reason = await local.refusal(verified(place, "&server_name_indication=elsewhere"))
            assert "Hostname mismatch, certificate is not valid for 'elsewhere'" in reason, reason

    run(work())


def test_a_host_is_not_compared_without_a_server_name(place: Place) -> None:
    async def work() -> None:
        async with dialing() as local:
            uri = verified(place, "&server_name_indication=disable").replace("localhost", "127.1")
            await pass_one_message(await local.dial(uri))

    run(work())


def test_a_client_certificate_logs_in(warren: Place) -> None:
    async def work() -> None:
        async with dialing() as local:
            shown = f"&certfile={warren.file('client.pem')}&keyfile={warren.file('client.key')}"
            uri = verified(warren, f"{shown}&auth_mechanism=external").replace("guest:guest", "nobody:wrong")
            await pass_one_message(await local.dial(uri))

    run(work())


def test_a_client_certificate_of_another_authority_is_refused(warren: Place) -> None:
    async def work() -> None:
        async with dialing() as local:
            shown = f"&certfile={warren.file('stranger.pem')}&keyfile={warren.file('stranger.key')}"
            reason = await local.refusal(verified(warren, f"{shown}&auth_mechanism=external"))
            assert "check who signed it" in reason, reason

    run(work())


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("cacertfile=/nowhere.pem", "cacertfile /nowhere.pem: no such file or directory"),
        ("cacertfile=/dev/zero", "cacertfile /dev/zero: not a file"),
        ("keyfile=/etc/hostname", "keyfile needs certfile, the certificate of the key"),
        ("certfile=/etc/hostname", "certfile /etc/hostname: no certificate with its key in PEM"),
    ],
)
def test_a_file_that_is_not_usable_is_named(warren: Place, query: str, reason: str) -> None:
    async def work() -> None:
        async with dialing() as local:
            assert reason in await local.refusal(f"amqps://guest:guest@localhost:{warren.amqps}?{query}")

    run(work())


def test_a_refused_login_is_named_without_its_password(place: Place) -> None:
    async def work() -> None:
        async with dialing() as local:
            reason = await local.refusal(f"amqp://al:secret@127.0.0.1:{place.amqp}")
            assert reason.startswith(
                f"login of user 'al' at 127.0.0.1:{place.amqp}: 403 ACCESS_REFUSED - Login was refused"
            ), reason
            assert "secret" not in reason

    run(work())


def test_the_next_address_is_tried_after_a_refused_login(warren: Place) -> None:
    async def work() -> None:
        async with dialing() as local:
            ended = Ended()
            uris = [f"amqp://{user}@127.0.0.1:{warren.amqp}" for user in ("al:secret", "guest:guest")]
            endpoint = Endpoint(targets=tuple(map(parse_target, uris)), name="s", user="guest")
            found = await driven(connect(local.dialer, endpoint, ended))
            assert found.connection.is_open
            assert not ended.error.done()

    run(work())


def test_a_mechanism_that_is_not_offered_is_named(place: Place) -> None:
    async def work() -> None:
        async with dialing() as local:
            reason = await local.refusal(f"amqp://127.0.0.1:{place.amqp}?auth_mechanism=external")
            assert "offers no login with EXTERNAL, but" in reason, reason

    run(work())


def test_a_virtual_host_that_does_not_exist_is_named(place: Place) -> None:
    async def work() -> None:
        async with dialing() as local:
            reason = await local.refusal(f"amqp://guest:guest@127.0.0.1:{place.amqp}/nowhere")
            assert reason.startswith(f"virtual host 'nowhere' at 127.0.0.1:{place.amqp}: 530 NOT_ALLOWED"), (
                reason
            )

    run(work())


def test_a_name_that_is_unknown_is_named() -> None:
    async def work() -> None:
        async with dialing() as local:
            reason = await local.refusal("amqp://guest:guest@nowhere.invalid")
            assert reason.startswith("name resolution of 'nowhere.invalid': "), reason

    run(work())


def test_connections_to_other_brokers_are_counted_and_bounded(warren: Place) -> None:
    async def work() -> None:
        async with dialing() as local:
            local.dialer.limit_sockets(2)
            uri = f"amqp://guest:guest@127.0.0.1:{warren.amqp}"
            first = await local.dial(uri)
            await local.dial(uri)
            # Connections in memory have no socket.
            in_memory = await local.dial("amqp://")
            assert local.dialer.sockets_beyond_clients() == 1
            with pytest.raises(BrokerRefused, match="no more than 2 connections to other brokers"):
                await local.dial(uri)
            await driven(in_memory.close())
            await driven(first.close())
            while local.dialer.sockets_beyond_clients() != 1:
                await asyncio.sleep(0.01)
            await local.dial(uri)

    run(work())


def test_a_port_on_which_nobody_listens_is_named() -> None:
    async def work() -> None:
        async with dialing() as local:
            port = rabbitmq.free_port()
            # Two addresses: each is tried.
            reason = await local.refusal(f"amqp://guest:guest@localhost:{port}")
            assert reason == f"connection to localhost:{port}: connection refused"

    run(work())


def test_an_address_that_does_not_answer_ends_in_time() -> None:
    async def work() -> None:
        async with dialing() as local:
            # A full backlog: the kernel ignores further clients.
            with contextlib.ExitStack() as opened:
                listening = opened.enter_context(socket.socket())
                listening.bind(("127.0.0.1", 0))
                listening.listen(0)
                port = listening.getsockname()[1]
                opened.enter_context(socket.create_connection(("127.0.0.1", port)))
                reason = await local.refusal(f"amqp://guest:guest@127.0.0.1:{port}?connection_timeout=300")
            assert reason.startswith(f"connection to 127.0.0.1:{port}: no answer within "), reason

    run(work())


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@pytest.mark.parametrize(("scheme", "phase"), [("amqp", "AMQP handshake with"), ("amqps", "TLS with")])
def test_a_server_that_says_nothing_is_left_in_time(scheme: str, phase: str) -> None:
    async def work() -> None:
        async with dialing() as local, peer(silence) as port:
            reason = await local.refusal(f"{scheme}://guest:guest@127.0.0.1:{port}?connection_timeout=300")
            assert reason.startswith(f"{phase} 127.0.0.1:{port}: no "), reason
            assert "300 ms" in reason

    run(work())


async def http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    await reader.read()


@pytest.mark.parametrize(
    ("scheme", "reason"),
    [
        ("amqp", "AMQP handshake with {}: the broker sent no valid AMQP: "),
        ("amqps", "TLS with {}: wrong version number"),
    ],
)
def test_a_server_that_is_no_broker_is_named(scheme: str, reason: str) -> None:
    async def work() -> None:
        async with dialing() as local, peer(http) as port:
            said = await local.refusal(f"{scheme}://guest:guest@127.0.0.1:{port}")
            assert said.startswith(reason.format(f"127.0.0.1:{port}")), said

    run(work())


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)


def test_a_server_that_hangs_up_is_named() -> None:
    async def work() -> None:
        async with dialing() as local, peer(hang_up) as port:
            said = await local.refusal(f"amqp://guest:guest@127.0.0.1:{port}")
            assert said == f"AMQP handshake with 127.0.0.1:{port}: the connection to the broker was lost"

    run(work())


def test_a_connection_that_is_cut_ends_its_channels() -> None:
    async def work() -> None:
        with broker("--in-memory") as started:
            async with dialing() as local:
                ended, deliveries = Ended(), Deliveries()
                connection = await local.dial(f"amqp://guest:guest@127.0.0.1:{started.port}", ended)
                await driven(connection.open_channel(deliveries))
                started.process.kill()
                error = await ended.error
                assert str(error) == "the connection to the broker was lost"
                assert await deliveries.error is error
                assert not local.outgoing.protocols

    run(work())


def test_a_broker_that_stops_says_so() -> None:
    async def work() -> None:
        with broker("--in-memory") as started:
            async with dialing() as local:
                ended = Ended()
                await local.dial(f"amqp://guest:guest@127.0.0.1:{started.port}", ended)
                started.process.terminate()
                error = await ended.error
                assert error is not None
                assert error.code == 320

    run(work())


def test_a_dial_that_is_abandoned_leaves_no_socket() -> None:
    async def work() -> None:
        gone = asyncio.Event()

        async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1000)
            assert await reader.read() == b""
            gone.set()

        async with dialing() as local, peer(wait) as port:
            target = parse_target(f"amqp://guest:guest@127.0.0.1:{port}")
            coroutine = local.dialer.dial(target, "s", "guest", Ended())
            coroutine.send(None)
            while not local.outgoing.protocols:
                await asyncio.sleep(0.01)
            coroutine.close()
            await gone.wait()

    run(work())


def test_a_node_that_stops_ends_its_dials() -> None:
    async def work() -> None:
        async with dialing() as local, peer(silence) as port:
            waiting = asyncio.ensure_future(local.refusal(f"amqp://guest:guest@127.0.0.1:{port}"))
            while not local.outgoing.protocols:
                await asyncio.sleep(0.01)
            local.dialer.close()
            assert await waiting == "the node is stopping"
            assert await local.refusal(f"amqp://guest:guest@127.0.0.1:{port}") == "the node is stopping"

    run(work())


def test_a_broker_that_does_not_read_holds_publishers_back(warren: Place) -> None:
    async def work() -> None:
        async with dialing() as local:
            connection = await local.dial(f"amqp://guest:guest@127.0.0.1:{warren.amqp}")
            deliveries = Deliveries()
            channel = await driven(connection.open_channel(deliveries))
            await driven(channel.call(methods.ConfirmSelect(), methods.ConfirmSelectOk))
            body = bytes(100_000)
            while not connection.outbox.is_full():
                channel.publish(message("", body))
            assert connection.outbox.is_full()
            await deliveries.confirmed_up_to(channel.sequence)
            assert not connection.outbox.is_full()
            await driven(connection.close())

    run(work())
