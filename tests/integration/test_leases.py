"""Leases over HTTP: leased messages are reserved until they are acknowledged once, also through crashes."""

import http.client
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pika
import pyarrow as pa
import pytest
from tests.integration.api import HttpClient, quoted
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.test_rows import read
from tests.patience import patient

PERSISTENT = 2
WAIT_S_MAX = patient(20)
QUEUE_TYPES = ("classic", "quorum")
LEASES = "/warren/queues/%2F/{}/leases"


class Work:
    """A broker with one queue, and a client that leases its messages."""

    def __init__(self, node: BrokerProcess, queue: str, **arguments: object) -> None:
        self.node = node
        self.client = HttpClient(node)
        self.queue = queue
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port))
        self.channel = connection.channel()
        self.channel.queue_declare(queue, durable=True, arguments=arguments)
        self.publishing = connection.channel()
        self.publishing.tx_select()

    def publish(self, *bodies: str, **properties: Any) -> None:
        properties.setdefault("delivery_mode", PERSISTENT)
        for body in bodies:
            self.publishing.basic_publish("", self.queue, body.encode(), pika.BasicProperties(**properties))
        self.publishing.tx_commit()

    def numbers(self, count: int, first: int = 0) -> list[str]:
        bodies = [str(number) for number in range(first, first + count)]
        self.publish(*bodies)
        return bodies

    def lease(self, key: str = "k", **wanted: object) -> dict[str, Any]:
        answer = self.client.ask("POST " + LEASES.format(quoted(self.queue)), {"key": key, **wanted})
        assert answer.status in (200, 201), answer
        return dict(answer.value, status=answer.status)

    def shown(self, lease: dict[str, Any]) -> dict[str, Any]:
        shown: dict[str, Any] = self.client.get(f"/warren/leases/{lease['lease']}")
        return shown

    def rows(self, lease: dict[str, Any], **query: object) -> pa.Table:
        return read(self.node, f"/leases/{lease['lease']}/rows", **query)[0]

    def bodies(self, lease: dict[str, Any], **query: object) -> list[str]:
        return [body.decode() for body in self.rows(lease, **query)["body"].to_pylist()]

    def settle(self, lease: dict[str, Any], outcome: str = "acknowledge") -> int:
        return self.client.status(f"POST /warren/leases/{lease['lease']}/settle", {"outcome": outcome})

    def left(self) -> list[tuple[str, bool]]:
        """Consume the remaining messages of the queue: bodies, and whether they are redelivered."""
        found = []
        while (got := self.channel.basic_get(self.queue, auto_ack=True))[0] is not None:
            found.append((got[2].decode(), got[0].redelivered))
        return found


@pytest.fixture(params=QUEUE_TYPES)
def queue_type(request: pytest.FixtureRequest) -> str:
    """The type of the queue that is leased from."""
    return str(request.param)


@pytest.fixture
def work(node: BrokerProcess, request: pytest.FixtureRequest, queue_type: str) -> Iterator[Work]:
    work = Work(node, request.node.name, **{"x-queue-type": queue_type})
    yield work
    work.channel.queue_delete(work.queue)
    work.channel.connection.close()
    work.client.close()


def wait_until(holds: Any) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_leased_messages_are_read_repeatedly_and_acknowledged_together(work: Work) -> None:
    bodies = work.numbers(300)
    lease = work.lease(messages=200)
    assert lease["status"] == 201
    assert (lease["messages"], lease["bytes"], lease["state"]) == (
        200,
        sum(map(len, bodies[:200])),
        "active",
    )
    assert work.bodies(lease) == work.bodies(lease) == bodies[:200]
    assert work.rows(lease, columns="offset")["offset"].to_pylist() == list(range(200))
    assert work.bodies(lease, start=150, end=160) == bodies[150:160]
    assert work.bodies(lease, start=199) == bodies[199:200]
    assert work.bodies(lease, start=200) == []
    assert set(work.rows(lease)["redelivered"].to_pylist()) == {False}
    assert work.settle(lease) == 200
    assert work.shown(lease)["state"] == "settled"
    assert work.client.status(f"GET /warren/leases/{lease['lease']}/rows") == 410
    assert work.left() == [(body, False) for body in bodies[200:]]


