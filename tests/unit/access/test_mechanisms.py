"""Parsing of the client's response for PLAIN and AMQPLAIN."""

import pytest

from warren.access.mechanisms import READERS
from warren.errors import AmqpSyntaxError
from warren.wire.table import encode_table


def amqplain(table: dict[str, object]) -> bytes:
    return encode_table(table)[4:]


def test_plain_and_amqplain_responses_contain_name_and_password() -> None:
    assert READERS["PLAIN"](b"\0u\0p\xff") == ("u", "p\udcff")
    assert READERS["AMQPLAIN"](amqplain({"LOGIN": "u", "PASSWORD": "p"})) == ("u", "p")


@pytest.mark.parametrize(
    "response", [b"", b"guest guest", b"\0guest", b"\0guest\0guest\0", b"admin\0guest\0guest"]
)
def test_a_malformed_plain_response_is_a_syntax_error(response: bytes) -> None:
    with pytest.raises(AmqpSyntaxError, match=r"response <<.*>> invalid"):
        READERS["PLAIN"](response)


@pytest.mark.parametrize(
    "response",
    [b"", b"\xff\xff\xff", amqplain({"LOGIN": "u"}), amqplain({"LOGIN": "u", "PASSWORD": 5}), amqplain({})],
)
def test_malformed_amqplain_is_a_syntax_error(response: bytes) -> None:
    with pytest.raises(AmqpSyntaxError):
        READERS["AMQPLAIN"](response)
