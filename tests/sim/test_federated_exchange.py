"""Federated exchanges of two or three brokers whose network and power fail, in one thread, driven by seeds.

Bindings come and go, links are restarted, and upstreams are removed and added again, while connections are
cut and delayed and brokers lose power. The brokers are a pair, two that are upstreams of each other, or a
ring of three, with up to three hops.

A binding is covered at an upstream once it is bound there as far as the message has to go. From then on every
message that the upstream confirms arrives, in the order of its publisher, as long as the binding is not
removed. No message comes back, passes more brokers than allowed, or, without a fault, arrives twice. In the
end exactly the bindings that there should be are at the upstreams, with their hops, and after the upstreams
are removed nothing is left there.
"""

import random
from collections import Counter

import pytest
from tests.seeds import SEEDS
from tests.sim.relay_network import CUT_NOTICED_LATE_MS_MAX, Network
from tests.sim.relay_site import Node
from tests.sim.relay_users import Operator, Publication, Publisher, take_all
from tests.sim.segments import make_small
from tests.unit.session.client import ReceivedMethod

from warren.metadata.commands import ClearPolicy, SetParameter, SetPolicy
from warren.metadata.records import BindingRecord
from warren.wire import methods

STEPS = 120
KEYS = ("k0", "k1", "k2")
# Bound at all sites from the start, and never unbound.
STABLE_KEY = "k0"
EXCHANGE = "x"
QUEUE = "q"
# Another queue, to which the stable key is bound now and then.
OTHER_QUEUE = "other"
HEALED_MS_MAX = 120_000
# The sites, each with its upstreams.
LAYOUTS = (
    {"a": "", "b": "a"},
    {"a": "b", "b": "a"},
    {"a": "c", "b": "a", "c": "b"},
)
# Weights of the faults, of which each seed has one row: none, cuts, crashes, all.
FAULTS = (
    {},
    {"cut": 3, "refuse": 1, "hold": 2},
    {"crash": 2},
    {"cut": 2, "refuse": 1, "hold": 2, "crash": 1},
)
# Applies to a site without upstreams as well.
_POLICY = SetPolicy(vhost="/", name="p", pattern="^x$", definition={"federation-upstream-set": "all"})
# A message that has to arrive at a site: as long as nothing of this has changed there.
Promise = tuple[str, str, int]


