"""Hiding the passwords of URIs, and filling them in again."""

import pytest

from warren.client.uri_password import is_masked, masked_uri, with_password_of


@pytest.mark.parametrize(
    ("uri", "masked"),
    [
        ("amqp://u:secret@h:1/v", "amqp://u:***@h:1/v"),
        ("amqp://u:se:cr@et@h", "amqp://u:***@h"),
        ("amqps://u:s@h?password=k&verify=verify_none", "amqps://u:***@h?password=***&verify=verify_none"),
        ("amqp://h", "amqp://h"),
        ("amqp://u@h", "amqp://u@h"),
        ("amqp://", "amqp://"),
    ],
)
def test_passwords_are_hidden(uri: str, masked: str) -> None:
    assert masked_uri(uri) == masked
    assert masked_uri(masked) == masked
    assert is_masked(masked) == ("***" in masked)


@pytest.mark.parametrize(
    ("uri", "filled"),
    [
        ("amqp://u:***@h:1/v", "amqp://u:s3@h:1/v"),
        ("amqp://u:***@h:1/v?heartbeat=5", "amqp://u:s3@h:1/v?heartbeat=5"),
        # Another virtual host, host, port or user, or without TLS.
        ("amqp://u:***@h:1/other", None),
        ("amqp://u:***@h:1", None),
        ("amqp://u:***@evil:1/v", None),
        ("amqp://u:***@h:2/v", None),
        ("amqp://w:***@h:1/v", None),
        ("amqps://u:***@h:1/v", None),
        ("amqp://u:***@h:1/v?password=***", None),
        ("nonsense", None),
    ],
)
def test_a_hidden_password_is_filled_in_for_the_same_user_and_broker(uri: str, filled: str | None) -> None:
    assert with_password_of(uri, "amqp://u:s3@h:1/v") == filled


def test_a_password_with_signs_of_patterns_is_filled_in_as_it_is() -> None:
    assert with_password_of("amqp://u:***@h/v?depth=1", r"amqp://u:\1\g<2>@h/v") == (
        r"amqp://u:\1\g<2>@h/v?depth=1"
    )


def test_tls_is_not_weakened_by_filling_in() -> None:
    known = "amqps://u:s@h?verify=verify_peer&password=k"
    assert with_password_of("amqps://u:***@h?verify=verify_peer&password=***", known) == known
    assert with_password_of("amqps://u:***@h?verify=verify_none&password=***", known) is None
    assert with_password_of("amqps://u:***@h?verify=verify_none", "amqps://u:s@h") is None
