"""The stream protocol with TLS: the certificates of AMQP, and rstream as a client."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from rstream import (
    AMQPMessage,
    Consumer,
    ConsumerOffsetSpecification,
    OffsetType,
    Producer,
    SlasMechanism,
    amqp_decoder,
)
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.stream_client import RawStreamClient
from tests.patience import patient

LOGIN = {"username": "guest", "password": "guest"}
WAIT_S = patient(20)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def configured(folder: Path, authority: trustme.CA, *lines: str) -> Path:
    """A configuration with a TLS listener for streams, and certificates by `authority`."""
    issued = authority.issue_cert("localhost", "127.0.0.1")
    (folder / "server.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    (folder / "server.key").write_bytes(issued.private_key_pem.bytes())
    (folder / "ca.pem").write_bytes(authority.cert_pem.bytes())
    config = folder / "warren.conf"
    said = (
        "stream.listeners.ssl.default = 127.0.0.1:0",
        f"ssl_options.certfile = {folder}/server.pem",
        f"ssl_options.keyfile = {folder}/server.key",
        f"ssl_options.cacertfile = {folder}/ca.pem",
        "ssl_options.verify = verify_peer",
        *lines,
    )
    config.write_text("\n".join(said) + "\n")
    return config


@pytest.fixture(scope="module")
def node(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    lines = ("ssl_cert_login_from = common_name", "auth_mechanisms.1 = PLAIN", "auth_mechanisms.2 = EXTERNAL")
    config = configured(tmp_path_factory.mktemp("tls"), authority, *lines)
    with broker(config=config) as started:
        yield started


def trusting(authority: trustme.CA, common_name: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if common_name:
        authority.issue_cert(common_name, common_name=common_name).configure_cert(context)
    return context


def test_rstream_publishes_and_consumes_with_tls(node: BrokerProcess, authority: trustme.CA) -> None:
    context = trusting(authority)
    where = {"host": "127.0.0.1", "port": node.ports["stream/ssl"], "ssl_context": context, **LOGIN}

    async def scenario() -> None:
        async with Producer(**where) as producer:
            await producer.create_stream("s", exists_ok=True)
            for number in range(10):
                await producer.send_wait("s", AMQPMessage(body=b"%d" % number))
        consumer = Consumer(**where)
        await consumer.start()
        bodies: list[bytes] = []
        is_enough = asyncio.Event()

        async def take(message: AMQPMessage, _: object) -> None:
            bodies.append(bytes(message.body))
            if len(bodies) == 10:
                is_enough.set()

        first = ConsumerOffsetSpecification(OffsetType.FIRST)
        await consumer.subscribe("s", take, decoder=amqp_decoder, offset_specification=first)
        await asyncio.wait_for(is_enough.wait(), WAIT_S)
        assert bodies == [b"%d" % number for number in range(10)]
        for shown in HttpClient(node).get("/stream/connections"):
            assert (shown["ssl"], shown["ssl_protocol"]) == (True, "TLSv1.3")
            assert shown["port"] == node.ports["stream/ssl"]
        await consumer.close()

    asyncio.run(asyncio.wait_for(scenario(), WAIT_S * 2))
    assert HttpClient(node).status("GET /health/checks/protocol-listener/stream%2Fssl") == 200


def test_a_certificate_authenticates_a_stream_client(node: BrokerProcess, authority: trustme.CA) -> None:
    client = HttpClient(node)
    client.ask("PUT /users/sensor", {"password_hash": "", "tags": ""})
    client.ask("PUT /permissions/%2F/sensor", {"configure": ".*", "write": ".*", "read": ".*"})
    context = trusting(authority, "sensor")

    async def scenario() -> None:
        where = {"host": "127.0.0.1", "port": node.ports["stream/ssl"], "username": "", "password": ""}
        async with Producer(
            **where, ssl_context=context, sasl_configuration_mechanism=SlasMechanism.MechanismExternal
        ) as producer:
            await producer.create_stream("external", exists_ok=True)
            await producer.send_wait("external", AMQPMessage(body=b"x"))
            (shown,) = client.get("/stream/connections?columns=user,auth_mechanism")[:1]
            assert shown == {"user": "sensor", "auth_mechanism": "EXTERNAL"}

    asyncio.run(asyncio.wait_for(scenario(), WAIT_S * 2))


def test_clients_without_tls_or_trust_cannot_connect(node: BrokerProcess) -> None:
    port = node.ports["stream/ssl"]
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as plain:
        plain.sendall(b"\0\0\0\4\0\x11\0\1")
        assert plain.recv(100)[:1] in (b"", b"\x15")
    context = trusting(trustme.CA())
    with pytest.raises(ssl.SSLCertVerificationError):
        RawStreamClient(port, context=context)


def test_clients_with_tls_receive_the_tls_address(authority: trustme.CA, tmp_path: Path) -> None:
    lines = (
        "stream.advertised_host = plain.example", "stream.advertised_port = 1",
        "stream.advertised_tls_host = safe.example", "stream.advertised_tls_port = 2",
    )  # fmt: skip
    with broker(config=configured(tmp_path, authority, *lines)) as started:
        for name, context, reported in (
            ("stream", None, (b"plain.example", b"1")),
            ("stream/ssl", trusting(authority), (b"safe.example", b"2")),
        ):
            raw = RawStreamClient(started.ports[name], context=context)
            assert all(text in raw.opened for text in reported)
            raw.close()


def test_without_a_certificate_there_is_no_listener(tmp_path: Path) -> None:
    config = tmp_path / "warren.conf"
    config.write_text("stream.listeners.ssl.default = 127.0.0.1:0\n")
    with pytest.raises(AssertionError, match="TLS: a TLS listener needs"), broker(config=config):
        pass