class Simulation:
    """The sites, their bindings as their users have made them, and what was published."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.layout = LAYOUTS[seed % len(LAYOUTS)]
        self.faults = FAULTS[seed // len(LAYOUTS) % len(FAULTS)]
        self.max_hops = self.chance.randrange(1, 4)
        self.upstream_settings = {
            "reconnect-delay": self.chance.choice((1, 5)),
            "prefetch-count": self.chance.choice((1, 3, 1000)),
            "max-hops": self.max_hops,
            "bind-nowait": self.chance.random() < 0.2,
            "channel-use-mode": self.chance.choice(("multiple", "multiple", "single")),
        }
        self.network = Network("".join(self.layout), self.chance)
        self.publishers = {name: Publisher(site) for name, site in self.network.sites.items()}
        self.operators = {name: Operator(site) for name, site in self.network.sites.items()}
        # By site and key: whether the users have bound it, None while that is not known; and how often that,
        # or the upstream, was changed.
        self.bound: dict[tuple[str, str], bool | None] = {}
        self.changes: Counter[tuple[str, str]] = Counter()
        # Sites whose policy is being changed.
        self.toggling: dict[str, Node] = {}
        # Bindings that were covered at a publishing site, and what was promised since.
        self.covered: set[tuple[str, Promise]] = set()
        self.promised: list[tuple[Promise, Publication]] = []
        # Ends that learn late of a cut hold messages while others are delivered.
        self.is_ordered = self.chance.random() < 0.7
        if not self.is_ordered:
            self.network.noticed_ms_max = CUT_NOTICED_LATE_MS_MAX
        # How often the upstreams of a site are removed, or added again.
        self.toggle_weight = self.chance.choice((0, 0, 0, 1))
        for name in self.layout:
            self.declare(name)
        if self.chance.random() < 0.7:
            self.settle()

    # --- what the users do --------------------------------------------------------------------------

    def declare(self, name: str) -> None:
        """Declare the exchange and the queue of a site, and federate the exchange."""
        operator = self.operators[name]
        operator.ask(methods.ExchangeDeclare(exchange=EXCHANGE, type="topic", durable=True))
        for queue in (QUEUE, OTHER_QUEUE):
            operator.ask(methods.QueueDeclare(queue=queue, durable=True))
        operator.ask(methods.QueueBind(queue=QUEUE, exchange=EXCHANGE, routing_key=STABLE_KEY))
        self.network.flow()
        operator.poll()
        for key in KEYS:
            self.bound[name, key] = False
        self.bound[name, STABLE_KEY] = True
        for upstream in self.layout[name]:
            value = {"uri": f"amqp://{upstream}", **self.upstream_settings}
            parameter = SetParameter(vhost="/", component="federation-upstream", name=upstream, value=value)
            self.network.sites[name].node.propose(parameter)
        self.set_policy(name)
        self.network.flow()

    def set_policy(self, name: str) -> None:
        """Federate the exchange of a site with its upstreams."""
        self.network.sites[name].node.propose(_POLICY)

    def toggle(self) -> None:
        """Remove the upstreams of a site, or add them again; what was at the upstreams is lost."""
        name = self.chance.choice([name for name, upstreams in self.layout.items() if upstreams])
        node = self.network.sites[name].running
        if node is not None and name not in self.toggling:
            self.toggling[name] = node
            if node.vhost.policies.by_name:
                node.change(ClearPolicy(vhost="/", name="p"), lambda: self.toggled(name))
            else:
                node.change(_POLICY, lambda: self.toggled(name))

    def toggled(self, name: str) -> None:
        """The upstreams of a site were removed or added: whatever comes through it may be lost."""
        del self.toggling[name]
        self.changes.update(self.bound.keys())

    def bind(self) -> None:
        """Bind a key at a site, or unbind it."""
        name, key = self.chance.choice([each for each in self.bound if each[1] != STABLE_KEY])
        operator = self.operators[name]
        if operator.is_waiting or self.network.sites[name].running is None:
            return
        was_bound = self.bound[name, key]
        kind = methods.QueueUnbind if was_bound else methods.QueueBind
        if was_bound:
            self.changes[name, key] += 1
        self.bound[name, key] = None

        def answered(is_answered: bool) -> None:
            if is_answered:
                self.bound[name, key] = not was_bound
            else:
                self.changes[name, key] += 1

        operator.ask(kind(queue=QUEUE, exchange=EXCHANGE, routing_key=key), answered)

    def bind_other(self) -> None:
        """Bind the stable key to another queue as well, or unbind it there."""
        name = self.chance.choice(list(self.layout))
        node, operator = self.network.sites[name].running, self.operators[name]
        if node is not None and not operator.is_waiting:
            is_bound = self.has_binding(name, STABLE_KEY, OTHER_QUEUE)
            kind = methods.QueueUnbind if is_bound else methods.QueueBind
            operator.ask(kind(queue=OTHER_QUEUE, exchange=EXCHANGE, routing_key=STABLE_KEY))

    def publish(self) -> None:
        """Publish some messages at a site, and note where they have to arrive."""
        name = self.chance.choice(list(self.layout))
        if self.network.sites[name].running is None:
            return
        for _ in range(self.chance.randrange(1, 4)):
            key = self.chance.choice(KEYS)
            promises = self.promises(name, key)
            publication = self.publishers[name].publish(EXCHANGE, key)
            self.promised += [(promise, publication) for promise in promises]

    def promises(self, name: str, key: str) -> list[Promise]:
        """Where a message with `key` has to arrive that is published at `name` now."""
        found = []
        for path in self.paths_from(name):
            end = path[-1]
            promise = (end, key, self.changes[end, key])
            if self.bound[end, key] and ((name, promise) in self.covered or self.is_covered(path, key)):
                self.covered.add((name, promise))
                found.append(promise)
        return found

    # --- where messages and bindings travel ---------------------------------------------------------

    def paths_from(self, name: str) -> list[str]:
        """The paths that messages from the site `name` take, each with its end, as far as the hops go."""
        found, path = [], name
        while len(path) <= self.max_hops:
            downstream = [site for site, upstreams in self.layout.items() if path[-1] in upstreams]
            if not downstream or downstream[0] in path:
                break
            path += downstream[0]
            found.append(path)
        return found

    def is_covered(self, path: str, key: str) -> bool:
        """True if the binding of the last site of `path` is bound at all others, and its links run.

        Nothing may be under way: a binding that was removed and made again is removed at the upstream first.
        """
        if not self.network.is_quiet():
            return False
        for place in range(1, len(path)):
            upstream, here = (self.network.sites[name].running for name in (path[place - 1], path[place]))
            if upstream is None or here is None or path[place] in self.toggling:
                return False
            if not self.is_bound_for(upstream, key, path[place:]):
                return False
            links = here.links.all()
            if not links or not all(link.status().connected_at for link in links):
                return False
        return True

    @staticmethod
    def is_bound_for(node: Node, key: str, path: str) -> bool:
        """True if `key` is bound at `node` for the last site of `path`, through the others."""
        return any(binding[:2] == (key, path) for binding in propagated(node).values())

    def expected_bindings(self, name: str) -> Counter[tuple[str, str, int]]:
        """The bindings that the downstreams of `name` have to have made there: key, path and hops."""
        return Counter(
            (key, path[1:], self.max_hops - len(path) + 2)
            for path in self.paths_from(name)
            for key in KEYS
            if self.bound[path[-1], key]
        )

    # --- the run ------------------------------------------------------------------------------------

    def step(self) -> None:
        network = self.network
        for _ in range(self.chance.randrange(1, 20)):
            if not network.pass_bytes() or self.chance.random() < 0.2:
                network.write()
            network.run_turns()
        network.pass_time(self.chance.choice((0, 10, 100, 500)))
        self.poll()
        weights = {
            "nothing": 10,
            "flow": 20,
            "publish": 25,
            "bind": 8,
            "bind_other": 2,
            "restart": 1,
        } | self.faults
        weights["toggle"] = self.toggle_weight
        (event,) = self.chance.choices(list(weights), list(weights.values()))
        self.happen(event)

    def happen(self, event: str) -> None:
        network, chance = self.network, self.chance
        if event in ("publish", "bind", "bind_other", "toggle"):
            getattr(self, event)()
        elif event == "flow":
            network.flow()
        elif event == "restart" and not network.unnoticed_count:
            for node in network.running():
                for link in node.links.all():
                    node.links.restart(link.key)
        elif event == "cut" and network.remote_wires():
            network.cut(chance.choice(network.remote_wires()))
        elif event == "hold" and network.wires:
            chance.choice(network.wires).held_until = network.clock.now + chance.randrange(3_000)
        elif event == "refuse":
            network.refused_until[chance.choice(list(self.layout))] = network.clock.now + 3_000
        elif event == "crash":
            network.crash(chance.choice(list(self.layout)))

    def poll(self) -> None:
        """Let the users receive, and note what a crash has interrupted."""
        for user in (*self.publishers.values(), *self.operators.values()):
            user.poll()
        for name, node in list(self.toggling.items()):
            if node.is_over:
                self.toggled(name)

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
        self.finish()

    def finish(self) -> None:
        """End the faults, and verify everything."""
        self.network.settle(lambda: True, HEALED_MS_MAX, self.on_the_way)
        for name in self.layout:
            self.set_policy(name)
        self.settle()
        self.check_bindings()
        for name in self.layout:
            self.check_messages(name)
        self.check_removal()
        self.network.check_reports()

    def settle(self) -> None:
        """Let everything arrive that can."""

        def is_done() -> bool:
            self.poll()
            for (name, key), is_bound in self.bound.items():
                if is_bound is None and not self.operators[name].is_waiting:
                    self.bound[name, key] = self.has_binding(name, key)
            return not self.on_the_way()

        self.network.settle(is_done, HEALED_MS_MAX, self.on_the_way)

    def has_binding(self, name: str, key: str, queue: str = QUEUE) -> bool:
        bindings = self.network.sites[name].node.vhost.topology.bindings_from(EXCHANGE)
        return any(binding.destination == queue and binding.routing_key == key for binding in bindings)

    def on_the_way(self) -> list[object]:
        """What has not arrived, or is not bound yet."""
        left: list[object] = []
        for node in self.network.running():
            left += [link.status() for link in node.links.all()] if not node.is_forwarding() else []
            left += [name for name in federation_queues(node) if node.depth(name)]
            expected = self.expected_bindings(node.site.node_name)
            found = Counter(propagated(node).values())
            if found != expected:
                left.append((node.site.node_name, found, expected))
        return left

    # --- what is verified ---------------------------------------------------------------------------

    def check_bindings(self) -> None:
        """Each link has one queue and one internal exchange at its upstream, with the bindings of now."""
        for name in self.layout:
            node = self.network.sites[name].node
            downstream = [site for site, upstreams in self.layout.items() if name in upstreams]
            assert len(federation_queues(node)) == len(internal_exchanges(node)) == len(downstream)
            assert Counter(propagated(node).values()) == self.expected_bindings(name)

    def check_messages(self, name: str) -> None:
        """All that was promised has arrived once, in order, and nothing else has."""
        arrived = take_all(self.network.sites[name].node, QUEUE)
        bodies = [received.body for received in arrived]
        promised = set()
        for (end, key, change), publication in self.promised:
            if end == name and change == self.changes[name, key] and publication.is_confirmed:
                assert publication.body in bodies, f"{publication} has not arrived at {name}"
                promised.add(publication.body)
        for origin in self.layout:
            own = [body for body in bodies if body.startswith(origin.encode())]
            # A message that was not promised can arrive again when there is a binding for it.
            first = [int(body.split()[1]) for body in dict.fromkeys(own) if body in promised]
            assert not self.is_ordered or first == sorted(first), f"from {origin} at {name}"
            is_exact = origin == name or not (self.network.cut_count or self.network.crash_count)
            assert not is_exact or len({*own}) == len(own), f"duplicates from {origin} at {name}: {own}"
        for received in arrived:
            self.check_path(name, received)

    def check_path(self, name: str, received: ReceivedMethod) -> None:
        """The message has passed the sites that it had to pass, and says so."""
        assert received.properties is not None
        origin = received.body.decode()[0]
        path = next((path for path in self.paths_from(origin) if path[-1] == name), origin)
        assert path[-1] == name, f"{received.body!r} must not be at {name}"
        passed = (received.properties.headers or {}).get("x-received-from", [])
        assert isinstance(passed, list)
        assert [entry["cluster-name"] for entry in passed] == list(path[-2::-1])

    def check_removal(self) -> None:
        """Nothing is left at the upstreams when the last policy is gone."""
        for name, upstreams in self.layout.items():
            if upstreams:
                self.network.sites[name].node.propose(ClearPolicy(vhost="/", name="p"))
        left: list[object] = []

        def is_done() -> bool:
            left[:] = [
                (federation_queues(node), internal_exchanges(node), propagated(node), len(self.network.wires))
                for node in self.network.running()
            ]
            return left == [([], [], {}, 0)] * len(left)

        self.network.settle(is_done, HEALED_MS_MAX, lambda: left)


def federation_queues(node: Node) -> list[str]:
    """The queues that links have declared at `node`."""
    return [name for name in node.vhost.topology.queues if name.startswith("federation: ")]


def internal_exchanges(node: Node) -> list[str]:
    """The exchanges that links have declared at `node`."""
    return [name for name in node.vhost.topology.exchanges if name.startswith("federation: ")]


def propagated(node: Node) -> dict[BindingRecord, tuple[str, str, int]]:
    """The bindings that links have made at `node`: key, the sites that they come through, and hops."""
    found = {}
    for binding in node.vhost.topology.bindings_from(EXCHANGE):
        if binding.destination.startswith("federation: "):
            entries = binding.arguments["x-bound-from"]
            assert isinstance(entries, list)
            path = "".join(entry["cluster-name"] for entry in entries)
            found[binding] = binding.routing_key, path, entries[0]["hops"]
    return found


@pytest.mark.seeds(SEEDS // 2)
def test_messages_of_covered_bindings_arrive_in_order_and_bindings_converge(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, 8_192)
    Simulation(seed).run()
