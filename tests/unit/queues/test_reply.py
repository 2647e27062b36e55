"""A direct reply is delivered to its requester at once, or dropped; its name says where the requester is."""

import pytest
from tests.unit.queues.samples import Reader, sent

from warren.limits_metadata import MEMBER_ID_MAX, MEMBER_NUMBER_MAX
from warren.metadata.incarnation import FIRST_INCARNATION, Incarnation
from warren.model.message import encode_address
from warren.queues.queue import ACCEPTED
from warren.queues.reply import (
    REPLY_ADDRESS_PREFIX,
    REPLY_BYTES_COUNT,
    ReplyQueue,
    new_reply_name,
    requester_of,
)

RANDOM = bytes(range(REPLY_BYTES_COUNT))
NAME = new_reply_name(FIRST_INCARNATION, RANDOM)


@pytest.mark.parametrize("incarnation", [FIRST_INCARNATION, Incarnation(MEMBER_ID_MAX, MEMBER_NUMBER_MAX)])
def test_a_name_says_in_which_run_of_which_node_its_requester_is(incarnation: Incarnation) -> None:
    name = new_reply_name(incarnation, RANDOM)
    assert requester_of(name) == incarnation
    assert encode_address("", name).startswith(REPLY_ADDRESS_PREFIX)


def test_a_name_has_two_parts_in_base64_behind_that_of_the_pseudo_queue() -> None:
    assert NAME == "amq.rabbitmq.reply-to.AAEAAAAAAAAAAQAB.AgMEBQYHCAkKCwwNDg8QEQ=="


@pytest.mark.parametrize(
    "name",
    [
        "",
        "amq.rabbitmq.reply-to",
        NAME[:-1],
        NAME + "=",
        "x" + NAME[1:],
        NAME.replace(".AAE", ".A!E"),
        NAME[:60] + "é",
    ],
)
def test_any_other_name_says_nothing(name: str) -> None:
    assert requester_of(name) is None


def test_a_secret_has_128_random_bits() -> None:
    other = new_reply_name(FIRST_INCARNATION, RANDOM[:-1] + b"\0")
    assert other != NAME
    assert other[:39] == NAME[:39]
    assert REPLY_BYTES_COUNT * 8 >= 128 + 16


def test_a_reply_is_delivered_and_replies_beyond_the_bound_are_dropped() -> None:
    reader = Reader(no_ack=True)
    queue = ReplyQueue("name", reader)
    assert queue.publish(sent("1"), None, 0) == ACCEPTED
    reader.is_open = False
    assert queue.publish(sent("2"), None, 0) == ACCEPTED
    reader.is_open = True
    queue.publish(sent("3"), None, 0)
    assert reader.got == [(b"1", False), (b"3", False)]
