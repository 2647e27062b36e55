"""How far a query has come with its last batch: the value of a mark, which is in the log with the rows.

value │ version u8 │ state u8 │ batch u64 │ rows u64 │ published u64 │ unroutable u64 │ at u64 ms │ user │
"""

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

_VERSION = 1
_FIXED = Struct(">BBQQQQQ")
_PREFIX = b"staged:"


class CommitState(IntEnum):
    """How a batch is."""

    PUBLISHING = 0
    COMMITTED = 1
    GIVEN_UP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitProgress:
    """The last batch of one query."""

    state: CommitState
    batch: int
    # Of the batch; of these published; and of these such that no queue was bound for.
    rows: int
    published: int
    unroutable: int
    # Of the last change (ms).
    at: int
    user: str

    def encode(self) -> bytes:
        """The value of the mark."""
        numbers = (self.batch, self.rows, self.published, self.unroutable, self.at)
        return _FIXED.pack(_VERSION, self.state, *numbers) + self.user.encode("utf-8", "surrogateescape")

    @classmethod
    def decode(cls, value: bytes) -> "CommitProgress":
        """What `encode` has written."""
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
    """The key of the mark of `query`."""
    return _PREFIX + query.encode("utf-8", "surrogateescape")


def is_progress_key(key: bytes) -> bool:
    """True for the mark of any query."""
    return key.startswith(_PREFIX)
