"""Replacing the token of a connection with `connection.update-secret`."""

from tests.unit.session.client import Broker, OpenGate, publication

from warren.access.grants import TokenUser, token_user
from warren.access.scopes import Scopes
from warren.errors import NotAllowed
from warren.metadata.users import User
from warren.session.base_connection import ConnectionState
from warren.session.peer import Peer
from warren.wire import methods

ALL = ("configure:*/*", "write:*/*", "read:*/*")


class TokenGate(OpenGate):
    """Reads "scope scope …" as a token that expires at 1,000 ms; a renewal expires at 5,000."""

    async def authenticate(self, mechanism: str, response: bytes, peer: Peer) -> User:
        return token_user("guest", Scopes(ALL), 1_000)

    async def renewed(self, user: User, secret: str) -> User:
        if secret == "wrong":
            raise NotAllowed("New secret was refused by one of the backends", method_index=0)
        return token_user(user.name, Scopes(secret.split()), 5_000)


class TokenClientHarness:
    """A client that connected with a token, and has a queue."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.broker.server.admission_control = TokenGate()
        self.client = self.broker.client(capabilities={"consumer_cancel_notify": True})
        self.client.ask(methods.QueueDeclare(queue="q"))

    def renew(self, secret: str) -> list[str]:
        """The answer of the broker to the new secret."""
        received = self.client.ask(methods.ConnectionUpdateSecret(new_secret=secret, reason=""), channel=0)
        return [one.method.name for one in received]


def test_a_connection_is_closed_when_its_token_expires() -> None:
    harness = TokenClientHarness()
    connection = harness.client.connection
    assert connection.deadline() == 1_000
    harness.client.expire(999)
    assert connection.is_open
    harness.client.expire(1_000)
    (closed,) = harness.client.hear()
    assert closed.method.reply_code == 320
    assert closed.method.reply_text == "CONNECTION_FORCED - the token of user 'guest' has expired"


def test_a_new_token_extends_the_connection() -> None:
    harness = TokenClientHarness()
    assert harness.renew(" ".join(ALL)) == ["connection.update-secret-ok"]
    assert harness.client.connection.deadline() == 5_000
    harness.client.expire(1_000)
    assert harness.client.connection.is_open


def test_permissions_missing_in_a_new_token_are_revoked_at_once() -> None:
    harness = TokenClientHarness()
    publish = publication("q", b"m", exchange="amq.direct")
    harness.client.send(publish)
    assert harness.client.names() == []
    harness.renew("write:*/other")
    harness.client.send(publish)
    assert harness.client.names() == ["channel.close"]


def test_a_consumer_that_lost_its_read_permission_is_cancelled() -> None:
    harness = TokenClientHarness()
    harness.client.ask(methods.BasicConsume(queue="q", consumer_tag="c"))
    assert harness.renew("read:*/q write:*/q") == ["connection.update-secret-ok"]
    assert harness.renew("write:*/q") == ["basic.cancel", "connection.update-secret-ok"]
    assert harness.broker.services.vhost.queues["q"].consumer_count == 0


def test_a_refused_secret_closes_the_connection() -> None:
    harness = TokenClientHarness()
    assert harness.renew("wrong") == ["connection.close"]
    assert harness.client.connection.state is ConnectionState.CLOSING


def test_a_connection_without_a_token_cannot_update_its_secret() -> None:
    broker = Broker()
    client = broker.client()
    received = client.ask(methods.ConnectionUpdateSecret(new_secret="any", reason=""), channel=0)
    assert [one.method.name for one in received] == ["connection.update-secret-ok"]
    account = client.connection.login.account
    assert not isinstance(account, TokenUser)
    assert client.connection.login.expires_at is None
