"""The damage of a store that an operator has accepted: it makes no replica untrusted any more.

A damaged file stays as it is, and is found again at each start. Damage that is new, also in the same file,
counts as before.

    value of the marker   digest, 8 bytes, of each StoreFileError as text, in order
"""

from collections.abc import Iterable
from hashlib import blake2b

from warren.limits_raft import ACCEPTED_DAMAGE_MAX
from warren.store.markers import CommitMarker
from warren.store.message_store import MessageStore
from warren.store.segment import StoreFileError

_KEY = b"accepted damage"
_SIZE = 8


def accept_damage(store: MessageStore, damage: Iterable[StoreFileError]) -> None:
    """Accept `damage`; that is written with the next batch, before any record of a group in it."""
    accepted = _digests(store.markers) | {_digest(error) for error in damage}
    store.begin_group()
    store.end_group(_KEY, b"".join(sorted(accepted)[:ACCEPTED_DAMAGE_MAX]))


def not_accepted(
    damage: Iterable[StoreFileError], markers: dict[bytes, CommitMarker]
) -> list[StoreFileError]:
    """What of `damage` nobody has accepted in the store with `markers`."""
    accepted = _digests(markers)
    return [error for error in damage if _digest(error) not in accepted]


def _digest(error: StoreFileError) -> bytes:
    return blake2b(str(error).encode(), digest_size=_SIZE).digest()


def _digests(markers: dict[bytes, CommitMarker]) -> set[bytes]:
    marker = markers.get(_KEY)
    value = b"" if marker is None else marker.value
    return {value[at : at + _SIZE] for at in range(0, len(value), _SIZE)}
