"""A network of connections between nodes that delays, cuts, corrupts and forgets to tell."""

import random
from collections.abc import Callable

from warren.cluster.link_connection import LinkConnection, LinkSocket

# What waits in one direction, above which an end is asked for no more output.
_WAITING_MAX = 2_000


class SimulatedSocket(LinkSocket):
    """One end of a simulated connection."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.now = now
        self.connection: LinkConnection | None = None
        self.peer: SimulatedSocket | None = None
        # Bytes on their way to this end.
        self.arriving = bytearray()
        self.is_silenced = False
        self.is_lost = False
        # When this end learns that the connection is gone; None as long as it is not.
        self.lost_at: int | None = None
        self.is_ready = False
        # True while its process is stopped, which reads, writes and learns nothing.
        self.is_stopped = False
        # Until then nothing arrives.
        self.held_until = 0

    def output_ready(self) -> None:
        """Write before the next step."""
        self.is_ready = True

    def flush(self) -> None:
        """Write what the connection has, and close the socket if that is finished."""
        connection, peer = self.connection, self.peer
        if not self.is_ready or connection is None or peer is None or self.is_lost or self.is_stopped:
            return
        self.is_ready = False
        while connection.has_output:
            if len(peer.arriving) > _WAITING_MAX and not connection.is_finished:
                self.is_ready = True
                return
            output = b"".join(connection.take_output())
            if not peer.is_silenced and peer.lost_at is None:
                peer.arriving += output
        if connection.is_finished:
            self.lose()

    def lose(self) -> None:
        """Close this end."""
        self.is_lost = True
        if self.connection is not None:
            self.connection.lost()

    def read(self, size: int) -> None:
        """Give the connection `size` bytes of what has arrived."""
        data = bytes(self.arriving[:size])
        del self.arriving[:size]
        if data and self.connection is not None and not self.is_lost:
            self.connection.receive(data, self.now())


class SimulatedNetwork:
    """All connections, each a pair of sockets."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.time = 1_000_000
        self.pairs: list[tuple[SimulatedSocket, SimulatedSocket]] = []
        # Until then nothing passes and nothing connects.
        self.parted_until = 0

    @property
    def is_parted(self) -> bool:
        """True while the nodes cannot reach each other."""
        return self.time < self.parted_until

    def pair(self, one: SimulatedSocket, other: SimulatedSocket) -> None:
        """Connect two sockets."""
        one.peer, other.peer = other, one
        self.pairs.append((one, other))

    def part(self, duration: int) -> None:
        """Let nothing pass, without telling anybody, for `duration` ms; what was connected stays silent."""
        self.parted_until = self.time + duration
        for end in self.ends():
            end.is_silenced = True

    def ends(self) -> list[SimulatedSocket]:
        """Return all ends of connections."""
        return [end for pair in self.pairs for end in pair]

    def flush(self) -> None:
        """Write what is to be written."""
        for end in self.ends():
            end.flush()

    def advance(self, passed: int, *, is_calm: bool = False) -> None:
        """Let time pass, and some of what is on its way arrive."""
        self.time += passed
        self.flush()
        ends = self.ends()
        self.chance.shuffle(ends)
        for end in ends:
            self._expire(end)
            waiting = len(end.arriving)
            is_passing = not (end.is_silenced or end.is_stopped) and end.held_until <= self.time
            if waiting and is_passing and (is_calm or self.chance.random() < 0.8):
                all_of_it = is_calm or self.chance.random() < 0.6
                end.read(waiting if all_of_it else self.chance.randint(1, waiting))
        self.flush()
        for pair in self.pairs:
            self._close(*pair)
        self.pairs = [pair for pair in self.pairs if not (pair[0].is_lost and pair[1].is_lost)]

    def _expire(self, end: SimulatedSocket) -> None:
        if end.is_stopped:
            return
        if end.lost_at is not None and end.lost_at <= self.time and not end.is_lost:
            end.lose()
        if end.connection is not None and not end.is_lost:
            end.connection.expire(end.now())

    def _close(self, *pair: SimulatedSocket) -> None:
        """Tell an end that the other has closed the socket, once it has read what was sent before."""
        for end in pair:
            peer = end.peer
            assert peer is not None
            is_told = end.lost_at is None and not (end.is_silenced or end.is_stopped or end.arriving)
            if peer.is_lost and not end.is_lost and is_told:
                end.lose()

    def cut(self, *, is_told_late: bool) -> None:
        """Cut a connection at any byte; one end may learn of it seconds later."""
        alive = [pair for pair in self.pairs if pair[0].lost_at is None]
        if not alive:
            return
        pair = self.chance.choice(alive)
        late = self.chance.choice(pair)
        for end in pair:
            if not end.is_stopped:
                end.read(self.chance.randint(0, len(end.arriving)))
            end.arriving.clear()
            is_late = is_told_late and end is late
            end.lost_at = self.time + (self.chance.randint(0, 4_000) if is_late else 0)
            end.is_silenced = True

    def silence(self) -> None:
        """From now on nothing passes in one direction of a connection, or in both, and nobody is told."""
        if self.pairs:
            pair = self.chance.choice(self.pairs)
            for end in self.chance.sample(pair, self.chance.choice([1, 2])):
                end.is_silenced = True

    def hold(self, duration_max: int) -> None:
        """Delay one direction of a connection, so that others are ahead of it."""
        ends = [end for end in self.ends() if not end.is_lost]
        if ends:
            self.chance.choice(ends).held_until = self.time + self.chance.randint(1, duration_max)

    def corrupt(self) -> None:
        """Change a byte on its way."""
        ends = [end for end in self.ends() if end.arriving]
        if ends:
            arriving = self.chance.choice(ends).arriving
            arriving[self.chance.randrange(len(arriving))] ^= 1 << self.chance.randrange(8)
