"""Entries of the log that are no commands: they are for the group that agrees on the log."""

from msgspec import Struct


class EmptyEntry(Struct, frozen=True):
    """The entry with which a leader begins its term: everything in front of it is committed with it."""


class MembersChange(Struct, frozen=True):
    """A change of the members of the group."""

    # As `replication.raft.change.encode_change` writes it.
    change: bytes
