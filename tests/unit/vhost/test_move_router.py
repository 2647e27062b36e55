"""The destination of moved messages: permissions, target queues, and the message that is published."""

import pytest
from tests.unit.queues.samples import sent, trusted
from tests.unit.vhost.places import Place, bodies, may

from warren.errors import AccessRefused, NotFound
from warren.model.message import Message, encode_address
from warren.queues.deaths import Death, make_dead_letter
from warren.queues.redrive_headers import redrive_number
from warren.vhost.message_edit import NO_EDIT, MessageEdit
from warren.vhost.move_router import (
    FULL,
    NO_ORIGIN,
    TOO_LONG,
    UNROUTABLE,
    CannotMove,
    QueueMoveRouter,
    RedriveRouter,
    UndoRouter,
)
from warren.vhost.undo_log import UndoLog


def dead(key: str = "orders", queue: str = "orders", **properties: object) -> Message:
    """A rejected message."""
    death = Death(queue=queue, reason="rejected", exchange="dlx", routing_key=None, now=1)
    risen = make_dead_letter(sent("x", key=key, **properties), death)
    assert risen is not None
    return risen.message


def redriving(place: Place, **more: object) -> RedriveRouter:
    wanted = {"vhost": place.vhost, "id": "id", "source": "dead", "admit": may, "edit": NO_EDIT, **more}
    return RedriveRouter(**wanted)


def refused(address: bytes) -> None:
    raise AccessRefused(f"no {address!r}")


def test_a_move_passes_the_message_unchanged_to_a_queue() -> None:
    place = Place(now=7)
    queue = place.queue("to")
    message = sent("x", key="k", delivery_mode=2, headers={"a": 1}, expiration="5", priority=4)
    route = QueueMoveRouter(place.vhost, "to", may).route(message, 1)
    assert (route.destinations, route.is_routed) == ((queue,), False)
    assert route.message is not message
    assert (route.message.address, route.message.property_list) == (message.address, message.property_list)
    assert (route.message.flags, route.message.priority, route.message.published_at) == (message.flags, 4, 7)


def test_a_move_requires_a_queue_with_space_and_the_permission_to_publish() -> None:
    place = Place()
    place.full("full")
    with pytest.raises(NotFound):
        QueueMoveRouter(place.vhost, "nowhere", may).route(sent("x"), 1)
    with pytest.raises(CannotMove, match=FULL.format("full")):
        QueueMoveRouter(place.vhost, "full", may).route(sent("x"), 1)
    with pytest.raises(AccessRefused, match="full"):
        QueueMoveRouter(place.vhost, "full", refused).route(sent("x"), 1)


def test_a_dead_letter_is_redriven_to_the_queue_of_its_first_death_or_to_another() -> None:
    place = Place()
    orders, other = place.queue("orders"), place.queue("other")
    route = redriving(place).route(dead("key"), 3)
    assert (route.destinations, route.message.address) == ((orders,), encode_address("", "key"))
    assert redrive_number(route.message, "id") == 3
    assert redriving(place, queue="other").route(sent("alive"), 1).destinations == (other,)
    with pytest.raises(CannotMove, match=NO_ORIGIN):
        redriving(place).route(sent("alive"), 1)
    with pytest.raises(AccessRefused):
        redriving(place, admit=refused).route(dead(), 1)


def test_an_exchange_routes_a_redriven_message_by_its_own_address_or_by_another() -> None:
    place = Place()
    orders = place.queue("orders")
    place.bind("amq.topic", orders, "a.*")
    route = redriving(place, is_routed=True).route(dead(), 1)
    assert (route.destinations, route.is_routed) == ((orders,), True)
    move_router = redriving(place, is_routed=True, exchange="amq.topic", routing_key="a.b")
    assert move_router.route(sent("alive"), 1).message.address == encode_address("amq.topic", "a.b")
    with pytest.raises(CannotMove, match=UNROUTABLE):
        redriving(place, is_routed=True, exchange="amq.topic").route(dead(), 1)
    with pytest.raises(CannotMove, match=NO_ORIGIN):
        redriving(place, is_routed=True, exchange="amq.topic").route(sent("alive"), 1)
    with pytest.raises(NotFound):
        redriving(place, is_routed=True, exchange="nowhere").route(dead(), 1)


def test_a_message_stays_if_one_of_its_queues_is_full() -> None:
    place = Place()
    place.bind("amq.fanout", place.queue("orders"))
    place.bind("amq.fanout", place.full("full"))
    with pytest.raises(CannotMove, match=FULL.format("full")):
        redriving(place, is_routed=True, exchange="amq.fanout").route(dead(), 1)


def test_names_in_death_headers_that_are_too_long_are_refused() -> None:
    place = Place()
    with pytest.raises(CannotMove, match=TOO_LONG):
        redriving(place).route(dead(queue="q" * 300), 1)
    facts = {"queue": "q", "reason": "r", "exchange": "e" * 300}
    headers = {f"x-first-death-{name}": value for name, value in facts.items()}
    headers["x-death"] = [{**facts, "routing-keys": ["k"]}]
    with pytest.raises(CannotMove, match=TOO_LONG):
        redriving(place).route(trusted(sent("x", headers=headers)), 1)


def test_a_client_cannot_choose_the_target_of_a_redrive() -> None:
    place = Place()
    place.queue("orders")
    reported = sent("x", headers=dead().headers())
    with pytest.raises(CannotMove, match=NO_ORIGIN):
        redriving(place).route(reported, 1)
    with pytest.raises(CannotMove, match=NO_ORIGIN):
        redriving(place, is_routed=True).route(reported, 1)
    assert redriving(place, queue="orders").route(reported, 1).message.headers()["x-death"]


def test_a_message_is_edited_when_it_is_moved() -> None:
    place = Place()
    place.queue("orders")
    edit = MessageEdit(headers={"new": 1}, headers_removed=frozenset({"old"}), body=b"body")
    route = redriving(place, edit=edit).route(dead(headers={"old": 1, "kept": 2}), 1)
    headers = route.message.headers()
    assert (route.message.body, headers["new"], headers["kept"], "old" in headers) == (b"body", 1, 2, False)


def test_an_undone_message_returns_once() -> None:
    place = Place()
    place.queue("orders")
    first_death = place.queue("dead")
    undo_log = UndoLog()
    move_router = UndoRouter(vhost=place.vhost, redrive="id", queue="dead", admit=may, undo_log=undo_log)
    redriven = redriving(place).route(dead(), 3).message
    route = move_router.route(redriven, 1)
    assert (route.destinations, route.message.exchange) == ((first_death,), "dlx")
    assert move_router.route(redriven, 2).destinations == ()
    assert undo_log.undone_count == 1
    place.vhost.queues.pop("dead")
    with pytest.raises(NotFound):
        move_router.route(redriving(place).route(dead(), 4).message, 3)
    assert (undo_log.undone_count, bodies(first_death)) == (1, "")
