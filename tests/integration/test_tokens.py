"""OAuth 2 tokens over AMQP and HTTP: a key server, expiry, and renewal on an open connection."""

import http.server
import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pika
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker
from tests.conformance.peer import Peer
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker, refusal
from tests.integration.stream_client import RawStreamClient

from warren.wire.streams import commands
from warren.wire.streams.codes import CommandKey, ResponseCode

ALL = "rabbitmq.configure:*/* rabbitmq.read:*/* rabbitmq.write:*/*"
FIXED = RSAKey.generate_key(2048, {"kid": "fixed"})
SERVED = RSAKey.generate_key(2048, {"kid": "served"})


class KeyServer:
    """Serves the keys in `keys`, and counts its requests."""

    def __init__(self) -> None:
        self.keys: list[RSAKey] = []
        self.asked = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                body = json.dumps(KeySet(outer.keys).as_dict(private=False)).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/keys"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def server() -> Iterator[KeyServer]:
    started = KeyServer()
    yield started
    started.close()


@pytest.fixture(scope="module")
def node(server: KeyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("oauth2")
    (folder / "key.pem").write_bytes(FIXED.as_pem(private=False))
    config = folder / "warren.conf"
    config.write_text(
        "auth_backends.1 = internal\n"
        "auth_backends.2 = rabbit_auth_backend_oauth2\n"
        "auth_oauth2.resource_server_id = rabbitmq\n"
        f"auth_oauth2.signing_keys.fixed = {folder / 'key.pem'}\n"
        "auth_oauth2.default_key = fixed\n"
        f"auth_oauth2.jwks_url = {server.url}\n"
        "initial_frame_max = 16384\n"
    )
    with broker(config=config) as started:
        yield started


def token(scope: str = ALL, *, key: RSAKey = FIXED, lives_s: float = 600, **claims: object) -> str:
    known: Mapping[str, object] = {
        "sub": "alice",
        "aud": "rabbitmq",
        "scope": scope,
        "exp": time.time() + lives_s,
    }
    return jwt.encode({"alg": "RS256", "kid": key.kid}, {**known, **claims}, key)


def connected(node: BrokerProcess, secret: str, name: str = "") -> pika.BlockingConnection:
    credentials = pika.PlainCredentials(name, secret)
    return pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", node.port, credentials=credentials, heartbeat=0)
    )


def test_a_token_is_accepted_as_a_password_and_determines_permissions(node: BrokerProcess) -> None:
    scope = "rabbitmq.configure:%2F/t* rabbitmq.write:%2F/t* rabbitmq.read:%2F/nothing"
    connection = connected(node, token(scope))
    channel = connection.channel()
    channel.queue_declare("t")
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.basic_get("t")
    assert caught.value.reply_text == (
        "ACCESS_REFUSED - access to queue 't' in vhost '/' refused for user 'alice'"
    )
    connection.close()


def test_passwords_and_tokens_can_be_used_together(node: BrokerProcess) -> None:
    connected(node, "guest", "guest").close()
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        connected(node, token()[:-4] + "AAAA", "guest")


def test_a_vhost_without_a_scope_is_refused(node: BrokerProcess) -> None:
    with pytest.raises((ConnectionClosedByBroker, pika.exceptions.ProbableAccessDeniedError)) as caught:
        connected(node, token("rabbitmq.read:other/*"))
    assert "access to vhost '/' refused for user 'alice'" in str(caught.value)


def test_the_api_accepts_a_bearer_token_with_the_rights_of_its_tags(node: BrokerProcess) -> None:
    bearer = HttpClient(node, user=None)

    def status(path: str, secret: str) -> int:
        return bearer.ask(f"GET {path}", headers={"authorization": f"Bearer {secret}"}).status

    monitor = token(f"{ALL} rabbitmq.tag:monitoring")
    assert bearer.ask("GET /whoami", headers={"authorization": f"Bearer {monitor}"}).value == {
        "name": "alice",
        "tags": ["monitoring"],
    }
    assert status("/nodes", monitor) == 200
    assert status("/users", monitor) == 401
    assert status("/users", token("rabbitmq.tag:administrator")) == 200
    assert status("/whoami", token(ALL)) == 401
    assert status("/whoami", token("rabbitmq.tag:administrator", lives_s=-1)) == 401
    assert HttpClient(node, f":{monitor}").status("GET /whoami") == 200


def test_a_declaration_over_http_requires_the_scope(node: BrokerProcess) -> None:
    scopes = "rabbitmq.tag:management rabbitmq.configure:%2F/http"
    client = HttpClient(node, f":{token(scopes)}")
    assert client.status("PUT /queues/%2F/http", {"durable": False}) == 201
    assert client.status("PUT /queues/%2F/other", {"durable": False}) == 401


def test_an_unknown_key_is_fetched_once_and_then_not_for_a_while(
    node: BrokerProcess, server: KeyServer
) -> None:
    server.keys = [SERVED]
    before = server.asked
    connected(node, token(key=SERVED)).close()
    assert server.asked == before + 1
    stranger = RSAKey.generate_key(2048, {"kid": "stranger"})
    for _ in range(3):
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            connected(node, token(key=stranger))
    assert server.asked == before + 1
    connected(node, token(key=SERVED)).close()


