"""Shovels between brokers whose network and power fail, in one thread, driven by seeds.

A shovel moves messages from a queue of one broker to a queue of another. It runs on a third one, or on either
end, which it then reaches without a network. Connections are cut and delayed, brokers lose power, alarms hold
the destination back, and the shovel is restarted and changed.

In the end every confirmed message is at the destination, in order, or still in the source, and without a
fault once. A shovel for a number of messages moves that many and leaves the rest; its parameter is then
deleted.
"""

import random

import pytest
from tests.seeds import SEEDS
from tests.sim.relay_network import Network
from tests.sim.relay_users import Operator, Publisher, take_all
from tests.sim.segments import make_small

from warren.metadata.commands import SetParameter
from warren.metadata.shovel_definition import NEVER, QUEUE_LENGTH, SHOVEL
from warren.wire import methods

STEPS = 120
SOURCE, DESTINATION = "from", "to"
HEALED_MS_MAX = 120_000
# The site of the shovel, beside the source "a" and the destination "b".
OWNERS = "cab"
# How many messages it moves.
DELETE_AFTER: tuple[str | int, ...] = (NEVER, NEVER, QUEUE_LENGTH, 12)
# Messages in the source before the shovel begins, if it moves a number of them.
BEFORE = 8
# Weights of the faults, of which each seed has one row: none, cuts, crashes, all.
FAULTS = (
    {},
    {"cut": 3, "refuse": 1, "hold": 2},
    {"crash": 2, "alarm": 2},
    {"cut": 2, "refuse": 1, "hold": 2, "crash": 1, "alarm": 1},
)


