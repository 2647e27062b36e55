"""The user and connection of a request."""

import pytest
from tests.unit.vhost.conftest import LiveVhost

from warren.errors import NotFound


def test_an_empty_queue_name_is_the_last_one_declared(live: LiveVhost) -> None:
    who = live.requester()
    assert who.user == "guest"
    with pytest.raises(NotFound) as caught:
        who.queue("")
    assert caught.value.message == "no previously declared queue"
    who.queue_declared = "q"
    assert (who.queue(""), who.queue("a"), who.stripped_queue("a\nb")) == ("q", "a", "ab")
