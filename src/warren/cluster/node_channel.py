"""The port to another node: payloads in order, each exactly once within a session.

Who implements it calls the methods of `NodeTraffic`: `session_began`, `received` for each payload,
`writable` when there is room again, and `session_lost` once, after which nothing of that session follows.
"""

from typing import Protocol


class NodeChannel(Protocol):
    """Port: sends payloads to one other node; it never calls back while it is called."""

    @property
    def is_writable(self) -> bool:
        """False while what was sent must be waited for; `writable` follows then."""

    def send(self, kind: int, body: bytes) -> None:
        """Send a payload; it is lost only if the session is."""

    def end_session(self, reason: str) -> None:
        """End the session, since the other node has sent what it may not; `session_lost` follows later."""
