"""The progress of a query's last batch: the value of a commit marker, stored in the log with the rows.

value │ version u8 │ state u8 │ batch u64 │ rows u64 │ published u64 │ unroutable u64 │ at u64 ms │ user │
"""

from enum import IntEnum
from struct import Struct

import msgspec

_VERSION = 1
_FIXED = Struct(">BBQQQQQ")
_PREFIX = b"staged:"


class CommitState(IntEnum):
    """The state of the commit of a batch."""

    PUBLISHING = 0
    COMMITTED = 1
    GIVEN_UP = 2


class CommitProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of the last batch of one query."""

    state: CommitState
    batch: int
    # Rows of the batch, rows published, and rows among these that were unroutable.
    rows: int
    published: int
    unroutable: int
    # Time of the last change (ms).
    at: int
    user: str

    def encode(self) -> bytes:
        """The encoded value of the marker."""
        numbers = (self.batch, self.rows, self.published, self.unroutable, self.at)
        return _FIXED.pack(_VERSION, self.state, *numbers) + self.user.encode("utf-8", "surrogateescape")

    @classmethod
    def decode(cls, value: bytes) -> "CommitProgress":
        """The progress encoded in `value`."""
        version, state, batch, rows, published, unroutable, at = _FIXED.unpack_from(value)
        assert version == _VERSION
        return cls(
            state=CommitState(state),
            batch=batch,
            rows=rows,
            published=published,
            unroutable=unroutable,
            at=at,
            user=value[_FIXED.size :].decode("utf-8", "surrogateescape"),
        )


def progress_key(query: str) -> bytes:
    """The key of the marker of `query`."""
    return _PREFIX + query.encode("utf-8", "surrogateescape")


def is_progress_key(key: bytes) -> bool:
    """True if `key` is the key of the marker of a query."""
    return key.startswith(_PREFIX)
