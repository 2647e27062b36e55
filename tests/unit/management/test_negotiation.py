"""Content negotiation, as measured with RabbitMQ 3.10.8."""

import pytest
from aiohttp.test_utils import make_mocked_request

from warren.management.negotiation import (
    encodings,
    plain_text_refusal,
    prefers_gzip,
    refuses_identity,
    takes_gzip,
)


@pytest.mark.parametrize(
    ("accepted", "status"),
    [
        (None, 0),
        ("*/*", 0),
        ("text/*", 0),
        ("Text/Plain", 0),
        ("text/plain;q=0", 0),
        ("image/png, */*;q=0.1", 0),
        ("text/html", 406),
        ("application/*", 406),
        ("", 406),
        ("nonsense", 400),
        ("text/plain, nonsense", 400),
    ],
)
def test_text_plain_is_chosen_if_it_is_accepted(accepted: str | None, status: int) -> None:
    assert plain_text_refusal(accepted) == status


@pytest.mark.parametrize(
    ("accepted", "is_taken", "is_preferred", "is_needed"),
    [
        ("gzip", True, True, False),
        ("x-gzip", True, True, False),
        ("GZIP ; Q=0.5", True, True, False),
        ("deflate;q=1, gzip;q=0.5, identity;q=0.1", True, True, False),
        ("identity;q=1, gzip;q=0.5", True, False, False),
        ("gzip;q=0, *", False, False, False),
        ("gzip;q=abc", False, False, False),
        ("gzip;level=1", False, False, False),
        ("*", False, False, False),
        ("*;q=0", False, False, True),
        ("identity, *;q=0", False, False, False),
        ("gzip, identity;q=0", True, True, True),
        ("", False, False, False),
    ],
)
def test_content_encodings_are_chosen_by_weight(
    accepted: str, is_taken: bool, is_preferred: bool, is_needed: bool
) -> None:
    request = make_mocked_request("GET", "/", headers={"accept-encoding": accepted})
    assert takes_gzip(request) == is_taken
    assert prefers_gzip(request) == is_preferred
    assert refuses_identity(request) == is_needed


def test_a_long_header_is_parsed_quickly() -> None:
    assert encodings("gzip;" + " " * 20_000 + "q" + " " * 20_000) == {}