class Simulation:
    """The source, the destination, the shovel, and what was published."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.owner = OWNERS[seed % len(OWNERS)]
        self.faults = FAULTS[seed // len(OWNERS) % len(FAULTS)]
        self.delete_after = self.chance.choice(DELETE_AFTER)
        self.network = Network("abc", self.chance)
        self.publisher = Publisher(self.network.sites["a"])
        # How often the brokers have crashed, by name, while the shovel existed.
        self.crashes = dict.fromkeys("abc", 0)
        self.alarm_count = 0
        # How often the parameter was set, each time of which the shovel begins anew.
        self.put_count = 0
        for name, queue in (("a", SOURCE), ("b", DESTINATION)):
            Operator(self.network.sites[name]).ask(methods.QueueDeclare(queue=queue, durable=True))
        self.network.flow()
        if self.delete_after != NEVER:
            for _ in range(BEFORE):
                self.publisher.publish("", SOURCE)
        self.network.flow()
        self.put()
        self.network.flow()

    # --- what the users do --------------------------------------------------------------------------

    def uri(self, name: str) -> str:
        return "amqp://" if name == self.owner else f"amqp://{name}"

    def put(self) -> None:
        """Set the parameter of the shovel."""
        value = {
            "src-uri": self.uri("a"),
            "src-queue": SOURCE,
            "dest-uri": self.uri("b"),
            "dest-queue": DESTINATION,
            "src-prefetch-count": self.chance.choice((1, 3, 1000)),
            "reconnect-delay": self.chance.choice((1, 5)),
            "src-delete-after": self.delete_after,
        }
        self.put_count += 1
        parameter = SetParameter(vhost="/", component=SHOVEL, name="s", value=value)
        self.network.sites[self.owner].node.propose(parameter)

    def change(self) -> None:
        """Set the parameter again, with other settings, if the shovel is there."""
        node = self.network.sites[self.owner].running
        if node is not None and self.is_there() and self.delete_after == NEVER:
            self.put()

    def is_there(self) -> bool:
        """True if the shovel exists."""
        node = self.network.sites[self.owner].running
        return node is None or (SHOVEL, "s") in node.vhost.parameters.by_key

    def publish(self) -> None:
        if self.network.sites["a"].running is not None:
            for _ in range(self.chance.choice((1, 5, 30))):
                self.publisher.publish("", SOURCE)

    # --- the run ------------------------------------------------------------------------------------

    def step(self) -> None:
        network = self.network
        for _ in range(self.chance.randrange(1, 20)):
            if not network.pass_bytes() or self.chance.random() < 0.2:
                network.write()
            network.run_turns()
        network.pass_time(self.chance.choice((0, 10, 100, 500)))
        self.publisher.poll()
        weights = {"nothing": 20, "flow": 5, "publish": 15, "restart": 1, "change": 1} | self.faults
        (event,) = self.chance.choices(list(weights), list(weights.values()))
        self.happen(event)

    def happen(self, event: str) -> None:
        network, chance = self.network, self.chance
        if event == "publish":
            self.publish()
        elif event == "flow":
            network.flow()
        elif event in ("restart", "change") and not network.unnoticed_count:
            self.change() if event == "change" else self.restart()
        elif event == "alarm" and network.sites["b"].running is not None:
            self.alarm_count += 1
            network.sites["b"].node.server.block(chance.choice(("", "low on memory")))
        elif event == "cut" and network.remote_wires():
            network.cut(chance.choice(network.remote_wires()))
        elif event == "hold" and network.wires:
            chance.choice(network.wires).held_until = network.clock.now + chance.randrange(3_000)
        elif event == "refuse":
            network.refused_until[chance.choice("ab")] = network.clock.now + 3_000
        elif event == "crash":
            name = chance.choice("abc")
            self.crashes[name] += self.is_there()
            network.crash(name)

    def restart(self) -> None:
        node = self.network.sites[self.owner].running
        if node is not None:
            for link in node.links.all():
                node.links.restart(link.key)

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
        if self.delete_after != NEVER:
            # So that there are enough.
            self.lift_alarm()
            self.network.settle(lambda: True, HEALED_MS_MAX, lambda: "")
            for _ in range(int(self.delete_after if self.delete_after != QUEUE_LENGTH else 0)):
                self.publisher.publish("", SOURCE)
        self.settle()
        self.check()
        self.network.check_reports()

    def lift_alarm(self) -> None:
        """End whatever holds messages up at the target, which would never be quiet."""
        self.network.heal()
        if self.network.sites["b"].running is not None:
            self.network.sites["b"].node.server.block("")

    def settle(self) -> None:
        """Let everything arrive that can."""
        self.lift_alarm()

        def is_done() -> bool:
            self.publisher.poll()
            if self.delete_after != NEVER:
                return not self.is_there() and not self.network.wires
            nodes = self.network.running()
            return self.depth("a", SOURCE) == 0 and all(node.is_forwarding() for node in nodes)

        self.network.settle(is_done, HEALED_MS_MAX, self.statuses)

    def depth(self, name: str, queue: str) -> int:
        return self.network.sites[name].node.depth(queue)

    def statuses(self) -> list[object]:
        return [link.status() for node in self.network.running() for link in node.links.all()]

    # --- what is verified ---------------------------------------------------------------------------

    def check(self) -> None:
        """Every confirmed message is at one of the ends, those at the destination in order."""
        arrived = [received.body for received in take_all(self.network.sites["b"].node, DESTINATION)]
        left = [received.body for received in take_all(self.network.sites["a"].node, SOURCE)]
        sent = [publication.body for publication in self.publisher.sent]
        for publication in self.publisher.sent:
            assert not publication.is_confirmed or publication.body in {*arrived, *left}
        moved = list(dict.fromkeys(arrived))
        for bodies in (moved, left):
            assert bodies == sorted(bodies, key=sent.index)
        # A change or a restart waits for confirms only so long, and an alarm holds them back.
        if not (self.network.cut_count or self.network.crash_count or self.alarm_count):
            assert len(moved) == len(arrived)
            assert not {*arrived} & {*left}
        if self.delete_after == NEVER:
            assert left == []
        else:
            self.check_count(arrived, moved)

    def check_count(self, arrived: list[bytes], moved: list[bytes]) -> None:
        """The number of messages that were moved is what was asked for; `arrived` has duplicates.

        The count begins anew when the owner of the shovel crashes. What the source had settled it has again
        after a crash, and then the shovel moves it again. The source may have messages that were moved, if
        their acknowledgements were lost with a connection; each of their copies counts.
        """
        wanted = self.delete_after
        if self.delete_after == QUEUE_LENGTH:
            assert len(moved) >= BEFORE
            return
        assert isinstance(wanted, int)
        if not self.crashes[self.owner]:
            assert len(moved) <= wanted
            if not self.crashes["a"]:
                assert len(arrived) >= wanted
                if not (self.network.cut_count or self.network.crash_count):
                    assert len(moved) == wanted
        assert len(moved) <= wanted * (1 + self.crashes[self.owner])


@pytest.mark.seeds(SEEDS // 2)
def test_a_shovel_loses_nothing_and_moves_as_many_messages_as_it_was_asked_for(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, 8_192)
    Simulation(seed).run()
