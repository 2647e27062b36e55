"""The metadata file: a snapshot of the metadata, and the commands applied since.

    file  │ "WRNMET" │ version u16 │ salt, 8 bytes │ checksum u32 │ ORIGIN │ state │ STATE_END │ batches …
    state │ BATCH or ENTRY …, which rebuild the snapshot; since version 2 with many objects in one ENTRY,
          │ since version 3 paused queues, since version 4 leases, since version 5 numbers in doubt,
          │ since version 6 the users of parameters
    batch │ BATCH │ ENTRY …

Records have the format of the message store (`store/record`), with kinds of their own. As there, the salt is
random and part of each checksum, and a BATCH states that everything before it was synced: with it recovery
distinguishes a torn end, which loses nothing, from damage.

    ENTRY      commands encoded by `codec`; all of them or none are applied
    STATE_END  index u64: the index in the log of the last command that is part of the snapshot
    ORIGIN     log id, 8 bytes; generation u64: identifies the file and its log, since version 5. The
               high-water mark, a file beside it, refers to these
"""

from google_crc32c import value as checksum_of

from warren.store.record import checksum_seed, encode

VERSION = 6
NAME = "metadata"
# Its name while it is being written.
UNFINISHED_NAME = "metadata.new"

ENTRY = 1
BATCH = 2
STATE_END = 3
ORIGIN = 4

HEAD_SIZE = 20
SALT_SIZE = 8
_MAGIC = b"WRNMET"
_SALT_AT = 8
_CHECKSUM_AT = 16


class JournalError(Exception):
    """The metadata file cannot be used; says where and why."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(f"{NAME}, byte {at}: {reason}")


def encode_head(salt: bytes) -> bytes:
    """The head of a file with `salt`."""
    head = _MAGIC + VERSION.to_bytes(2, "big") + salt
    checksum: int = checksum_of(head)
    return head + checksum.to_bytes(4, "big")


def seed_of(head: bytes) -> int:
    """The checksum seed of the records behind `head`; JournalError if this version cannot read the file."""
    if len(head) < HEAD_SIZE or head[: len(_MAGIC)] != _MAGIC:
        raise JournalError(0, "not a metadata file of Warren")
    if checksum_of(head[:_CHECKSUM_AT]) != int.from_bytes(head[_CHECKSUM_AT:HEAD_SIZE], "big"):
        raise JournalError(0, "the header is damaged")
    version = version_of(head)
    if version > VERSION:
        raise JournalError(
            len(_MAGIC),
            f"format {version} is newer than {VERSION}, the newest this version of Warren reads",
        )
    return checksum_seed(0, head[_SALT_AT:_CHECKSUM_AT])


def version_of(head: bytes) -> int:
    """The format version of the file with `head`, which must be valid."""
    return int.from_bytes(head[len(_MAGIC) : _SALT_AT], "big")


def encode_origin(log_id: bytes, generation: int, seed: int) -> bytes:
    """The record that identifies the file."""
    return encode(ORIGIN, log_id + generation.to_bytes(8, "big"), seed)


def encode_batch(entries: list[bytes], seed: int) -> list[bytes]:
    """The records of a batch with `entries`."""
    return [encode(BATCH, b"", seed), *(encode(ENTRY, entry, seed) for entry in entries)]
