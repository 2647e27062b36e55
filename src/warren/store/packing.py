"""Assembles a record with its size and checksum, computes checksums, and writes integers; `packing.h` does
the same when compiled.

The compiled version makes no Python calls, and uses the same library for the checksum.
"""

from google_crc32c import extend


def pack(
    seed: int,
    *,
    fixed: bytearray,
    references: bytes,
    address: bytes,
    property_list: bytes,
    content: bytes,
    is_copied: bool,
) -> bytes:
    """A whole record; unless `is_copied`, `content` is only checksummed, and the caller appends it."""
    rest = b"".join((fixed, references, address, property_list, content if is_copied else b""))
    size = len(rest) - 1
    checksum: int = extend(seed, rest)
    if not is_copied:
        size += len(content)
        checksum = extend(checksum, content)
    return size.to_bytes(4, "big") + checksum.to_bytes(4, "big") + rest


def put(data: bytearray, at: int, size: int, value: int) -> None:
    """Write `value` at `at` as an integer of `size` bytes, big-endian; OverflowError if there is no room."""
    if at < 0 or at + size > len(data):
        raise OverflowError(f"{size} bytes from {at} on, of {len(data)}")
    data[at : at + size] = value.to_bytes(size, "big")


def copied(data: bytearray, size: int) -> bytes:
    """The first `size` bytes of `data`, or all if there are fewer."""
    return bytes(data[:size])


def checksum_of(seed: int, data: bytes, begin: int, end: int) -> int:
    """The checksum of `data` from `begin` up to, not including, `end`, starting from `seed`."""
    checksum: int = extend(seed, data[begin:end])
    return checksum
