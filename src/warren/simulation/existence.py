"""What clients know of the existence of one queue or binding: that it certainly is there, or that it may be.

Requests of different connections arrive in any order. What has been sent and not been answered can have
happened or not, and what a broken connection has sent can still happen until the broker is at rest.
"""

from msgspec import Struct, field


class Existence(Struct, eq=False):
    """Whether one thing exists, as far as it is known from what was sent and answered."""

    # True if it exists for certain: its creation was answered, and nothing was sent since that could end it.
    is_certain: bool = False
    # False if it does not exist for certain.
    is_possible: bool = False
    # The number of requests that have been sent to end it, and to create it.
    endings: int = 0
    creations: int = 0
    # Creations that were sent since the broker was at rest, and not answered.
    _open: int = 0
    # Endings under way, by channel: the number of creations when each was sent, or -1 if one was open then.
    _enders: dict[object, int] = field(default_factory=dict)
    # The number of creations when it ended by itself, which is over when the broker is at rest.
    _ended_at: int = -1

    @property
    def version(self) -> int:
        """Changes with each request that could change whether it exists."""
        return self.endings + self.creations

    def creating(self) -> int:
        """A client sends its creation; returns what `created` needs."""
        self.creations += 1
        self._open += 1
        self.is_possible = True
        return self.endings

    def created(self, endings: int) -> None:
        """The creation for which `creating` returned `endings` was answered."""
        self._open = max(0, self._open - 1)
        if endings == self.endings and not self._enders:
            self.is_certain = True

    def ending(self, holder: object) -> None:
        """A client requests its end on the channel `holder`."""
        self.is_certain = False
        self.endings += 1
        self._enders[holder] = -1 if self._open else self.creations

    def ended(self, holder: object) -> None:
        """The request on `holder` was answered: it is gone, unless a creation may have come behind."""
        # A creation under way may have come before it, also if it is answered later.
        self.endings += 1
        if self._enders.pop(holder, -1) == self.creations:
            self.is_possible = False

    def vanishing(self) -> None:
        """It ends by itself, since its connection has ended."""
        self.is_certain = False
        self.endings += 1
        self._ended_at = self.creations

    def released(self, holder: object) -> None:
        """The channel `holder` has ended: what it requested may have happened."""
        if self._enders.pop(holder, None) is not None:
            self.endings += 1

    def at_rest(self) -> None:
        """Nothing is under way."""
        self._open = 0
        if self._ended_at == self.creations:
            self.is_possible = False

    def crashed(self, *, survives: bool, is_restart: bool) -> None:
        """The broker has ended, or a virtual host restarts; it exists again if it `survives` that."""
        self._enders.clear()
        self.endings += 1
        if not survives:
            self.is_certain = False
            self.is_possible = self.is_possible and is_restart
        if not is_restart:
            self._open = 0
