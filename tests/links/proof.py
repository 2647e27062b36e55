"""One proof: messages pass a link while it is cut, and while the brokers at both ends are killed in turn.

Publishers with confirms work all the time at the source, and a consumer at the destination acknowledges
nothing, so that its last session finds everything that the link has brought.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

from tests.integration.cut_proxy import CutProxy, cut_proxy
from tests.links.brokers import LinkEnd
from tests.links.links import PREFETCH, SetUp
from tests.links.traffic import Collector, Findings, Publisher, ending, findings
from tests.links.watch import Watch

SOURCES = 2
# The shares of the messages that have arrived when the network is gone, the source is killed, the
# destination is killed, and the connections are reset.
CUT_AT, SOURCE_AT, DESTINATION_AT, RESET_AT = 0.1, 0.25, 0.5, 0.75


class Size(NamedTuple):
    """How many messages, how many per second, how long the link is cut, and how long all of it may take."""

    messages: int
    rate: float
    cut_s: float
    seconds_max: float


SMALL = Size(messages=5_000, rate=2_500, cut_s=2, seconds_max=100)
FULL = Size(messages=200_000, rate=2_000, cut_s=60, seconds_max=900)
# RabbitMQ 4.3.6 as the downstream of an exchange takes some ten messages a second, from any upstream.
SLOW = Size(messages=500, rate=250, cut_s=2, seconds_max=200)


class Outcome(NamedTuple):
    """What has happened to the messages and to the link."""

    found: Findings
    cuts: int
    kills: int
    seconds: float
    # Messages whose acknowledgements the source had not yet on disk when it lost its power.
    came_back: int = 0
    # Whether the source may have delivered messages again without the flag.
    forgets_deliveries: bool = False

    @property
    def bound(self) -> int:
        """How many copies are explained: with each connection, a prefetch of unconfirmed messages is lost."""
        return PREFETCH * (self.cuts + self.kills) + self.came_back

    @property
    def unmarked_max(self) -> int:
        """How many copies may be of messages that were redelivered to the link without the flag."""
        return PREFETCH + self.came_back if self.forgets_deliveries else 0

    def check(self, messages: int) -> None:
        """Raise AssertionError unless nothing is lost, and everything else is explained."""
        found = self.found
        assert found.messages == messages
        assert (found.lost, found.unknown, found.unroutable) == (0, 0, 0)
        assert found.duplicates <= self.bound
        assert found.late <= self.bound
        assert found.duplicates_at_first_delivery <= self.unmarked_max
        assert found.late_at_first_delivery <= self.unmarked_max


class Proof:
    """A link from `source` to `destination`, both of which run before and after it."""

    def __init__(self, source: LinkEnd, destination: LinkEnd, size: Size, say: Callable[[str], None]) -> None:
        self._source = source
        self._destination = destination
        self._size = size
        self._watch = Watch(size.seconds_max, say)
        self._cuts = 0
        self._kills = 0

    def run(self, set_up: SetUp) -> Outcome:
        """Set the link up, disturb it, and compare what was published with what has arrived."""
        watch = self._watch
        with ExitStack() as stack:
            proxy = stack.enter_context(cut_proxy(self._source.port))
            link = set_up(self._source, self._destination, proxy)
            collector = Collector(self._destination.port, link.queue)
            stack.enter_context(ending(collector))
            watch.publishers = self._publishers(link.address)
            watch.collectors = [collector]
            stack.enter_context(ending(*watch.publishers))
            self._disturb(proxy, collector)
            watch.wait_for_all()
            # What has arrived for the second time may come last.
            watch.wait("an empty source", lambda: self._source.message_count() == 0)
            watch.wait("the last copies", lambda: len(collector.copies) == self._destination.message_count())
            found = findings(watch.publishers, collector.copies)
        return Outcome(
            found,
            self._cuts,
            self._kills,
            watch.seconds,
            self._source.came_back,
            self._source.forgets_deliveries,
        )

    def _publishers(self, address: tuple[str, str]) -> list[Publisher]:
        count, rate = self._size.messages // SOURCES, self._size.rate / SOURCES
        return [
            Publisher(f"source-{number}", self._source.port, address, count=count, rate=rate)
            for number in range(SOURCES)
        ]

    def _disturb(self, proxy: CutProxy, collector: Collector) -> None:
        for share, disturb in (
            (CUT_AT, partial(self._cut, proxy)),
            (SOURCE_AT, partial(self._kill, self._source)),
            (DESTINATION_AT, partial(self._kill, self._destination)),
            (RESET_AT, partial(self._reset, proxy)),
        ):
            arrived = int(share * self._size.messages)
            self._watch.wait(f"{arrived:,} messages", lambda count=arrived: len(collector.seen) >= count)
            disturb()

    def _cut(self, proxy: CutProxy) -> None:
        """Pass nothing for a while, as when a network is gone."""
        self._watch.say(f"the network is gone for {self._size.cut_s:g} s")
        proxy.silence()
        self._cuts += 1
        self._watch.sleep(self._size.cut_s)
        proxy.resume()

    def _reset(self, proxy: CutProxy) -> None:
        self._watch.say("the connections are reset")
        proxy.cut()
        self._cuts += 1

    def _kill(self, end: LinkEnd) -> None:
        role = "source" if end is self._source else "destination"
        self._watch.say(f"the {role} is killed: {end.kind}")
        end.kill()
        self._kills += 1
        end.start()
