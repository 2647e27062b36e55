"""Which filter values a chunk may have: never one too few, seldom one too many."""

import random

import pytest
from tests.unit.queues.samples import sent

from warren.limits import STREAM_SIEVE_BITS, STREAM_SIEVES_MAX
from warren.store.streams.chunk import Chunk, ChunkBuilder, read_head
from warren.store.streams.sieve import Sieves, Wanted, bits_of, filter_value, sieve_of

ONLY = {"has_unfiltered": False}


def chunk(*values: object, first: int = 0) -> Chunk:
    """A chunk whose messages have these filter values."""
    builder = ChunkBuilder(first)
    for value in values:
        headers = {"room": 7} if value is None else {"room": 7, "x-stream-filter-value": value}
        builder.add(sent(b"body", headers=headers))
    octets = builder.encode(1, 2, 0)
    head = read_head(octets, 0, 1, 2)
    assert head is not None
    return Chunk(octets, 0, head)


@pytest.mark.parametrize(
    ("values", "wanted", "unfiltered", "may_be"),
    [
        (["eu", "us"], ["us"], False, True),
        (["eu", "us"], ["apac", "eu"], False, True),
        (["eu", "us"], ["apac"], False, False),
        (["eu", "us"], ["apac"], True, False),
        (["eu", None], ["apac"], True, True),
        (["eu", None], ["apac"], False, False),
        ([None], ["eu"], False, False),
        ([None], ["eu"], True, True),
        # RabbitMQ takes an empty value for none.
        ([""], ["eu"], True, True),
        ([None], [""], False, True),
        (["z\u00fcrich", "\udcff"], ["\udcff"], False, True),
        # What is no text is no value, and is there all the same.
        ([5], ["5"], True, False),
    ],
)
def test_a_chunk_has_what_its_messages_have(
    values: list[object], wanted: list[str], unfiltered: bool, may_be: bool
) -> None:
    sieve = sieve_of(chunk(*values))
    assert Wanted(wanted, has_unfiltered=unfiltered).may_be_in(sieve) is may_be


def test_what_is_there_is_always_found_and_little_else() -> None:
    chance = random.Random(5)
    values = {f"customer-{chance.randrange(10**9)}" for _ in range(150)}
    others = [f"other-{chance.randrange(10**9)}" for _ in range(2_000)]
    there = sorted(values)[:50]
    sieve = sieve_of(chunk(*there))
    assert all(Wanted([value], **ONLY).may_be_in(sieve) for value in there)
    assert sum(Wanted([value], **ONLY).may_be_in(sieve) for value in others) < 20
    assert sieve.bit_length() <= STREAM_SIEVE_BITS


def test_no_value_takes_the_bit_of_those_that_have_none() -> None:
    assert not any(bits_of(f"v{number}") & 1 for number in range(20_000))


def test_a_value_that_only_looks_like_one_is_none() -> None:
    assert filter_value(sent(b"", headers={"a": "x-stream-filter-value"}).property_list) is None
    assert filter_value(sent(b"", headers={"a": b"\x15x-stream-filter-valueS"}).property_list) is None


def test_what_is_known_stays_known_for_so_many_chunks() -> None:
    sieves = Sieves()
    first = chunk("eu", "eu")
    sieve = sieves.note(7, first)
    assert sieves.of(7, 0) == (2, sieve)
    assert sieves.of(8, 0) is None
    for stream in range(STREAM_SIEVES_MAX - 1):
        sieves.note(100 + stream, first)
    assert sieves.of(7, 0) == (2, sieve)
    sieves.note(9, first)
    assert sieves.of(100, 0) is None
    assert sieves.of(7, 0) == (2, sieve)
