"""Where messages go that are moved: by whose leave, to which queue, and as what."""

import pytest
from tests.unit.queues.samples import believed, sent
from tests.unit.vhost.places import Place, bodies, may

from warren.errors import AccessRefused, NotFound
from warren.model.message import Message, encode_address
from warren.queues.deaths import Death, resurrect
from warren.queues.redriven import number_in
from warren.vhost.edit import NO_EDIT, Edit
from warren.vhost.trail import Trail
from warren.vhost.ways import FULL, NO_ORIGIN, TOO_LONG, UNROUTABLE, Redriving, Stays, TakingBack, ToQueue


def dead(key: str = "orders", queue: str = "orders", **properties: object) -> Message:
    """One that was rejected."""
    death = Death(queue=queue, reason="rejected", exchange="dlx", routing_key=None, now=1)
    risen = resurrect(sent("x", key=key, **properties), death)
    assert risen is not None
    return risen.message


def redriving(place: Place, **more: object) -> Redriving:
    wanted = {"vhost": place.vhost, "id": "id", "source": "dead", "admit": may, "edit": NO_EDIT, **more}
    return Redriving(**wanted)


def refused(address: bytes) -> None:
    raise AccessRefused(f"no {address!r}")


def test_a_move_takes_a_message_as_it_is_to_a_queue() -> None:
    place = Place(now=7)
    queue = place.queue("to")
    message = sent("x", key="k", delivery_mode=2, headers={"a": 1}, expiration="5", priority=4)
    way = ToQueue(place.vhost, "to", may).way(message, 1)
    assert (way.destinations, way.is_routed) == ((queue,), False)
    assert way.message is not message
    assert (way.message.address, way.message.property_list) == (message.address, message.property_list)
    assert (way.message.flags, way.message.priority, way.message.published_at) == (message.flags, 4, 7)


def test_there_must_be_a_queue_with_room_and_leave_to_publish() -> None:
    place = Place()
    place.full("full")
    with pytest.raises(NotFound):
        ToQueue(place.vhost, "nowhere", may).way(sent("x"), 1)
    with pytest.raises(Stays, match=FULL.format("full")):
        ToQueue(place.vhost, "full", may).way(sent("x"), 1)
    with pytest.raises(AccessRefused, match="full"):
        ToQueue(place.vhost, "full", refused).way(sent("x"), 1)


def test_a_dead_letter_goes_to_the_queue_that_it_died_in_or_to_another() -> None:
    place = Place()
    orders, other = place.queue("orders"), place.queue("other")
    way = redriving(place).way(dead("key"), 3)
    assert (way.destinations, way.message.address) == ((orders,), encode_address("", "key"))
    assert number_in(way.message, "id") == 3
    assert redriving(place, queue="other").way(sent("alive"), 1).destinations == (other,)
    with pytest.raises(Stays, match=NO_ORIGIN):
        redriving(place).way(sent("alive"), 1)
    with pytest.raises(AccessRefused):
        redriving(place, admit=refused).way(dead(), 1)


def test_an_exchange_routes_it_by_its_own_address_or_by_another() -> None:
    place = Place()
    orders = place.queue("orders")
    place.bind("amq.topic", orders, "a.*")
    way = redriving(place, is_routed=True).way(dead(), 1)
    assert (way.destinations, way.is_routed) == ((orders,), True)
    ways = redriving(place, is_routed=True, exchange="amq.topic", routing_key="a.b")
    assert ways.way(sent("alive"), 1).message.address == encode_address("amq.topic", "a.b")
    with pytest.raises(Stays, match=UNROUTABLE):
        redriving(place, is_routed=True, exchange="amq.topic").way(dead(), 1)
    with pytest.raises(Stays, match=NO_ORIGIN):
        redriving(place, is_routed=True, exchange="amq.topic").way(sent("alive"), 1)
    with pytest.raises(NotFound):
        redriving(place, is_routed=True, exchange="nowhere").way(dead(), 1)


def test_it_stays_if_one_of_its_queues_has_no_room() -> None:
    place = Place()
    place.bind("amq.fanout", place.queue("orders"))
    place.bind("amq.fanout", place.full("full"))
    with pytest.raises(Stays, match=FULL.format("full")):
        redriving(place, is_routed=True, exchange="amq.fanout").way(dead(), 1)


def test_names_that_clients_made_up_may_be_too_long() -> None:
    place = Place()
    with pytest.raises(Stays, match=TOO_LONG):
        redriving(place).way(dead(queue="q" * 300), 1)
    facts = {"queue": "q", "reason": "r", "exchange": "e" * 300}
    headers = {f"x-first-death-{name}": value for name, value in facts.items()}
    headers["x-death"] = [{**facts, "routing-keys": ["k"]}]
    with pytest.raises(Stays, match=TOO_LONG):
        redriving(place).way(believed(sent("x", headers=headers)), 1)


def test_a_client_cannot_say_where_a_redrive_sends_its_message() -> None:
    place = Place()
    place.queue("orders")
    told = sent("x", headers=dead().headers())
    with pytest.raises(Stays, match=NO_ORIGIN):
        redriving(place).way(told, 1)
    with pytest.raises(Stays, match=NO_ORIGIN):
        redriving(place, is_routed=True).way(told, 1)
    assert redriving(place, queue="orders").way(told, 1).message.headers()["x-death"]


def test_it_is_edited_on_its_way() -> None:
    place = Place()
    place.queue("orders")
    edit = Edit(headers={"new": 1}, headers_removed=frozenset({"old"}), body=b"body")
    way = redriving(place, edit=edit).way(dead(headers={"old": 1, "kept": 2}), 1)
    headers = way.message.headers()
    assert (way.message.body, headers["new"], headers["kept"], "old" in headers) == (b"body", 1, 2, False)


def test_what_is_taken_back_comes_back_once() -> None:
    place = Place()
    place.queue("orders")
    grave = place.queue("dead")
    trail = Trail()
    ways = TakingBack(vhost=place.vhost, redrive="id", queue="dead", admit=may, trail=trail)
    redriven = redriving(place).way(dead(), 3).message
    way = ways.way(redriven, 1)
    assert (way.destinations, way.message.exchange) == ((grave,), "dlx")
    assert ways.way(redriven, 2).destinations == ()
    assert trail.back_count == 1
    place.vhost.queues.pop("dead")
    with pytest.raises(NotFound):
        ways.way(redriving(place).way(dead(), 4).message, 3)
    assert (trail.back_count, bodies(grave)) == (1, "")
