"""Hashes that are the same in every process, on every node and after every restart.

A key falls into one of `SLOTS` slots. The owner of a slot is determined by weighted rendezvous hashing: each
candidate draws an exponential waiting time, divided by its weight, from the slot and its own seed; the
shortest wins. The result depends only on the set of candidates, not on their order. An additional candidate
takes slots from all others in proportion and moves no slot between them; a removed one gives up only its own.
"""

from hashlib import blake2b
from math import log
from zlib import crc32

# A power of two; a share of one quarter is met within 0.2 % (one standard deviation).
SLOTS = 65_536

_SLOT_SHIFT = 48
_MASK = 0xFFFF_FFFF_FFFF_FFFF
_FIRST = 0xBF58_476D_1CE4_E5B9
_SECOND = 0x94D0_49BB_1331_11EB
_SPREAD = 0x9E37_79B9_7F4A_7C15
_UNIT = 2.0**-53


def key_slot(data: bytes) -> int:
    """The slot of a key, less than `SLOTS`."""
    return mix(crc32(data)) >> _SLOT_SHIFT


def key_hash(data: bytes) -> int:
    """A 64-bit hash of a key, with all bits usable."""
    return mix(crc32(data))


def seed(name: str) -> int:
    """A 64-bit hash of the name of a candidate, wide enough to make collisions negligible."""
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "big")


def draw(slot: int, seeds: list[int], weights: list[float]) -> int:
    """The index of the candidate that owns `slot`; there must be at least one.

    Without weights all are equal.
    """
    spread = (slot + 1) * _SPREAD & _MASK
    winner = 0
    if not weights:
        # The shortest waiting time is then that of the largest number.
        most = 0
        for at in range(len(seeds)):
            candidate = seeds[at]
            number = mix(spread ^ candidate) >> 11
            if number > most:
                most = number
                winner = at
        return winner
    best = -1.0
    for at in range(len(seeds)):
        # In (0, 1), with 53 bits and an offset of a half, so that the logarithm is finite.
        candidate = seeds[at]
        unit = ((mix(spread ^ candidate) >> 11) + 0.5) * _UNIT
        weight = weights[at]
        wait = -log(unit) / weight
        if best < 0.0 or wait < best:
            best = wait
            winner = at
    return winner


def mix(value: int) -> int:
    """The finaliser of splitmix64: each bit of `value` affects half of the bits of the result."""
    value = (value ^ (value >> 30)) * _FIRST & _MASK
    value = (value ^ (value >> 27)) * _SECOND & _MASK
    return value ^ (value >> 31)


def destination_name(destination: object) -> str:
    """The name of a queue or an exchange, which is the same after a restart."""
    return str(getattr(destination, "name", destination))
