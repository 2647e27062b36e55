"""Reply codes: each has one class, and the class defines what it closes."""

import pytest

from warren import errors
from warren.errors import (
    AmqpError,
    ChannelException,
    ConnectionException,
    HomeDown,
    MetadataTimeout,
    NotFound,
)

# 0-9-1 §1.2, with RabbitMQ's names; 403 is soft for a resource and hard for a login.
SOFT = {311, 312, 313, 403, 404, 405, 406}
HARD = {320, 402, 403, 501, 502, 503, 504, 505, 506, 530, 540, 541}


def classes(parent: type[AmqpError]) -> list[type[AmqpError]]:
    """Those directly below `parent`: what is below these says why, with the reply code of its class."""
    return [one for one in vars(errors).values() if isinstance(one, type) and one.__base__ is parent]


def test_a_class_below_that_of_a_reply_code_has_its_code() -> None:
    for below, code in ((HomeDown, 404), (MetadataTimeout, 541)):
        assert below.code == code


@pytest.mark.parametrize(("parent", "codes"), [(ChannelException, SOFT), (ConnectionException, HARD)])
def test_every_reply_code_of_the_specification_has_one_class(
    parent: type[AmqpError], codes: set[int]
) -> None:
    assert sorted(one.code for one in classes(parent)) == sorted(codes)


def test_the_reply_text_is_the_name_and_the_message() -> None:
    assert NotFound("no queue 'a' in vhost '/'").reply_text == "NOT_FOUND - no queue 'a' in vhost '/'"


def test_the_reply_text_without_a_message_is_the_name() -> None:
    assert NotFound().reply_text == "NOT_FOUND"


def test_the_method_in_a_close_is_the_current_one_unless_another_is_named() -> None:
    assert NotFound("x").method_index is None
    assert NotFound("x", method_index=0).method_index == 0