def peer_with(node: BrokerProcess, secret: str) -> Peer:
    peer = Peer("127.0.0.1", node.port)
    peer.handshake("", secret, "/")
    peer.send_method(1, "channel.open")
    peer.expect_method(1, "channel.open-ok", 5)
    return peer


def test_a_connection_closes_when_its_token_expires(node: BrokerProcess) -> None:
    peer = peer_with(node, token(lives_s=2))
    closed = peer.expect_method(0, "connection.close", 10)
    assert closed["reply_code"] == 320
    assert closed["reply_text"] == "CONNECTION_FORCED - the token of user 'alice' has expired"


def test_a_renewed_token_keeps_the_connection_open_with_its_permissions(node: BrokerProcess) -> None:
    peer = peer_with(node, token(lives_s=3))
    peer.send_method(1, "queue.declare", queue="renewed")
    peer.expect_method(1, "queue.declare-ok", 5)
    peer.send_method(1, "basic.consume", queue="renewed", consumer_tag="c")
    peer.expect_method(1, "basic.consume-ok", 5)
    began = time.monotonic()
    peer.send_method(
        0, "connection.update-secret", new_secret=token("rabbitmq.write:%2F/*"), reason="refresh"
    )
    # Nothing is delivered from a queue that may not be read any more.
    cancelled = peer.expect_method(1, "basic.cancel", 5)
    assert cancelled["consumer_tag"] == "c"
    peer.expect_method(0, "connection.update-secret-ok", 5)
    time.sleep(max(0.0, 3.5 - (time.monotonic() - began)))
    peer.send_method(1, "queue.declare", queue="another")
    assert peer.expect_method(1, "channel.close", 5)["reply_code"] == 403


@pytest.mark.parametrize("claims", [{"sub": "mallory"}, {"exp": 1}])
def test_a_token_of_another_user_closes_the_connection(
    node: BrokerProcess, claims: dict[str, object]
) -> None:
    peer = peer_with(node, token())
    peer.send_method(0, "connection.update-secret", new_secret=token(**claims), reason="refresh")
    closed = peer.expect_method(0, "connection.close", 5)
    assert closed["reply_code"] == 530
    assert closed["reply_text"] == "NOT_ALLOWED - New secret was refused by one of the backends"


def test_a_stream_connection_closes_when_its_token_expires_unless_it_is_renewed(node: BrokerProcess) -> None:
    lives, ends = (
        RawStreamClient(node.ports["stream"], user="alice", password=token(lives_s=3)) for _ in range(2)
    )
    lives.ask(commands.Create("kept", {}))
    assert lives.authenticate("alice", token()) == ResponseCode.OK
    closed = ends.hear()
    assert closed[:2] == CommandKey.CLOSE.to_bytes(2, "big")
    assert closed.endswith(b"the token has expired")
    assert lives.ask(commands.DeclarePublisher(1, "", "kept"))[8:10] == ResponseCode.OK.to_bytes(2, "big")
    lives.close()
    ends.close()


def test_permissions_missing_in_a_renewed_token_are_revoked_at_once(node: BrokerProcess) -> None:
    raw = RawStreamClient(node.ports["stream"], user="alice", password=token())
    raw.ask(commands.Create("withdrawn", {}))
    raw.ask(commands.DeclarePublisher(1, "", "withdrawn"))
    raw.subscribe(1, "withdrawn")
    assert raw.authenticate("alice", token("rabbitmq.write:%2F/*")) == ResponseCode.OK
    reported = raw.hear()
    assert reported[:2] == CommandKey.METADATA_UPDATE.to_bytes(2, "big")
    assert reported.endswith(b"withdrawn")
    raw.publish(1)
    assert raw.confirmed(1) == {1}
    assert raw.ask(commands.Unsubscribe(1))[8:10] == ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST.to_bytes(
        2, "big"
    )
    raw.close()


def test_the_user_of_an_open_stream_connection_cannot_be_changed(node: BrokerProcess) -> None:
    raw = RawStreamClient(node.ports["stream"], user="alice", password=token())
    assert raw.authenticate("mallory", token(sub="mallory")) == ResponseCode.SASL_CANNOT_CHANGE_USERNAME
    assert raw.authenticate("guest", "guest") == ResponseCode.SASL_CANNOT_CHANGE_USERNAME
    assert raw.authenticate("alice", token(exp=1)) == ResponseCode.AUTHENTICATION_FAILURE
    assert raw.authenticate("alice", token(), "AMQPLAIN") == ResponseCode.SASL_CANNOT_CHANGE_MECHANISM
    assert raw.authenticate("alice", token()) == ResponseCode.OK
    raw.close()


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"WARREN_AUTH_BACKENDS_1": "kerberos"}, "must be one of"),
        (
            {"WARREN_AUTH_BACKENDS_1": "oauth2", "WARREN_AUTH_OAUTH2_JWKS_URL": "http://192.0.2.1/"},
            "must be an https address",
        ),
        (
            {"WARREN_AUTH_BACKENDS_1": "oauth2", "WARREN_AUTH_OAUTH2_SIGNING_KEYS_A": "nothing.pem"},
            "cannot read a public key from",
        ),
    ],
)
def test_a_configuration_without_keys_prevents_the_start(
    tmp_path: Path, settings: dict[str, str], text: str
) -> None:
    status, errors = refusal(**settings)
    assert status != 0
    assert text in errors
