"""Orders flow both ways at once between two brokers whose exchanges are federated with each other.

Both links are cut again and again. Each broker must have every message of both, and those that were published
at it exactly once: a message that came back would be a loop.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NamedTuple

from tests.integration.cut_proxy import CutProxy, cut_proxy
from tests.integration.federation import channel_at
from tests.links.brokers import LinkEnd
from tests.links.links import NAME, TO, federate, probe
from tests.links.proof import Outcome
from tests.links.traffic import PROBE, Collector, Publisher, ending, findings
from tests.links.watch import Watch


class Cuts(NamedTuple):
    """How many messages each broker publishes per second, for how long, and how often the links are cut."""

    rate: float
    seconds: float
    every_s: float
    silence_s: float
    seconds_max: float


SMALL_CUTS = Cuts(rate=300, seconds=8, every_s=1.5, silence_s=0.5, seconds_max=100)
SLOW_CUTS = Cuts(rate=25, seconds=8, every_s=1.5, silence_s=0.5, seconds_max=200)
FULL_CUTS = Cuts(rate=1_000, seconds=120, every_s=3, silence_s=1.5, seconds_max=600)


class BothWays:
    """Two brokers that run before and after it."""

    def __init__(self, ends: tuple[LinkEnd, LinkEnd], cuts: Cuts, say: Callable[[str], None]) -> None:
        self._ends = ends
        self._cuts = cuts
        self._watch = Watch(cuts.seconds_max, say)

    @property
    def messages(self) -> int:
        """How many messages each broker publishes."""
        return int(self._cuts.rate * self._cuts.seconds)

    def run(self) -> dict[str, Outcome]:
        """For each end what has become of the messages of the other one: see `Outcome.check`.

        Raises AssertionError if a message came back to where it was published.
        """
        watch = self._watch
        with ExitStack() as stack:
            proxies = [stack.enter_context(cut_proxy(end.port)) for end in self._ends]
            self._set_up(proxies)
            watch.collectors = [Collector(end.port, TO) for end in self._ends]
            stack.enter_context(ending(*watch.collectors))
            for end, collector in zip(self._ends, reversed(watch.collectors), strict=True):
                watch.wait("a link", lambda e=end, c=collector: probe(e) and (PROBE, e.port) in c.seen)
            watch.publishers = [
                Publisher(end.kind, end.port, (NAME, ""), count=self.messages, rate=self._cuts.rate)
                for end in self._ends
            ]
            stack.enter_context(ending(*watch.publishers))
            cuts = self._cut_until_published(proxies)
            watch.wait_for_all()
            for end, collector in zip(self._ends, watch.collectors, strict=True):
                # The queue of the link is empty, and that of the consumer has nothing more.
                watch.wait("the last copies", lambda e=end, c=collector: len(c.copies) == e.message_count())
            return dict(self._outcomes(cuts))

    def _set_up(self, proxies: list[CutProxy]) -> None:
        for end in self._ends:
            with channel_at(end.port) as channel:
                channel.exchange_declare(NAME, "fanout", durable=True)
                channel.queue_declare(TO, durable=True)
                channel.queue_bind(TO, NAME)
        for upstream, downstream, proxy in zip(self._ends, reversed(self._ends), proxies, strict=True):
            federate(upstream, downstream, proxy, "exchanges")

    def _cut_until_published(self, proxies: list[CutProxy]) -> list[int]:
        """Cut the links by turns until everything is published; returns how often each was cut."""
        chance = random.Random(self.messages)
        watch, cuts = self._watch, [0, 0]
        while not all(each.is_done for each in watch.publishers):
            number = sum(cuts) % 2
            # Each of the two is cut every other time.
            watch.sleep(self._cuts.every_s * chance.uniform(0.25, 0.75))
            proxy = proxies[number]
            cuts[number] += 1
            if chance.random() < 0.5:
                proxy.cut()
                continue
            proxy.silence()
            watch.sleep(self._cuts.silence_s)
            proxy.resume()
        watch.say(f"cut {cuts[0]} and {cuts[1]} times")
        return cuts

    def _outcomes(self, cuts: list[int]) -> Iterator[tuple[str, Outcome]]:
        watch = self._watch
        for number, source in enumerate(watch.publishers):
            near, far = watch.collectors[number], watch.collectors[1 - number]
            at_home = findings([source], [copy for copy in near.copies if copy.source == source.source])
            assert (at_home.lost, at_home.duplicates) == (0, 0), f"came back to {source.source}: {at_home}"
            found = findings([source], [copy for copy in far.copies if copy.source == source.source])
            yield source.source, Outcome(found, cuts[number], 0, watch.seconds)
