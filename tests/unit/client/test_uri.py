"""AMQP URIs, read as their specification requires."""

import pytest

from warren.client.uri import DEFAULT_URI, parse_uri


def test_missing_parts_have_defaults() -> None:
    target = parse_uri("amqp://broker")
    assert (target.host, target.port, target.user, target.password) == ("broker", 5672, "guest", "guest")
    assert (target.vhost, target.is_tls) == ("/", False)


def test_the_default_uri_is_a_broker_on_this_machine() -> None:
    assert parse_uri(DEFAULT_URI).vhost == "/"


def test_every_part_can_be_given_and_percent_encoded() -> None:
    target = parse_uri("amqps://us%65r:p%40ss@[::1]:10000/v%2fhost")
    assert (target.host, target.port, target.is_tls) == ("::1", 10000, True)
    assert (target.user, target.password, target.vhost) == ("user", "p@ss", "v/host")


def test_a_host_that_begins_with_an_encoded_slash_is_the_path_of_a_unix_socket() -> None:
    target = parse_uri("amqp://me:pw@%2Frun%2fWarren%2Famqp.sock/%2f")
    assert (target.host, target.user, target.vhost) == ("/run/Warren/amqp.sock", "me", "/")
    with pytest.raises(ValueError, match="amqps"):
        parse_uri("amqps://%2Frun%2Famqp.sock")


def test_a_trailing_slash_means_the_vhost_with_an_empty_name() -> None:
    assert parse_uri("amqp://host/").vhost == ""


def test_the_default_port_with_tls_is_5671() -> None:
    assert parse_uri("amqps://host").port == 5671


@pytest.mark.parametrize("uri", ["http://host", "host:5672", "amqp://host/a/b", "amqp://host:port"])
def test_a_malformed_uri_is_refused(uri: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_uri(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "http://al:secret@host",
        "amqp://al:secret@host/a/b",
        "amqp://al:secret/x@host",
        "amqp://al:sec#secret@host",
        "amqp://al:secret@[host",
    ],
)
def test_a_malformed_uri_is_refused_without_showing_its_password(uri: str) -> None:
    with pytest.raises(ValueError, match="an AMQP URI is") as caught:
        parse_uri(uri)
    assert "sec" not in str(caught.value)
