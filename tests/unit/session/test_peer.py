"""Facts about the peer of a connection."""

import pytest

from warren.session.peer import Peer


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:10.0.0.1", False),
        ("10.0.0.1", False),
        ("2001:db8::1", False),
        ("fe80::1%eth0", False),
        ("unix", False),
    ],
)
def test_loopback_is_determined_by_the_address_of_the_client(host: str, expected: bool) -> None:
    peer = Peer(host=host, port=1, server_host="127.0.0.1", server_port=5672)
    assert peer.is_loopback is expected


def test_the_connection_name_contains_both_ends() -> None:
    peer = Peer(host="10.0.0.1", port=40000, server_host="10.0.0.2", server_port=5672)
    assert peer.name == "10.0.0.1:40000 -> 10.0.0.2:5672"


def test_no_link_is_on_this_machine_but_one_that_is_its_user_without_a_password() -> None:
    addresses = {"port": 5672, "server_host": "127.0.0.1", "server_port": 5672}
    assert not Peer(host="127.0.0.1", is_link=True, **addresses).is_loopback
    assert not Peer(host="", local_name="<local>", **addresses).is_loopback
    assert Peer(host="", local_name="<local>", local_user="guest", **addresses).is_loopback
    assert Peer(host="", local_name="<local>", is_operator=True, **addresses).is_loopback
