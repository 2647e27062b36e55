"""Dead letters over HTTP: grouped by cause, redriven, and undone."""

import time
from collections.abc import Iterator

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess
from tests.integration.dead_letters import (
    Channel,
    bodies,
    channel_of,
    done,
    ended,
    path_of,
    publish,
    reject,
    start,
    take,
)
from tests.patience import patient

QUEUES = ("orders", "short", "small", "tired", "dead", "elsewhere", "full")


@pytest.fixture(params=["classic", "quorum"])
def channel(node: BrokerProcess, request: pytest.FixtureRequest) -> Iterator[Channel]:
    with channel_of(node) as channel:
        # What is published is in its queue then.
        channel.confirm_delivery()
        queue_type = {"x-queue-type": request.param}
        to_dead = {"x-dead-letter-exchange": "graveyard", **queue_type}
        channel.exchange_declare("graveyard", "fanout", durable=True)
        channel.exchange_declare("shop", "topic", durable=True)
        channel.queue_declare("dead", durable=True, arguments=queue_type)
        channel.queue_bind("dead", "graveyard")
        channel.queue_declare("orders", durable=True, arguments=to_dead)
        channel.queue_bind("orders", "shop", "order.#")
        channel.queue_declare("short", durable=True, arguments={**to_dead, "x-message-ttl": 1})
        channel.queue_declare("small", durable=True, arguments={**to_dead, "x-max-length": 1})
        channel.queue_declare("tired", durable=True, arguments={**to_dead, "x-delivery-limit": 1})
        channel.queue_declare("elsewhere", durable=True, arguments=queue_type)
        full = {"x-max-length": 1, "x-overflow": "reject-publish", **queue_type}
        channel.queue_declare("full", durable=True, arguments=full)
        yield channel
        for name in QUEUES:
            channel.queue_delete(name)
        channel.exchange_delete("graveyard")
        channel.exchange_delete("shop")


def wait_for(client: HttpClient, queue: str, count: int) -> None:
    """Wait until `queue` contains this number of dead letters."""
    deadline = time.monotonic() + patient(10)
    while client.get(path_of(queue, "dead-letters"))["dead_letters"] != count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_dead_letters_are_grouped_by_their_first_queue_and_reason(
    client: HttpClient, channel: Channel
) -> None:
    publish(channel, "order.new", ["a", "b"], "shop")
    reject(channel, "orders")
    publish(channel, "short", ["c"])
    publish(channel, "small", ["d", "e", "f"])
    publish(channel, "tired", ["g"])
    for _ in range(2):
        method, _, _ = channel.basic_get("tired")
        channel.basic_nack(method.delivery_tag, requeue=True)
    publish(channel, "dead", ["alive"])
    wait_for(client, "dead", 6)
    found = client.get(path_of("dead", "dead-letters"))
    assert (found["dead_letters"], found["other_messages"], found["next"], found["other_dead_letters"]) == (
        6,
        1,
        None,
        0,
    )
    groups = {
        (group["queue"], group["reason"]): (group["exchange"], group["count"], group["routing_keys"])
        for group in found["groups"]
    }
    assert groups == {
        ("orders", "rejected"): ("shop", 2, ["order.new"]),
        ("short", "expired"): ("", 1, ["short"]),
        ("small", "maxlen"): ("", 2, ["small"]),
        ("tired", "delivery_limit"): ("", 1, ["tired"]),
    }
    listed = client.get("/warren/dead-letters?page=1&page_size=10")
    assert [queue["name"] for queue in listed["items"]] == ["dead"]
    assert listed["items"][0]["groups"] == found["groups"]
    assert listed["items"][0]["messages"] == 7
    # The queue is unchanged.
    assert not any(method.redelivered for method, _, _ in take(channel, "dead"))


def test_a_queue_that_is_not_reached_by_the_routing_key_is_not_listed(
    client: HttpClient, channel: Channel
) -> None:
    channel.exchange_declare("keyed", "direct")
    channel.queue_bind("elsewhere", "keyed", "other")
    channel.queue_bind("dead", "keyed", "key")
    arguments = {"x-dead-letter-exchange": "keyed", "x-dead-letter-routing-key": "key"}
    channel.queue_declare("mine", arguments=arguments)
    publish(channel, "elsewhere", ["x"])
    publish(channel, "dead", ["x"])
    assert [queue["name"] for queue in client.get("/warren/dead-letters/%2F")] == ["dead"]
    channel.queue_delete("mine")
    channel.exchange_delete("keyed")


