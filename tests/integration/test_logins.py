"""Failed logins over AMQP and HTTP delay further attempts, and no other logins."""

import time
from collections.abc import Iterator

import pika
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker

DELAY_S = 0.4


@pytest.fixture
def node() -> Iterator[BrokerProcess]:
    settings = {"WARREN_LOGIN_FAILURES_FREE": "3", "WARREN_LOGIN_FAILURES_DELAY_MAX": "400"}
    with broker(**settings) as started:
        yield started


def guess(node: BrokerProcess, count: int, user: str = "guest") -> float:
    """How long `count` wrong passwords took over HTTP, one after the other (s)."""
    client = HttpClient(node, f"{user}:wrong")
    began = time.monotonic()
    for _ in range(count):
        assert client.status("GET /whoami") == 401
    return time.monotonic() - began


def connect(node: BrokerProcess, name: str, password: str) -> float:
    """How long a login over AMQP took (s)."""
    began = time.monotonic()
    parameters = pika.ConnectionParameters(
        "127.0.0.1", node.port, credentials=pika.PlainCredentials(name, password)
    )
    pika.BlockingConnection(parameters).close()
    return time.monotonic() - began


def test_failed_logins_delay_further_attempts_over_http_and_amqp(node: BrokerProcess) -> None:
    guess(node, 6)
    assert guess(node, 3) >= 2 * DELAY_S
    with pytest.raises(pika.exceptions.ProbableAuthenticationError, match="Login was refused"):
        connect(node, "nobody", "wrong")
    assert connect(node, "guest", "guest") >= DELAY_S / 2
    node.process.terminate()
    node.stop()
    slowed = [line for line in node.lines if "further attempts are delayed" in line]
    assert len(slowed) == 1


def test_a_user_known_at_the_address_is_not_delayed_by_others(node: BrokerProcess) -> None:
    connect(node, "guest", "guest")
    guess(node, 8, user="stranger")
    assert connect(node, "guest", "guest") < DELAY_S / 2


def test_failed_sign_ins_to_the_web_interface_are_delayed(node: BrokerProcess) -> None:
    anonymous = HttpClient(node, user=None)
    wrong = {"username": "guest", "password": "wrong"}
    began = 0.0
    for attempt in range(9):
        if attempt == 6:
            began = time.monotonic()
        answer = anonymous.ask("POST /warren/session", wrong, {"x-warren-ui": "1"})
        assert answer.status == 401
    assert time.monotonic() - began >= 2 * DELAY_S


def test_login_attempts_are_counted(node: BrokerProcess) -> None:
    guess(node, 2)
    client = HttpClient(node)
    counted = {entry["protocol"]: entry for entry in client.get("/auth/attempts/warren@" + _host(client))}
    assert counted["http"]["auth_attempts_failed"] == 2


def test_a_password_change_applies_at_once(node: BrokerProcess) -> None:
    client = HttpClient(node)
    client.status("PUT /users/u", {"password": "first", "tags": "management"})
    assert HttpClient(node, "u:first").status("GET /whoami") == 200
    client.status("PUT /users/u", {"password": "second", "tags": "management"})
    assert HttpClient(node, "u:first").status("GET /whoami") == 401
    assert HttpClient(node, "u:second").status("GET /whoami") == 200


def _host(client: HttpClient) -> str:
    return str(client.get("/overview")["node"]).partition("@")[2]