def test_the_same_key_returns_the_same_lease(work: Work) -> None:
    work.numbers(10)
    lease = work.lease("a", messages=5)
    again = work.lease("a", messages=3)
    assert (again["status"], again["lease"], again["messages"]) == (200, lease["lease"], 5)
    other = work.lease("b", messages=2)
    assert work.bodies(other) == ["5", "6"]
    work.settle(lease)
    settled = work.lease("a")
    assert (settled["status"], settled["lease"], settled["state"]) == (200, lease["lease"], "settled")
    assert work.bodies(work.lease("c")) == ["7", "8", "9"]


def test_concurrent_requests_with_one_key_return_one_lease(work: Work) -> None:
    work.numbers(100)
    found: list[dict[str, Any]] = []

    def ask() -> None:
        with closing(HttpClient(work.node)) as client:
            answer = client.ask("POST " + LEASES.format(quoted(work.queue)), {"key": "k", "messages": 10})
            found.append(answer.value)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({lease["lease"] for lease in found}) == 1
    assert work.client.get(f"/queues/%2F/{quoted(work.queue)}?columns=name")["name"] == work.queue
    assert len(work.left()) == 90


def test_an_empty_queue_grants_no_lease(work: Work) -> None:
    empty = work.lease()
    assert (empty["status"], empty["lease"], empty["messages"]) == (200, None, 0)
    work.publish("now")
    assert work.bodies(work.lease()) == ["now"]


def test_a_lease_is_limited_by_bytes_but_has_at_least_one_message(work: Work) -> None:
    work.publish("x" * 100, "y" * 100, "z" * 100)
    assert work.lease("a", octets=250)["messages"] == 2
    assert work.lease("b", octets=1)["messages"] == 1


def test_requeued_messages_return_to_their_positions_and_are_redelivered(work: Work) -> None:
    bodies = work.numbers(300)
    lease = work.lease(messages=250)
    assert work.settle(lease, "requeue") == 200
    assert work.shown(lease)["state"] == "requeued"
    wait_until(lambda: work.channel.queue_declare(work.queue, passive=True).method.message_count == 300)
    assert work.left() == [(body, number < 250) for number, body in enumerate(bodies)]


def test_a_lease_is_ended_once(work: Work) -> None:
    work.numbers(3)
    lease = work.lease()
    assert [work.settle(lease), work.settle(lease)] == [200, 200]
    assert work.settle(lease, "requeue") == 409
    assert work.client.status(f"POST /warren/leases/{lease['lease']}/renew", {"ttl": 5}) == 410
    assert work.left() == []


def test_a_lease_that_is_not_ended_expires(work: Work) -> None:
    bodies = work.numbers(3)
    lease = work.lease(ttl=1)
    wait_until(lambda: work.shown(lease)["state"] == "expired")
    assert work.client.status(f"GET /warren/leases/{lease['lease']}/rows") == 410
    assert work.settle(lease) == 410
    assert work.left() == [(body, True) for body in bodies]


def test_a_renewed_lease_does_not_expire(work: Work) -> None:
    work.numbers(3)
    lease = work.lease(ttl=1)
    answer = work.client.ask(f"POST /warren/leases/{lease['lease']}/renew", {"ttl": 600})
    assert answer.value["expires_at"] > lease["expires_at"] + 500_000
    other = Work(work.node, f"{work.queue}.other")
    other.publish("x")
    # Another lease expires at the time at which the first would have.
    expiring = other.lease(ttl=1)
    wait_until(lambda: other.shown(expiring)["state"] == "expired")
    assert work.shown(lease)["state"] == "active"
    other.channel.queue_delete(other.queue)


def test_a_consumer_receives_released_messages(work: Work) -> None:
    work.numbers(2)
    lease = work.lease()
    got: list[bytes] = []
    work.channel.basic_consume(work.queue, lambda *found: got.append(found[3]), auto_ack=True)
    work.settle(lease, "requeue")
    while len(got) < 2:
        work.channel.connection.process_data_events(1)
    assert got == [b"0", b"1"]