def test_dead_letters_are_redriven_to_the_queue_of_their_death_without_death_headers(
    client: HttpClient, channel: Channel
) -> None:
    publish(channel, "order.new", ["a", "b"], "shop", headers={"tenant": "acme"})
    reject(channel, "orders")
    job = done(client, "dead", "redrive")
    assert (job["state"], job["moved"], job["not_moved"], job["kind"]) == ("done", 2, 0, "redrive")
    found = take(channel, "orders")
    assert [(method.exchange, method.routing_key, body) for method, _, body in found] == [
        ("shop", "order.new", "a"),
        ("shop", "order.new", "b"),
    ]
    headers = found[0][1].headers
    assert headers["tenant"] == "acme"
    assert not {"x-death", "x-first-death-queue", "x-last-death-queue"} & headers.keys()
    assert [(death["queue"], death["reason"]) for death in headers["x-past-deaths"]] == [
        ("orders", "rejected")
    ]
    assert (headers["x-redrive"]["id"], headers["x-redrive"]["queue"]) == (job["id"], "dead")
    assert not found[0][0].redelivered
    assert bodies(channel, "dead") == []


def test_a_redriven_message_that_dies_again_is_not_a_cycle_and_counts_from_one(
    client: HttpClient, channel: Channel
) -> None:
    def to(queue: str) -> dict[str, object]:
        return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}

    channel.queue_declare("grave", durable=True)
    channel.queue_declare("waiting", durable=True, arguments={**to("grave"), "x-message-ttl": 1})
    channel.queue_declare("main", durable=True, arguments={**to("waiting"), "x-max-length": 1})
    publish(channel, "main", ["first", "second"])
    wait_for(client, "grave", 1)
    # It returns, is dropped for another, and expires again: without a rejection this would be a cycle.
    assert done(client, "grave", "redrive")["moved"] == 1
    publish(channel, "main", ["third"])
    wait_for(client, "grave", 2)
    (_, _, second), (_, properties, first) = take(channel, "grave")
    assert (first, second) == ("first", "second")
    deaths = [(death["queue"], death["reason"], death["count"]) for death in properties.headers["x-death"]]
    assert deaths == [("waiting", "expired", 1), ("main", "maxlen", 1)]
    past = [(death["queue"], death["reason"]) for death in properties.headers["x-past-deaths"]]
    assert past == [("waiting", "expired"), ("main", "maxlen")]
    assert properties.headers["x-redrive"]["count"] == 1
    for name in ("main", "waiting", "grave"):
        channel.queue_delete(name)


def test_an_exchange_routes_dead_letters_by_their_own_key_or_by_another(
    client: HttpClient, channel: Channel
) -> None:
    publish(channel, "order.new", ["a"], "shop")
    reject(channel, "orders")
    channel.queue_unbind("orders", "shop", "order.#")
    job = done(client, "dead", "redrive", to="exchange")
    assert (job["moved"], job["not_moved_reasons"][0]["reason"]) == (
        0,
        "unroutable: no queue is bound with its routing key",
    )
    channel.queue_bind("elsewhere", "shop", "other")
    assert done(client, "dead", "redrive", to="exchange", routing_key="other")["moved"] == 1
    [(method, _, body)] = take(channel, "elsewhere")
    assert (method.exchange, method.routing_key, body) == ("shop", "other", "a")
    publish(channel, "dead", ["b"])
    default = {"to": "exchange", "exchange": "amq.default", "routing_key": "elsewhere"}
    assert done(client, "dead", "redrive", **default)["moved"] == 1
    assert bodies(channel, "elsewhere") == ["b"]


def test_messages_that_cannot_be_redriven_stay_with_a_reason(client: HttpClient, channel: Channel) -> None:
    publish(channel, "order.new", ["a", "b"], "shop")
    reject(channel, "orders")
    publish(channel, "dead", ["alive"])
    job = done(client, "dead", "redrive", queue="full")
    assert (job["moved"], job["not_moved"]) == (1, 2)
    assert job["not_moved_reasons"][0]["reason"] == "queue 'full' is full and refuses it"
    channel.queue_delete("orders")
    job = done(client, "dead", "redrive")
    assert {(each["reason"], each["count"]) for each in job["not_moved_reasons"]} == {
        ("no queue 'orders' in vhost '/'", 1),
        ("not a dead letter: its origin is unknown", 1),
    }
    found = take(channel, "dead")
    assert [body for _, _, body in found] == ["b", "alive"]
    assert not any(method.redelivered for method, _, _ in found)


