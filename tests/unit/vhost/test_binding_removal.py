"""Queues and exchanges with many bindings are deleted over several turns."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.unit.session.client import Answer
from tests.unit.vhost.conftest import LiveVhost

from warren.errors import ResourceError
from warren.limits import REMOVED_PER_TURN
from warren.metadata.commands import Bind, DeclareExchange, DeclareQueue, MetadataCommand, Reply, Unbind
from warren.model.coroutine_driver import await_all, drive
from warren.wire.methods import ExchangeDelete, QueueDelete

MANY = 3 * REMOVED_PER_TURN + 1


def bound(live: LiveVhost, *, auto_delete: bool = False) -> None:
    """An exchange and a queue with MANY bindings between them."""
    live.apply(DeclareExchange(vhost="v", name="x", type="topic", auto_delete=auto_delete))
    live.apply(DeclareQueue(vhost="v", name="q"))
    for number in range(MANY):
        arguments = {"n": number}
        live.apply(
            Bind(
                vhost="v",
                source="x",
                is_to_queue=True,
                destination="q",
                routing_key=f"k.{number}",
                arguments=arguments,
            )
        )


def left_after_each_turn(live: LiveVhost, coroutine: Coroutine[Any, Any, object]) -> list[int]:
    async def whole() -> None:
        await coroutine

    vhost = live.metadata.vhost("v")
    assert vhost is not None
    drive(whole())
    left = [vhost.topology.binding_count]
    while live.turns:
        live.turns.pop(0)(0)
        left.append(vhost.topology.binding_count)
    return left


TURNS = [MANY - REMOVED_PER_TURN, MANY - 2 * REMOVED_PER_TURN, MANY - 3 * REMOVED_PER_TURN, 0]


def test_the_bindings_of_a_deleted_queue_are_removed_in_turns(live: LiveVhost) -> None:
    bound(live)
    deletion = live.queue_service.delete_queue(live.requester(), QueueDelete(queue="q"))
    assert left_after_each_turn(live, deletion) == TURNS
    assert not live.queues


def test_the_bindings_of_a_deleted_exchange_are_removed_in_turns(live: LiveVhost) -> None:
    bound(live)
    deletion = live.exchange_service.delete_exchange(live.requester(), ExchangeDelete(exchange="x"))
    assert left_after_each_turn(live, deletion) == TURNS
    assert "x" not in live.topology.router.exchanges
    assert list(live.queues) == ["q"]


def test_an_unused_auto_delete_exchange_is_deleted_with_its_last_binding(live: LiveVhost) -> None:
    bound(live, auto_delete=True)
    deletion = live.queue_service.delete_queue(live.requester(), QueueDelete(queue="q"))
    assert left_after_each_turn(live, deletion) == TURNS
    assert "x" not in live.topology.router.exchanges


@pytest.mark.parametrize("condition", ["if_unused", "if_empty"])
def test_conditions_of_a_deletion_are_checked_again_when_it_completes(
    live: LiveVhost, condition: str
) -> None:
    bound(live)
    deletion = live.queue_service.delete_queue(live.requester(), QueueDelete(queue="q", **{condition: True}))
    assert left_after_each_turn(live, deletion) == [0]


def test_with_a_full_disk_the_queue_stays_and_the_error_is_raised(
    live: LiveVhost, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound(live)
    apply: Callable[..., Reply] = live.local.apply

    def refuse(command: MetadataCommand, user: str = "") -> Reply:
        if isinstance(command, Unbind) and command.routing_key == f"k.{REMOVED_PER_TURN + 3}":
            raise ResourceError("the disk is full")
        return apply(command, user)

    monkeypatch.setattr(type(live.local), "apply", staticmethod(refuse))
    deletion = live.queue_service.delete_queue(live.requester(), QueueDelete(queue="q"))
    with pytest.raises(ResourceError, match="the disk is full"):
        left_after_each_turn(live, deletion)
    assert list(live.queues) == ["q"]


def test_all_are_started_together_and_the_first_error_is_raised_when_all_have_ended() -> None:
    answers = [Answer(), Answer()]
    done: list[object] = []

    async def fail(answer: Answer, text: str) -> None:
        await answer
        done.append(text)
        raise ResourceError(text)

    async def whole() -> None:
        with pytest.raises(ResourceError, match="second"):
            await await_all([fail(answers[0], "first"), fail(answers[1], "second"), *nothing])
        done.append("end")

    nothing: list[Answer] = []
    drive(whole())
    answers[1].arrive()
    assert done == ["second"]
    answers[0].arrive()
    assert done == ["second", "first", "end"]