def test_purging_leaves_leased_messages(work: Work) -> None:
    work.numbers(5)
    lease = work.lease(messages=3)
    assert work.channel.queue_purge(work.queue).method.message_count == 2
    assert work.bodies(lease) == ["0", "1", "2"]
    work.settle(lease, "requeue")
    wait_until(lambda: work.channel.queue_declare(work.queue, passive=True).method.message_count == 3)


def test_deleting_a_queue_ends_its_leases(work: Work) -> None:
    work.numbers(5)
    lease = work.lease()
    work.channel.queue_delete(work.queue)
    assert work.client.status(f"GET /warren/leases/{lease['lease']}") == 404
    assert work.settle(lease) == 404
    work.channel.queue_declare(work.queue, durable=True)
    work.publish("new")
    assert work.bodies(work.lease()) == ["new"]


def test_leases_are_listed(work: Work) -> None:
    work.numbers(5)
    lease, other = work.lease("a", messages=1), work.lease("b", messages=1)
    of_queue = work.client.get(LEASES.format(quoted(work.queue)))
    assert [(one["lease"], one["key"]) for one in of_queue] == [(lease["lease"], "a"), (other["lease"], "b")]
    everywhere = work.client.get("/warren/leases")
    assert {lease["lease"], other["lease"]} <= {one["lease"] for one in everywhere}
    assert work.shown(lease)["user"] == "guest"


@pytest.mark.parametrize(
    "body",
    [{}, {"key": ""}, {"key": 5}, {"key": "k" * 1_025}, {"key": "k", "messages": 0},
     {"key": "k", "max_messages": 500_001}, {"key": "k", "ttl": 86_401}, {"key": "k", "max_bytes": "x"}],
)  # fmt: skip
def test_invalid_requests_are_refused(work: Work, body: dict[str, object]) -> None:
    assert work.client.status("POST " + LEASES.format(quoted(work.queue)), body) == 400


def test_a_user_without_read_permission_cannot_access_leases_of_a_queue(work: Work) -> None:
    work.numbers(5)
    lease = work.lease()
    work.client.ask("PUT /users/blind", {"password": "x", "tags": "management"})
    work.client.ask("PUT /permissions/%2F/blind", {"configure": ".*", "write": ".*", "read": "^other$"})
    blind = HttpClient(work.node, "blind:x")
    assert blind.status("POST " + LEASES.format(quoted(work.queue)), {"key": "k"}) == 401
    for line in (f"GET /warren/leases/{lease['lease']}", f"GET /warren/leases/{lease['lease']}/rows",
                 f"POST /warren/leases/{lease['lease']}/settle",
                 f"POST /warren/leases/{lease['lease']}/renew"):  # fmt: skip
        assert blind.status(line, {}) == 404
    work.client.ask("DELETE /users/blind")


def test_a_lease_is_invisible_to_other_users(work: Work) -> None:
    work.numbers(5)
    lease = work.lease()
    for user, tags in (("colleague", "management"), ("looker", "monitoring")):
        work.client.ask(f"PUT /users/{user}", {"password": "x", "tags": tags})
        work.client.ask(f"PUT /permissions/%2F/{user}", {"configure": ".*", "write": ".*", "read": ".*"})
    colleague, looker = HttpClient(work.node, "colleague:x"), HttpClient(work.node, "looker:x")
    lines = ("GET /warren/leases/{}", "GET /warren/leases/{}/rows", "POST /warren/leases/{}/settle",
             "POST /warren/leases/{}/renew")  # fmt: skip
    for line in lines:
        foreign = colleague.ask(line.format(lease["lease"]), {})
        none = colleague.ask(line.format("0" * 32), {})
        assert (foreign.status, foreign.value) == (none.status, none.value) == (404, none.value)
    of_queue = LEASES.format(quoted(work.queue))
    assert colleague.get("/warren/leases") == colleague.get(of_queue) == []
    # A user with the tag monitoring sees it, and cannot change it.
    assert [one["lease"] for one in looker.get(of_queue)] == [lease["lease"]]
    assert [looker.status(line.format(lease["lease"]), {}) for line in lines] == [200, 404, 404, 404]
    assert work.shown(lease)["state"] == "active"
    for user in ("colleague", "looker"):
        work.client.ask(f"DELETE /users/{user}")


