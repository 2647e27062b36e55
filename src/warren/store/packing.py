"""The parts of a record behind one another, with their size and checksum before them, and the checksum alone.

Only this runs interpreted; compiled, `packing.h` does the same in its place, without a call of Python's for
any of it, and where the checksum is made by the same library.
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
    """A whole record, but for `content` if that is not copied: it is counted, checked, and comes behind."""
    rest = b"".join((fixed, references, address, property_list, content if is_copied else b""))
    size = len(rest) - 1
    checksum: int = extend(seed, rest)
    if not is_copied:
        size += len(content)
        checksum = extend(checksum, content)
    return size.to_bytes(4, "big") + checksum.to_bytes(4, "big") + rest


def checksum_of(seed: int, octets: bytes, begin: int, end: int) -> int:
    """The checksum that starts from `seed`, over `octets` from `begin` to before `end`."""
    checksum: int = extend(seed, octets[begin:end])
    return checksum
