"""The groups that sleep and have a member on one other node, with hashes by which both nodes compare them.

A hash of each bucket changes with each group that falls asleep or wakes, so that comparing costs the same
however many sleep. Both nodes have one hash if they have the same groups with the same terms and leaders.
"""

import hashlib
from collections.abc import Iterable

from warren.cluster.groups.group_payloads import (
    NUMBER,
    SLEEPING_HEAD,
    SLEEPING_ROW,
    VERSION,
)
from warren.cluster.groups.raft_message_reader import RaftMessageReader
from warren.cluster.node_link import PayloadError
from warren.limits_raft import GROUP_PAYLOAD_SIZE

BUCKETS = 256
_HASH_SIZE = NUMBER.size
_VERSION = bytes((VERSION,))


class SleepingGroups:
    """The sleeping groups that this node has in common with another one."""

    __slots__ = ("_buckets", "_hashes")

    def __init__(self) -> None:
        # By bucket: number -> term and leader.
        self._buckets: list[dict[int, tuple[int, int]]] = [{} for _ in range(BUCKETS)]
        self._hashes = [0] * BUCKETS

    def add(self, number: int, term: int, leader: int) -> None:
        """The group has fallen asleep."""
        bucket = number % BUCKETS
        self._buckets[bucket][number] = term, leader
        self._hashes[bucket] ^= _hash(number, term, leader)

    def remove(self, number: int) -> None:
        """The group has woken."""
        bucket = number % BUCKETS
        found = self._buckets[bucket].pop(number, None)
        if found is not None:
            self._hashes[bucket] ^= _hash(number, *found)

    def digest(self) -> bytes:
        """The hashes of all buckets, for the other node."""
        return _VERSION + b"".join(map(NUMBER.pack, self._hashes))

    def differing(self, digest: bytes) -> list[int]:
        """The buckets that differ from those of the other node, which has sent `digest`. PayloadError."""
        reader = RaftMessageReader(digest)
        if reader.left != BUCKETS * _HASH_SIZE:
            raise PayloadError(f"hashes of sleeping groups in {reader.left} bytes")
        return [bucket for bucket in range(BUCKETS) if reader.number(_HASH_SIZE) != self._hashes[bucket]]

    def lists(self, buckets: Iterable[int]) -> list[bytes]:
        """The groups in `buckets`, as payloads for the other node."""
        payloads: list[bytes] = []
        parts, size = [_VERSION], 0
        for bucket in buckets:
            rows = self._buckets[bucket]
            found = SLEEPING_HEAD.pack(bucket, len(rows))
            found += b"".join(SLEEPING_ROW.pack(number, *rows[number]) for number in sorted(rows))
            if size and size + len(found) > GROUP_PAYLOAD_SIZE:
                payloads.append(b"".join(parts))
                parts, size = [_VERSION], 0
            parts.append(found)
            size += len(found)
        if size:
            payloads.append(b"".join(parts))
        return payloads

    def differences(self, listed: bytes) -> list[int]:
        """The groups that do not sleep on both nodes in one term with one leader. PayloadError."""
        reader = RaftMessageReader(listed)
        found: list[int] = []
        while not reader.is_at_end:
            bucket, count = reader.numbers(SLEEPING_HEAD)
            if count * SLEEPING_ROW.size > reader.left:
                raise PayloadError(f"{count} sleeping groups in {reader.left} bytes")
            theirs: dict[int, tuple[int, int]] = {}
            for _ in range(count):
                number, term, leader = reader.numbers(SLEEPING_ROW)
                if number % BUCKETS != bucket:
                    raise PayloadError(f"group {number} in bucket {bucket}")
                theirs[number] = term, leader
            ours = self._buckets[bucket]
            found += [number for number in sorted({*ours, *theirs}) if ours.get(number) != theirs.get(number)]
        return found


def _hash(number: int, term: int, leader: int) -> int:
    row = SLEEPING_ROW.pack(number, term, leader)
    return int.from_bytes(hashlib.blake2b(row, digest_size=_HASH_SIZE).digest(), "big")