def test_a_group_or_conditions_or_a_number_of_messages_can_be_selected(
    client: HttpClient, channel: Channel
) -> None:
    publish(channel, "order.new", ["a1", "a2", "b1", "b2"], "shop")
    reject(channel, "orders")
    publish(channel, "small", ["s1", "s2"])
    wait_for(client, "dead", 5)
    assert done(client, "dead", "redrive", group={"queue": "small", "exchange": "shop"})["moved"] == 0
    group = {"queue": "small", "reason": "maxlen", "exchange": ""}
    assert done(client, "dead", "redrive", queue="elsewhere", group=group)["moved"] == 1
    assert bodies(channel, "elsewhere") == ["s1"]
    assert done(client, "dead", "redrive", match=["body~b"], limit=1)["moved"] == 1
    assert bodies(channel, "orders") == ["b1"]
    places = [message["position"] for message in client.get(path_of("dead", "messages"))["messages"]]
    assert done(client, "dead", "redrive", places=[places[1], places[1], 1 << 40])["moved"] == 1
    assert bodies(channel, "orders") == ["a2"]
    assert bodies(channel, "dead") == ["a1", "b2"]


def test_a_preview_changes_nothing(client: HttpClient, channel: Channel) -> None:
    publish(channel, "order.new", ["a", "b"], "shop")
    reject(channel, "orders")
    publish(channel, "dead", ["alive"])
    answer = client.ask(f"POST {path_of('dead', 'redrive')}", {"to": "exchange", "dry_run": True})
    assert answer.status == 200
    preview = answer.value
    assert preview["destinations"] == [
        {"exchange": "shop", "routing_key": "order.new", "queues": ["orders"], "count": 2}
    ]
    assert (preview["would_move"], preview["not_moved"], preview["next"], preview["examined"]) == (
        2,
        1,
        None,
        3,
    )
    assert [message["queues"] for message in preview["messages"]] == [["orders"], ["orders"], []]
    assert bodies(channel, "orders") == []
    assert bodies(channel, "dead") == ["a", "b", "alive"]


def test_messages_can_be_edited_when_they_are_redriven(client: HttpClient, channel: Channel) -> None:
    publish(channel, "order.new", ["a", "b"], "shop", headers={"bad": 1, "kept": True}, type="t", app_id="x")
    reject(channel, "orders")
    place = client.get(path_of("dead", "messages"))["messages"][0]["position"]
    edit = {
        "headers": {"fixed": "yes"},
        "remove_headers": ["bad"],
        "properties": {"priority": 3, "content_type": "text/plain"},
        "remove_properties": ["type"],
        "payload": "mended",
    }
    assert done(client, "dead", "redrive", places=[place], edit=edit)["moved"] == 1
    [(_, properties, body)] = take(channel, "orders")
    assert (body, properties.priority, properties.content_type) == ("mended", 3, "text/plain")
    assert (properties.type, properties.app_id, properties.delivery_mode) == (None, "x", 2)
    assert (properties.headers["fixed"], properties.headers["kept"]) == ("yes", True)
    assert "bad" not in properties.headers
    line = f"POST {path_of('dead', 'redrive')}"
    assert client.refusal(line, {"edit": {"payload": "x"}}) == (
        400,
        "payload requires `positions` with exactly one position",
    )
    assert client.refusal(line, {"edit": {"properties": {"expiration": "soon"}}})[0] == 400
    assert client.refusal(line, {"edit": {"properties": {"user_id": "other"}}})[0] == 400