def test_the_number_of_leases_is_bounded(work: Work) -> None:
    work.numbers(66)
    leases = [work.lease(f"k{number}", messages=1) for number in range(64)]
    answer = work.client.ask("POST " + LEASES.format(quoted(work.queue)), {"key": "more", "messages": 1})
    assert answer.status == 503
    work.settle(leases[0])
    wait_until(
        lambda: work.client.status("POST " + LEASES.format(quoted(work.queue)), {"key": "more"}) == 201
    )
    for lease in leases[1:]:
        work.settle(lease)


def test_messages_of_each_priority_are_leased_in_order(node: BrokerProcess) -> None:
    work = Work(node, "by priority", **{"x-max-priority": 5})
    for number in range(9):
        work.publish(str(number), priority=number % 3)
    lease = work.lease(messages=5)
    assert work.bodies(lease) == ["2", "5", "8", "1", "4"]
    work.settle(lease, "requeue")
    wait_until(lambda: work.channel.queue_declare(work.queue, passive=True).method.message_count == 9)
    assert [body for body, _ in work.left()] == ["2", "5", "8", "1", "4", "7", "0", "3", "6"]
    work.channel.queue_delete(work.queue)


def test_a_paused_queue_grants_no_lease(work: Work) -> None:
    work.numbers(3)
    pause = f"/warren/queues/%2F/{quoted(work.queue)}/pause"
    work.client.ask(f"PUT {pause}")
    assert work.lease()["lease"] is None
    work.client.ask(f"DELETE {pause}")
    assert work.lease()["messages"] == 3


# --- through a crash --------------------------------------------------------------------------


def kill(node: BrokerProcess) -> None:
    node.process.send_signal(signal.SIGKILL)
    node.process.wait()


def test_a_lease_survives_a_crash_with_the_same_messages(tmp_path: Path, queue_type: str) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        work = Work(node, "orders", **{"x-queue-type": queue_type})
        bodies = work.numbers(300)
        first, second = work.lease("a", messages=100), work.lease("b", messages=50)
        kill(node)
    with broker("--data-dir", str(tmp_path)) as node:
        work = Work(node, "orders", **{"x-queue-type": queue_type})
        assert work.shown(first)["state"] == work.shown(second)["state"] == "active"
        assert work.bodies(first) == bodies[:100]
        assert work.bodies(second, start=10, end=12) == bodies[110:112]
        assert work.lease("a")["lease"] == first["lease"]
        assert work.settle(first) == 200
        kill(node)
    with broker("--data-dir", str(tmp_path)) as node:
        work = Work(node, "orders", **{"x-queue-type": queue_type})
        assert work.shown(first)["state"] == "settled"
        assert work.settle(first) == 200
        assert work.bodies(second) == bodies[100:150]
        assert [body for body, _ in work.left()] == bodies[150:]
        assert work.settle(second, "requeue") == 200
        kill(node)
    with broker("--data-dir", str(tmp_path)) as node:
        work = Work(node, "orders", **{"x-queue-type": queue_type})
        # Messages of the last acknowledgement may return, as it was not waited for until it was on disk.
        assert work.left()[:50] == [(body, True) for body in bodies[100:150]]


def test_acknowledged_messages_do_not_return_after_an_immediate_crash(
    tmp_path: Path, queue_type: str
) -> None:
    settled: list[str] = []
    for turn in range(3):
        with broker("--data-dir", str(tmp_path)) as node:
            work = Work(node, "orders", **{"x-queue-type": queue_type})
            assert work.left() == []
            bodies = work.numbers(2_000)
            lease = work.lease(f"turn {turn}", messages=2_000)
            assert work.bodies(lease) == bodies
            assert work.settle(lease) == 200
            kill(node)
            settled.append(lease["lease"])
    with broker("--data-dir", str(tmp_path)) as node:
        work = Work(node, "orders", **{"x-queue-type": queue_type})
        assert work.left() == []
        assert [work.client.get(f"/warren/leases/{id}")["state"] for id in settled] == ["settled"] * 3


