"""The file of the metadata: what existed when it was made, and what was asked for since.

    file  │ "WRNMET" │ version u16 │ salt, 8 octets │ checksum u32 │ ORIGIN │ state │ STATE_END │ batches …
    state │ BATCH or ENTRY …, which make all that existed; since version 2 many things with one ENTRY,
          │ since version 3 queues that are paused, since version 4 leases, since version 5 numbers in doubt
    batch │ BATCH │ ENTRY …

Records are those of the message store (`store/record`), with kinds of their own. As there, the salt is random
and goes into each checksum, and a BATCH says that all before it was synced: recovery tells by it a torn end,
which is no loss, from damage.

    ENTRY      what `codec` makes of commands, all of them or none
    STATE_END  index u64: the place in the log of the last command that is in the state
    ORIGIN     log id, 8 octets; generation u64: which file of which log this is, since version 5. By these
               the high-water mark, a file beside it, tells whether it is the one that it speaks of
"""

from google_crc32c import value as checksum_of

from warren.store.record import checksum_seed, encode

VERSION = 5
NAME = "metadata"
# What it is called until it is whole.
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
    """The file cannot be used: where, and why."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(f"{NAME}, byte {at}: {reason}")


def encode_head(salt: bytes) -> bytes:
    """The head of a file."""
    head = _MAGIC + VERSION.to_bytes(2, "big") + salt
    checksum: int = checksum_of(head)
    return head + checksum.to_bytes(4, "big")


def seed_of(head: bytes) -> int:
    """What the checksums behind `head` start from; PageError if this version cannot read what has it."""
    if len(head) < HEAD_SIZE or head[: len(_MAGIC)] != _MAGIC:
        raise JournalError(0, "not a metadata file of Warren")
    if checksum_of(head[:_CHECKSUM_AT]) != int.from_bytes(head[_CHECKSUM_AT:HEAD_SIZE], "big"):
        raise JournalError(0, "the head is damaged")
    version = version_of(head)
    if version > VERSION:
        raise JournalError(
            len(_MAGIC),
            f"format {version} is newer than {VERSION}, the newest this version of Warren reads",
        )
    return checksum_seed(0, head[_SALT_AT:_CHECKSUM_AT])


def version_of(head: bytes) -> int:
    """The format of the file that begins with `head`, which `seed_of` takes."""
    return int.from_bytes(head[len(_MAGIC) : _SALT_AT], "big")


def encode_origin(log_id: bytes, generation: int, seed: int) -> bytes:
    """The record that says which file this is."""
    return encode(ORIGIN, log_id + generation.to_bytes(8, "big"), seed)


def encode_batch(entries: list[bytes], seed: int) -> list[bytes]:
    """The records of a batch."""
    return [encode(BATCH, b"", seed), *(encode(ENTRY, entry, seed) for entry in entries)]