def test_an_undo_returns_messages_that_no_consumer_has_received(client: HttpClient, channel: Channel) -> None:
    publish(channel, "order.new", ["a", "b", "c", "d"], "shop")
    reject(channel, "orders")
    publish(channel, "order.new", ["young"], "shop")
    before = client.get(path_of("dead", "messages"))["messages"]
    redrive = done(client, "dead", "redrive")
    assert redrive["undoable"]
    assert channel.basic_get("orders")[2] == b"young"
    had, _, body = channel.basic_get("orders")
    assert body == b"a"
    channel.basic_nack(had.delivery_tag, requeue=True)
    publish(channel, "order.new", ["younger"], "shop")
    answer = client.ask(f"POST /warren/jobs/{redrive['id']}/undo")
    assert answer.status == 201
    undo = ended(client, answer.value)
    assert (undo["state"], undo["moved"], undo["not_undone"], undo["undo_of"]) == (
        "done",
        3,
        1,
        redrive["id"],
    )
    assert bodies(channel, "orders") == ["a", "younger"]
    after = client.get(path_of("dead", "messages"))["messages"]
    for message in (*before, *after):
        del message["position"], message["place"], message["published_at"], message["age_ms"]
    assert after == before[1:]
    assert client.status(f"POST /warren/jobs/{redrive['id']}/undo") == 400
    assert client.get(f"/warren/jobs/{redrive['id']}")["undone_by"] == undo["id"]


def test_a_message_routed_to_two_queues_is_undone_once(client: HttpClient, channel: Channel) -> None:
    publish(channel, "order.new", ["a", "b"], "shop")
    reject(channel, "orders")
    channel.queue_bind("elsewhere", "shop", "order.#")
    redrive = done(client, "dead", "redrive", to="exchange")
    assert (channel.basic_get("elsewhere", auto_ack=True)[2], redrive["moved"]) == (b"a", 2)
    undo = ended(client, client.ask(f"POST /warren/jobs/{redrive['id']}/undo").value)
    assert (undo["state"], undo["not_undone"]) == ("done", 0)
    assert bodies(channel, "dead") == ["a", "b"]
    assert bodies(channel, "orders") == bodies(channel, "elsewhere") == []


def test_invalid_job_requests_are_refused(client: HttpClient, channel: Channel) -> None:
    line = f"POST {path_of('dead', 'redrive')}"
    for order in (
        {"to": "moon"},
        {"exchange": "shop"},
        {"rate": 0},
        {"rate": "fast"},
        {"limit": 0},
        {"limit": "x"},
        {"positions": []},
        {"positions": ["x"]},
        {"positions": list(range(1_001))},
        {"match": "body=1"},
        {"match": ["nothing"]},
        {"group": {"queue": 3}},
        {"group": "x"},
        {"edit": {"headers": []}, "queue": 3},
        {"edit": {"remove_headers": "x"}},
        {"to": "exchange", "routing_key": "k" * 256},
    ):
        assert client.status(line, order) == 400, order
    assert client.status(line, {"queue": "nowhere"}) == 404
    assert client.status(f"POST {path_of('nowhere', 'redrive')}", {}) == 404
    assert client.status("POST /warren/jobs/nothing/undo") == 404
    assert client.status(f"GET {path_of('dead', 'dead-letters')}?from=x") == 400


def test_messages_that_die_again_at_once_are_not_redriven_without_end(
    client: HttpClient, channel: Channel
) -> None:
    publish(channel, "small", [str(number) for number in range(50)])
    wait_for(client, "dead", 49)
    # Each that returns displaces another one.
    assert done(client, "dead", "redrive")["moved"] == 49
    wait_for(client, "dead", 49)
    assert len(bodies(channel, "dead")) == 49
    assert len(bodies(channel, "small")) == 1


def test_a_rate_limit_is_kept(client: HttpClient, channel: Channel) -> None:
    publish(channel, "dead", [str(number) for number in range(30)])
    began = time.monotonic()
    job = done(client, "dead", "redrive", queue="elsewhere", rate=20)
    assert job["moved"] == 30
    assert 1.2 < time.monotonic() - began < 6
    assert bodies(channel, "elsewhere") == [str(number) for number in range(30)]


def test_stopping_a_redrive_leaves_the_remaining_messages(client: HttpClient, channel: Channel) -> None:
    publish(channel, "dead", [str(number) for number in range(30)])
    job = start(client, "dead", "redrive", queue="elsewhere", rate=1)
    assert client.status(f"POST /warren/jobs/{job['id']}/undo") == 400
    assert client.status(f"DELETE /warren/jobs/{job['id']}") == 204
    job = ended(client, job)
    assert (job["state"], job["reason"]) == ("stopped", "stopped by user 'guest'")
    moved, left = bodies(channel, "elsewhere"), bodies(channel, "dead")
    assert (len(moved), moved + left) == (job["moved"], [str(number) for number in range(30)])
    assert client.status(f"DELETE /warren/jobs/{job['id']}") == 204
    assert client.status(f"GET /warren/jobs/{job['id']}") == 404