def test_a_crash_while_a_lease_is_granted_leaves_it_complete_or_absent(
    tmp_path: Path, queue_type: str
) -> None:
    for turn in range(3):
        with broker("--data-dir", str(tmp_path)) as node:
            work = Work(node, "orders", **{"x-queue-type": queue_type})
            bodies = work.numbers(1_000, first=turn * 1_000)
            asking = threading.Thread(target=ask, args=(work, f"turn {turn}"))
            asking.start()
            time.sleep(turn * 0.02)
            kill(node)
            asking.join()
        with broker("--data-dir", str(tmp_path)) as node:
            work = Work(node, "orders", **{"x-queue-type": queue_type})
            lease = work.lease(f"turn {turn}", messages=1_000)
            assert work.bodies(lease) == bodies
            assert work.settle(lease) == 200
            assert work.left() == []


def ask(work: Work, key: str) -> None:
    """Request a lease from a broker that is about to be killed."""
    with suppress(OSError, http.client.HTTPException):
        work.client.ask("POST " + LEASES.format(work.queue), {"key": key, "messages": 1_000})


def test_a_lease_expires_while_the_broker_is_down(tmp_path: Path, queue_type: str) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        work = Work(node, "orders", **{"x-queue-type": queue_type})
        bodies = work.numbers(5)
        lease = work.lease(ttl=1)
        kill(node)
    time.sleep(1.1)
    with broker("--data-dir", str(tmp_path)) as node:
        work = Work(node, "orders", **{"x-queue-type": queue_type})
        wait_until(lambda: work.shown(lease)["state"] == "expired")
        wait_until(lambda: work.channel.queue_declare("orders", passive=True).method.message_count == 5)
        assert work.left() == [(body, True) for body in bodies]


def test_a_backlog_on_disk_is_leased_and_leased_again_after_a_crash(tmp_path: Path, queue_type: str) -> None:
    size, count = 40_000, 1_200
    with broker("--data-dir", str(tmp_path)) as node:
        work = Work(node, "orders", **{"x-queue-type": queue_type})
        bodies = [f"{number:010d}" + "x" * size for number in range(count)]
        work.publish(*bodies)
        lease = work.lease(messages=1_000)
        assert lease["messages"] == 1_000
        assert work.bodies(lease) == bodies[:1_000]
        kill(node)
    with broker("--data-dir", str(tmp_path)) as node:
        work = Work(node, "orders", **{"x-queue-type": queue_type})
        assert work.bodies(lease) == bodies[:1_000]
        work.settle(lease)
        assert [body for body, _ in work.left()] == bodies[1_000:]


def test_priorities_are_in_the_same_lease_after_a_crash(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        work = Work(node, "orders", **{"x-max-priority": 3})
        for number in range(60):
            work.publish(str(number), priority=number % 4)
        lease = work.lease(messages=40)
        bodies = work.bodies(lease)
        kill(node)
    with broker("--data-dir", str(tmp_path)) as node:
        work = Work(node, "orders", **{"x-max-priority": 3})
        assert work.bodies(lease) == bodies
        work.settle(lease)
        assert {body for body, _ in work.left()} == {str(number) for number in range(60)} - {*bodies}


def test_transient_messages_are_missing_from_a_lease_after_a_crash(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        work = Work(node, "orders")
        for number in range(10):
            work.publish(str(number), delivery_mode=1 + number % 2)
        lease = work.lease()
        assert len(work.bodies(lease)) == 10
        kill(node)
    with broker("--data-dir", str(tmp_path)) as node:
        work = Work(node, "orders")
        table = work.rows(lease)
        assert table["offset"].to_pylist() == [1, 3, 5, 7, 9]
        assert table["body"].to_pylist() == [b"1", b"3", b"5", b"7", b"9"]
        work.settle(lease)
        assert work.left() == []
