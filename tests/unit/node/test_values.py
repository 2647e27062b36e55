"""Parsing of setting values."""

import pytest

from warren.node.values import (
    Address,
    InvalidValue,
    address,
    client_address,
    file_mode,
    format_value,
    fraction,
    integer,
    size,
    unless,
)


@pytest.mark.parametrize(
    ("text", "byte_count"),
    [
        ("0", 0),
        ("67108864", 2**26),
        ("1kB", 1000),
        ("1k", 1024),
        ("1KiB", 1024),
        ("64MB", 64 * 10**6),
        ("64M", 64 * 2**20),
        ("64MiB", 64 * 2**20),
        ("1GB", 10**9),
        ("2 GiB", 2 * 2**30),
        ("1T", 2**40),
    ],
)
def test_sizes_have_decimal_and_binary_units(text: str, byte_count: int) -> None:
    assert size(text) == byte_count


@pytest.mark.parametrize("text", ["", "GB", "-1", "1.5GB", "1 XB", "1GBx", "9" * 5_000])
def test_invalid_sizes_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        size(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5672", Address("", 5672)),
        ("127.0.0.1:5672", Address("127.0.0.1", 5672)),
        ("::1:5672", Address("::1", 5672)),
        ("[::1]:5672", Address("::1", 5672)),
        (":::5672", Address("::", 5672)),
        ("localhost:0", Address("localhost", 0)),
    ],
)
def test_addresses_are_parsed(text: str, expected: Address) -> None:
    assert address(text) == expected


@pytest.mark.parametrize("kind", ["unix", "local"])
def test_a_unix_socket_is_written_as_in_rabbitmq(kind: str) -> None:
    found = client_address(f"{kind}:/run/amqp.sock:0")
    assert found == Address("/run/amqp.sock", 0)
    assert format_value(found) == "unix:/run/amqp.sock:0"
    assert client_address("::1:5672") == Address("::1", 5672)
    for wrong in (f"{kind}:/run/amqp.sock", f"{kind}:run/amqp.sock:0", f"{kind}:/run/amqp.sock:5672"):
        with pytest.raises(InvalidValue, match="absolute path with port 0"):
            client_address(wrong)


def test_permissions_are_octal_digits() -> None:
    assert (file_mode("660"), file_mode("0600")) == (0o660, 0o600)
    assert format_value(file_mode("660")) == "660"
    for wrong in ("680", "66", "rw", "6600"):
        with pytest.raises(InvalidValue, match="octal"):
            file_mode(wrong)


def test_numbers_out_of_range_are_refused() -> None:
    assert integer(0, 5)("5") == 5
    assert unless(("infinity",), integer(0, 5))("infinity") is None
    assert fraction("0.4") == 0.4
    for text in ("6", "-1", "x", "", "1_0", "9" * 30):
        with pytest.raises(InvalidValue):
            integer(0, 5)(text)
    for text in ("x", "-0.1", "nan", "inf"):
        with pytest.raises(InvalidValue):
            fraction(text)
