"""OAuth 2 tokens are accepted and refused by Warren as by RabbitMQ with its plugin."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pika
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPConnectionError, ChannelClosedByBroker
from tests import rabbitmq
from tests.warren_process import running_warren

pytestmark = [
    pytest.mark.rabbitmq,
    pytest.mark.skipif(not rabbitmq.is_installed(), reason="rabbitmq-server is not installed"),
]
KEY = RSAKey.generate_key(2048, {"kid": "fixed"})
ANOTHER_KEY = RSAKey.generate_key(2048, {"kid": "fixed"})
EVERYTHING = "rabbitmq.configure:*/* rabbitmq.read:*/*/* rabbitmq.write:*/*/*"
PERMISSIONS = [{"rsid": "x", "scopes": ["rabbitmq.configure:*/*"]}]

# Claims that a token has in addition to or instead of those of the plain one; None removes a claim.
CLAIMS: dict[str, dict[str, object]] = {
    "plain": {},
    "for several": {"aud": ["x", "rabbitmq"]},
    "for another": {"aud": "other"},
    "for nobody": {"aud": None},
    "without a name": {"sub": None},
    "with the name of a client": {"sub": None, "client_id": "cid"},
    "without an end": {"exp": None},
    "with an end within a second": {"exp": time.time() + 3600.5},
    "ended": {"exp": 1_000_000_000},
    "scopes in a list": {"scope": EVERYTHING.split()},
    "scopes of another": {"scope": "other.read:*/*"},
    "scopes without a prefix": {"scope": "configure:*/* read:*/* write:*/*"},
    "scopes of Keycloak": {"scope": "", "authorization": {"permissions": PERMISSIONS}},
    "no topics": {"scope": "rabbitmq.configure:*/* rabbitmq.read:*/* rabbitmq.write:*/*"},
    "some topics": {"scope": "rabbitmq.configure:*/* rabbitmq.read:*/*/a.* rabbitmq.write:*/*/a.*"},
    "reading alone": {"scope": "rabbitmq.read:*/*"},
    "some queues": {"scope": "rabbitmq.configure:%2F/t* rabbitmq.write:%2F/* rabbitmq.read:%2F/t*"},
    "escaped": {"scope": "rabbitmq.configure:%2f/t%2Aq rabbitmq.configure:%2F/tq"},
    "another virtual host": {"scope": "rabbitmq.configure:foo/* rabbitmq.read:foo/*"},
    "half escaped": {"scope": "rabbitmq.configure:*/tq rabbitmq.read:%*/* rabbitmq.write:*/amq.default"},
    "too many parts": {"scope": "rabbitmq.configure:*/*/*/* rabbitmq.read:*/*"},
    "too few parts": {"scope": "rabbitmq.configure:*"},
    "capital letters": {"scope": "rabbitmq.CONFIGURE:*/*"},
    "a tag and no permission": {"scope": "rabbitmq.tag:administrator"},
}


@dataclass(frozen=True)
class BrokerPorts:
    """The ports of a broker."""

    port: int

    def opened_by(self, token: str) -> list[str]:
        """The result of each step for a user with `token`."""
        credentials = pika.PlainCredentials("", token)
        place = pika.ConnectionParameters("127.0.0.1", self.port, credentials=credentials, heartbeat=0)
        try:
            connection = pika.BlockingConnection(place)
        except AMQPConnectionError as error:
            return [str(error)]
        try:
            return [f"{name}: {_outcome(connection, step)}" for name, step in STEPS.items()]
        finally:
            connection.close()


def _outcome(connection: pika.BlockingConnection, step: Callable[[BlockingChannel], object]) -> str:
    channel = connection.channel()
    try:
        step(channel)
    except ChannelClosedByBroker as closed:
        return f"{closed.reply_code} {closed.reply_text}"
    channel.close()
    return "done"


def _published(channel: BlockingChannel, exchange: str, key: str) -> None:
    channel.confirm_delivery()
    channel.basic_publish(exchange, key, b"")


def _exchange(channel: BlockingChannel) -> None:
    channel.exchange_declare("tx", "direct", arguments={"alternate-exchange": "zae"})


STEPS: dict[str, Callable[[BlockingChannel], object]] = {
    "declare": lambda channel: channel.queue_declare("tq"),
    "declare another": lambda channel: channel.queue_declare("zq"),
    "publish": lambda channel: _published(channel, "", "tq"),
    "publish a topic": lambda channel: _published(channel, "amq.topic", "a.b"),
    "publish another topic": lambda channel: _published(channel, "amq.topic", "b.b"),
    "bind a topic": lambda channel: channel.queue_bind("tq", "amq.topic", "a.b"),
    "bind another topic": lambda channel: channel.queue_bind("tq", "amq.topic", "b.b"),
    "get": lambda channel: channel.basic_get("tq", auto_ack=True),
    "get from another": lambda channel: channel.basic_get("zq", auto_ack=True),
    "declare with an alternate exchange": _exchange,
}


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[BrokerPorts]]:
    """The ports of RabbitMQ and of Warren."""
    folder = tmp_path_factory.mktemp("tokens")
    key: Path = folder / "key.pem"
    key.write_bytes(KEY.as_pem(private=False))
    settings = {
        "auth_backends.1": "rabbit_auth_backend_oauth2",
        "auth_backends.2": "internal",
        "auth_oauth2.resource_server_id": "rabbitmq",
        "auth_oauth2.signing_keys.fixed": str(key),
        "auth_oauth2.default_key": "fixed",
    }
    theirs = rabbitmq.RabbitMQ(
        tmp_path_factory.mktemp("rabbitmq"),
        listen="127.0.0.1",
        settings="".join(f"{name} = {value}\n" for name, value in settings.items()),
        plugins=("rabbitmq_auth_backend_oauth2",),
    )
    try:
        theirs.start()
        with running_warren(folder, settings) as ours:
            yield [BrokerPorts(theirs.port), BrokerPorts(ours.port)]
    finally:
        theirs.stop()
        theirs.remove()


def signed(claims: dict[str, Any], key: RSAKey = KEY, **headers: str) -> str:
    """A token of Alice that grants everything, unless `claims` say otherwise."""
    plain = {"sub": "alice", "aud": "rabbitmq", "scope": EVERYTHING, "exp": int(time.time()) + 600}
    said = {name: value for name, value in {**plain, **claims}.items() if value is not None}
    algorithms = ["RS256", "PS256"]
    return jwt.encode({"alg": "RS256", "kid": "fixed", **headers}, said, key, algorithms=algorithms)


@pytest.mark.parametrize("name", CLAIMS)
def test_a_token_grants_the_same_access_in_both_brokers(doors: list[BrokerPorts], name: str) -> None:
    theirs, ours = (ports.opened_by(signed(CLAIMS[name])) for ports in doors)
    assert ours == theirs


def test_a_token_with_another_signature_is_refused_by_both(doors: list[BrokerPorts]) -> None:
    head, claims, signature = signed({}).split(".")
    wrong = [
        signed({}, ANOTHER_KEY),
        signed({}, kid="unknown"),
        f"{head}.{signed({'sub': 'root'}).split('.')[1]}.{signature}",
        f"{head}.{claims}.",
        f"{head}.{claims}",
    ]
    for token in wrong:
        theirs, ours = (ports.opened_by(token) for ports in doors)
        assert len(ours) == 1
        assert ours == theirs


@pytest.mark.parametrize(
    "claims",
    [{"exp": "never"}, {"nbf": 4_000_000_000}, {"aud": "x rabbitmq"}],
    ids=["end", "begin", "audience"],
)
def test_a_token_with_a_wrong_time_or_several_audiences_in_one_text_is_accepted_by_rabbitmq_only(
    doors: list[BrokerPorts], claims: dict[str, object]
) -> None:
    theirs, ours = (ports.opened_by(signed(claims)) for ports in doors)
    assert len(theirs) == len(STEPS)
    assert "ACCESS_REFUSED" in ours[0]
