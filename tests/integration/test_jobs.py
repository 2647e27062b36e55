"""Jobs that move messages between queues: order, permissions, stopping, and no lost messages."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.conftest import QUEUE_TYPES
from tests.integration.dead_letters import (
    Channel,
    bodies,
    channel_of,
    done,
    ended,
    path_of,
    publish,
    start,
    take,
)
from tests.patience import patient

QUEUES = ("from", "to")
NUMBERS = [str(number) for number in range(200)]


@pytest.fixture
def channel(node: BrokerProcess, default_queue_type: str) -> Iterator[Channel]:
    with channel_of(node) as channel:
        for name in QUEUES:
            channel.queue_declare(name, durable=True)
        yield channel
        for name in QUEUES:
            channel.queue_delete(name)


def test_messages_are_moved_unchanged_and_in_order(client: HttpClient, channel: Channel) -> None:
    publish(channel, "from", NUMBERS, headers={"tenant": "acme"}, expiration="60000")
    job = done(client, "from", "move", destination="to")
    assert (job["state"], job["moved"], job["kind"], job["unconfirmed"]) == ("done", len(NUMBERS), "move", 0)
    assert job["target"] == {"vhost": "/", "queue": "to"}
    found = take(channel, "to")
    assert [body for _, _, body in found] == NUMBERS
    method, properties, _ = found[0]
    assert (method.exchange, method.routing_key, method.redelivered) == ("", "from", False)
    # The answer of basic.get has it, if the queue is a quorum queue.
    properties.headers.pop("x-delivery-count", None)
    properties.headers.pop("x-acquired-count", None)
    assert (properties.headers, properties.expiration, properties.delivery_mode) == (
        {"tenant": "acme"}, "60000", 2,
    )  # fmt: skip
    assert bodies(channel, "from") == []


def test_a_limit_and_conditions_apply(client: HttpClient, channel: Channel) -> None:
    publish(channel, "from", NUMBERS)
    assert done(client, "from", "move", destination="to", match=["body~7"], limit=3)["moved"] == 3
    assert bodies(channel, "to") == ["7", "17", "27"]
    assert bodies(channel, "from") == [number for number in NUMBERS if number not in ("7", "17", "27")]


def test_consumers_of_the_source_continue_and_every_message_is_received_once(
    client: HttpClient, node: BrokerProcess, channel: Channel
) -> None:
    publish(channel, "from", NUMBERS)
    job = start(client, "from", "move", destination="to", rate=400)
    with channel_of(node) as reader:
        consumed = [body for _, _, body in take(reader, "from")]
        job = ended(client, job)
        consumed += bodies(reader, "from")
        moved = bodies(reader, "to")
    assert consumed
    assert moved
    assert moved == sorted(moved, key=int)
    assert sorted(consumed + moved, key=int) == NUMBERS


def test_a_priority_queue_is_moved_from_the_highest_priority_down(
    client: HttpClient, channel: Channel
) -> None:
    channel.queue_declare("ranked", durable=True, arguments={"x-queue-type": "classic", "x-max-priority": 3})
    for priority in (0, 3, 1, 3, 2):
        publish(channel, "ranked", [str(priority)], priority=priority)
    assert done(client, "ranked", "move", destination="to")["moved"] == 5
    assert bodies(channel, "to") == ["3", "3", "2", "1", "0"]
    publish(channel, "to", ["0", "3"], priority=3)
    assert done(client, "to", "move", destination="ranked")["moved"] == 2
    channel.queue_delete("ranked")


def test_messages_on_disk_only_are_moved(client: HttpClient, channel: Channel) -> None:
    large = "x" * 100_000
    publish(channel, "from", [f"{number},{large}" for number in range(400)])
    assert client.get("/queues/%2F/from?disable_stats=true")["name"] == "from"
    assert done(client, "from", "move", destination="to")["moved"] == 400
    numbers = [int(body.partition(",")[0]) for body in bodies(channel, "to")]
    assert numbers == list(range(400))


def test_messages_are_moved_to_another_vhost(
    client: HttpClient, node: BrokerProcess, channel: Channel
) -> None:
    assert client.status("PUT /vhosts/other") == 201
    assert client.status("PUT /permissions/other/guest", {"configure": "", "write": ".*", "read": ".*"}) in (
        201,
        204,
    )
    assert client.status("PUT /queues/other/to", {"durable": True}) == 401
    client.status("PUT /permissions/other/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    assert client.status("PUT /queues/other/to", {"durable": True}) == 201
    publish(channel, "from", NUMBERS)
    job = done(client, "from", "move", destination="to", destination_vhost="other")
    assert (job["moved"], job["state"]) == (len(NUMBERS), "done")
    with channel_of(node, virtual_host="other") as there:
        assert bodies(there, "to") == NUMBERS
    assert (
        client.status(f"POST {path_of('from', 'move')}", {"destination": "to", "destination_vhost": "no"})
        == 404
    )
    publish(channel, "from", NUMBERS)
    job = start(client, "from", "move", destination="to", destination_vhost="other", rate=20)
    assert client.status("DELETE /vhosts/other") == 204
    job = ended(client, job)
    assert (job["state"], job["reason"]) == ("failed", "vhost 'other' is down")
    assert bodies(channel, "from") == NUMBERS[job["moved"] :]


@pytest.mark.parametrize("deleted", ["from", "to"])
def test_a_job_ends_when_a_queue_is_deleted(client: HttpClient, channel: Channel, deleted: str) -> None:
    publish(channel, "from", NUMBERS)
    # Slow enough that it is running when the queue has been deleted, however busy the machine is.
    job = start(client, "from", "move", destination="to", rate=2)
    channel.queue_delete(deleted)
    if deleted == "to":
        # Its messages have no destination any more, and stay.
        client.status(f"DELETE /warren/jobs/{job['id']}")
    job = ended(client, job)
    assert job["state"] == ("failed" if deleted == "from" else "stopped")
    if deleted == "from":
        assert job["reason"] == "no queue 'from' in vhost '/'"
    else:
        assert len(bodies(channel, "from")) == len(NUMBERS) - job["moved"]
        assert {each["reason"] for each in job["not_moved_reasons"]} <= {"no queue 'to' in vhost '/'"}


def test_a_job_has_the_permissions_of_its_user_and_ends_when_they_are_revoked(
    client: HttpClient, node: BrokerProcess, channel: Channel
) -> None:
    assert client.status("PUT /users/mover", {"password": "p", "tags": "management"}) == 201
    mine = HttpClient(node, "mover:p")
    order = {"destination": "to"}
    assert mine.status(f"POST {path_of('from', 'move')}", order) == 401

    def may(write: str, read: str) -> None:
        body = {"configure": "", "write": write, "read": read}
        assert client.status("PUT /permissions/%2F/mover", body) in (201, 204)

    may(write="", read=".*")
    assert mine.status(f"POST {path_of('from', 'move')}", order) == 401
    may(write=".*", read="to")
    assert mine.status(f"POST {path_of('from', 'move')}", order) == 401
    assert mine.status(f"GET {path_of('from', 'dead-letters')}") == 401
    may(write="amq.default", read="from")
    publish(channel, "from", NUMBERS)
    job = start(mine, "from", "move", destination="to", rate=50)
    assert [each["id"] for each in mine.get("/warren/jobs") if each["state"] == "running"] == [job["id"]]
    may(write="amq.default", read="")
    job = ended(client, job)
    assert job["state"] == "failed"
    assert "refused for user 'mover'" in job["reason"]
    assert len(bodies(channel, "to")) == job["moved"]
    assert client.status("PUT /users/other", {"password": "p", "tags": "management"}) == 201
    others = HttpClient(node, "other:p")
    assert others.get("/warren/jobs") == []
    assert others.status(f"GET /warren/jobs/{job['id']}") == 404
    client.status("PUT /permissions/%2F/other", {"configure": "", "write": "", "read": ""})
    assert others.status(f"GET /warren/jobs/{job['id']}") == 200
    assert others.status(f"DELETE /warren/jobs/{job['id']}") == 401
    for name in ("mover", "other"):
        assert client.status(f"DELETE /users/{name}") == 204
    mine.close()
    others.close()


def test_a_move_to_the_same_queue_and_an_undo_of_a_move_are_refused(
    client: HttpClient, channel: Channel
) -> None:
    assert client.refusal(f"POST {path_of('from', 'move')}", {"destination": "from"}) == (
        400,
        "the target is the queue that the messages are in: choose another",
    )
    job = done(client, "from", "move", destination="to")
    assert client.refusal(f"POST /warren/jobs/{job['id']}/undo") == (
        400,
        "only a redrive can be undone: to undo a move, move the messages back",
    )


def test_a_preview_of_a_move_reports_its_result(client: HttpClient, channel: Channel) -> None:
    publish(channel, "from", NUMBERS[:3])
    answer = client.ask(f"POST {path_of('from', 'move')}", {"destination": "to", "dry_run": True, "limit": 2})
    assert (answer.status, answer.value["would_move"], answer.value["next"]) == (200, 2, None)
    assert answer.value["destinations"][0]["queues"] == ["to"]
    assert bodies(channel, "from") == NUMBERS[:3]


def test_a_job_waits_while_publishers_are_blocked(tmp_path: Path) -> None:
    config = tmp_path / "warren.conf"
    config.write_text("disk_free_limit.absolute = 1000TB\n")
    with broker("--data-dir", str(tmp_path / "data"), config=config) as node:
        client = HttpClient(node)
        for name in QUEUES:
            assert client.status(f"PUT /queues/%2F/{name}", {"durable": True}) == 201
        job = start(client, "from", "move", destination="to")
        deadline = time.monotonic() + patient(10)
        while (job := client.get(f"/warren/jobs/{job['id']}"))["state"] != "waiting":
            assert time.monotonic() < deadline
        assert job["reason"] == "low on disk"
        assert client.status(f"DELETE /warren/jobs/{job['id']}") == 204
        assert ended(client, job)["state"] == "stopped"
        client.close()


@pytest.mark.parametrize("queue_type", QUEUE_TYPES)
def test_a_stopping_node_leaves_every_message_in_one_queue(tmp_path: Path, queue_type: str) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        client = HttpClient(node)
        with channel_of(node) as channel:
            for name in QUEUES:
                channel.queue_declare(name, durable=True, arguments={"x-queue-type": queue_type})
            publish(channel, "from", NUMBERS)
        job = start(client, "from", "move", destination="to", rate=200)
        while not client.get(f"/warren/jobs/{job['id']}")["moved"]:
            pass
        assert node.stop() == 0
    with broker("--data-dir", str(tmp_path)) as node, channel_of(node) as channel:
        moved, left = bodies(channel, "to"), bodies(channel, "from")
    assert moved
    assert left
    assert moved + left == NUMBERS


@pytest.mark.parametrize("what", ["move", "redrive"])
@pytest.mark.parametrize("queue_type", QUEUE_TYPES)
def test_after_a_kill_every_message_is_in_a_queue(tmp_path: Path, what: str, queue_type: str) -> None:
    numbers = [str(number) for number in range(3_000)]
    order = {"destination": "to"} if what == "move" else {"queue": "to"}
    with broker("--data-dir", str(tmp_path)) as node:
        client = HttpClient(node)
        with channel_of(node) as channel:
            for name in QUEUES:
                channel.queue_declare(name, durable=True, arguments={"x-queue-type": queue_type})
            publish(channel, "from", numbers)
        # The rate leaves more than two seconds for the kill, also on a machine that is slow to answer.
        job = start(client, "from", what, rate=1_000, **order)
        while client.get(f"/warren/jobs/{job['id']}")["moved"] < 500:
            pass
        os.kill(node.process.pid, signal.SIGKILL)
        node.process.wait()
    with broker("--data-dir", str(tmp_path)) as node, channel_of(node) as channel:
        left, moved = bodies(channel, "from"), bodies(channel, "to")
    assert len(moved) >= 500
    assert left, "the job ended before the kill"
    assert {*left, *moved} == {*numbers}
    # In order; messages in both queues were in flight.
    assert left == sorted(set(left), key=int)
    assert moved == sorted(set(moved), key=int)
    assert len(left) + len(moved) - len(numbers) <= 1_024
