"""The encoding of records, byte by byte, and their decoding."""

import subprocess
import sys

import pytest
from google_crc32c import value

from warren.model.message import BODY_END, StoredMessage, new_stored_message
from warren.store.record import (
    MESSAGE,
    checksum_seed,
    content_size,
    decode_body,
    decode_message,
    encode_message,
    encode_reference,
    first_reference,
    is_intact,
    message_record_size,
    reference_count,
    uint32,
    uint64,
)

SALT = b"saltsalt"
SEED = checksum_seed(7, SALT)
REFERENCES = encode_reference(1, 2) + encode_reference(0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)


def message(content: bytes) -> StoredMessage:
    made = new_stored_message(b"\x02ex\x03key", b"\x10\x00\x02", content, 0x010203040506)
    made.flags, made.priority = 0xC3, 0xFF
    return made


def encoded(content: bytes) -> bytes:
    chunks: list[bytes] = []
    encode_message(message(content), REFERENCES, SEED, chunks)
    return b"".join(chunks)


def test_a_reference_contains_queue_and_position() -> None:
    reference = encode_reference(0x01020304, 0x05060708090A0B0C)
    assert reference == bytes(range(1, 13))
    assert encode_reference(0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF) == b"\xff" * 12


def test_a_message_is_encoded_as_drawn() -> None:
    body = (
        bytes.fromhex("0000010203040506 c3 ff 0007 00000003 00000002")
        + REFERENCES
        + b"\x02ex\x03key"
        + b"\x10\x00\x02"
        + b"body"
    )
    checksum = value((7).to_bytes(4, "big") + SALT + bytes((MESSAGE,)) + body)
    size = len(body).to_bytes(4, "big")
    assert encoded(b"body") == size + checksum.to_bytes(4, "big") + bytes((MESSAGE,)) + body


@pytest.mark.parametrize("content", [b"", b"x", bytes(70_000)])
def test_a_record_is_decoded_as_it_was_encoded(content: bytes) -> None:
    original = message(content)
    data = b"before" + encoded(content) + b"behind"
    size = message_record_size(original, REFERENCES)
    assert is_intact(data, 6, SEED) == size == len(data) - 12
    found = decode_message(data, 6, size)
    assert (found.address, found.property_list) == (original.address, original.property_list)
    assert (found.content, found.published_at) == (content, original.published_at)
    assert (found.flags, found.priority) == (0xC3, 0xFF)
    assert reference_count(data, 6) == 2
    assert content_size(data, 6, size) == len(content)
    second = first_reference(6) + 12
    assert (uint32(data, second), uint64(data, second + 4)) == (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)


@pytest.mark.parametrize("content", [b"body", bytes(5_000)])
def test_a_changed_byte_is_detected(content: bytes) -> None:
    whole = encoded(content)
    for at in range(len(whole)):
        harmed = whole[:at] + bytes((whole[at] ^ 1,)) + whole[at + 1 :]
        assert not is_intact(harmed, 0, SEED)
    assert not is_intact(whole, 0, checksum_seed(8, SALT)), "the record of another segment"


@pytest.mark.parametrize("size", [4, 5_000])
def test_records_are_equal_when_the_checksum_is_computed_in_python(size: int) -> None:
    code = f"""
import sys, types
import google_crc32c
sys.modules["google_crc32c._crc32c"] = types.ModuleType("a library without a file")
from tests.unit.store.test_record import encoded
print(encoded(bytes({size})).hex())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == encoded(bytes(size)).hex()


@pytest.mark.parametrize("body", [b"", b"x", bytes(70_000)])
def test_a_body_is_decoded_separately(body: bytes) -> None:
    data = b"before" + encoded(body + BODY_END) + b"behind"
    assert decode_body(data, 6, is_intact(data, 6, SEED)) == body
