"""Clients of several nodes declare, delete and look for the same names over AMQP: what they are told agrees.

The nodes have real metadata, journals and links, over a network that delays and is interrupted. Declarations,
deletions and 404s are linearizable. What is found may be a moment old, so that it is not in the history. A
node that is cut off answers a declaration of what it has, also if the others have agreed before that it is
gone. All names are durable: what is not ends with its node, when the others take that for down.
"""

import random

import pytest
from tests.clock import ManualClock, turn_of
from tests.seeds import SEEDS
from tests.sim.simulated_cluster import ClusterNode
from tests.sim.test_cluster import formed, is_settled
from tests.unit.session.client import Client, OpenGate, call, publication

from warren.errors import AmqpError
from warren.metadata.commands import PutUser, Reply, SetPermissions
from warren.session.handshake import HandshakeSettings
from warren.session.server import Server, ServerDependencies, SessionSettings
from warren.session.vhost_services import VhostDependencies, VhostServices
from warren.simulation.linearizability import ClientOperation, HistoryVerdict, check, partitioned
from warren.wire import methods
from warren.wire.method import Method

STEPS = 400
# Steps in which requests come one by one, each at once behind the answer to the one before, or many together.
PHASE = 50
NAMES = ("one",)
KINDS = ("queue", "exchange")
DECLARE, DELETE, LOOK_UP = "declare", "delete", "look up"
DONE, MISSING = "done", "missing"
# What is done to a name: its kind, itself, and how.
Access = tuple[str, str, str]

DECLARATIONS = {
    "queue": lambda name: methods.QueueDeclare(queue=name, durable=True),
    "exchange": lambda name: methods.ExchangeDeclare(exchange=name, type="fanout", durable=True),
}
DELETIONS = {
    "queue": lambda name: methods.QueueDelete(queue=name),
    "exchange": lambda name: methods.ExchangeDelete(exchange=name),
}
LOOK_UPS = {
    "queue": (
        lambda name: methods.QueueDeclare(queue=name, passive=True),
        lambda name: methods.BasicGet(queue=name),
        lambda name: methods.QueuePurge(queue=name),
        lambda name: methods.BasicConsume(queue=name),
        lambda name: methods.QueueBind(queue=name, exchange="amq.direct"),
    ),
    "exchange": (
        lambda name: methods.ExchangeDeclare(exchange=name, type="fanout", passive=True),
        lambda name: methods.ExchangeBind(destination="amq.fanout", source=name),
        lambda name: methods.ExchangeBind(destination=name, source="amq.fanout"),
        # A publish, with what is answered behind it.
        lambda name: publication("k", b"body", exchange=name) + call(methods.BasicQos()),
    ),
}


class Existence:
    """What a name does if requests come one by one: whether it exists."""

    def begin(self) -> bool:
        return False

    def step(self, state: bool, input: Access, /) -> tuple[bool, str]:
        _, _, how = input
        if how == LOOK_UP:
            return state, DONE if state else MISSING
        return how == DECLARE, DONE


class Site:
    """The virtual host of one node, and what its clients need."""

    def __init__(self, node: ClusterNode, chance: random.Random) -> None:
        self.node = node
        turn = turn_of(node.now)
        self.clock = ManualClock()
        self.server = Server(
            OpenGate(),  # type: ignore[arg-type]
            SessionSettings(handshake=HandshakeSettings(server_properties={})),
            ServerDependencies(
                random_bytes=chance.randbytes, later=node.turns.append, turn=turn, report=self._report,
                node_name=node.name,
            ),
        )  # fmt: skip
        self.services = VhostServices.open(
            "/",
            node.metadata,
            node.journal,
            VhostDependencies(
                random_bytes=chance.randbytes, later=node.turns.append, after=lambda _ms, _action: None,
                turn=turn, node_name=node.name,
            ),
        )  # fmt: skip
        for _ in self.services.recover({}):
            pass
        self.server.vhost_services["/"] = self.services

    def names(self, kind: str) -> set[str]:
        vhost = self.services.vhost
        found = vhost.queues if kind == "queue" else vhost.router.exchanges
        return {name for name in NAMES if name in found}

    def _report(self, text: str) -> None:
        raise AssertionError(text)


class User:
    """One client, which makes a request when the one before is answered."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.access: Access | None = None
        self.called = 0
        self.connect()

    def connect(self) -> None:
        self.client = Client(self.site)  # type: ignore[arg-type]
        self.client.open(0, {})
        self.client.hear()

    def request(self, access: Access, data: bytes | Method, moment: int) -> None:
        self.access, self.called = access, moment
        self.client.send(data if isinstance(data, bytes) else call(data))

    def answer(self) -> str | None:
        """The answer to the request, once it is there; empty if nobody knows what became of it."""
        for received in self.client.hear():
            method = received.method
            if isinstance(method, methods.ConnectionClose):
                assert "metadata store operation timed out" in method.reply_text
                self.connect()
                return ""
            if isinstance(method, methods.ChannelClose):
                assert method.reply_code == 404, method.reply_text
                self.client.ask(methods.ChannelCloseOk(), methods.ChannelOpen())
                return MISSING
            return DONE
        return None


class Clients:
    """All clients of a cluster, and what they were told."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.cluster, nodes = formed(seed)
        replies: list[Reply | AmqpError] = []
        nodes[0].propose(PutUser(name="guest", password_hash=b"", hashing_algorithm=""), replies)
        nodes[0].propose(
            SetPermissions(user="guest", vhost="/", configure=".*", write=".*", read=".*"), replies
        )
        assert self.cluster.run(lambda: len(replies) == 2 and is_settled(self.cluster, len(nodes)))
        self.sites = [Site(node, self.chance) for node in nodes]
        self.users = [User(site) for site in self.sites for _ in range(2)]
        self.history: list[ClientOperation[Access, str]] = []
        self.moment = 0
        self.missing_count = 0
        # True from a cut until every node knows a leader.
        self.is_interrupted = False

    def step(self, passed: int, *, is_one_by_one: bool) -> None:
        """Let some time pass, and some clients make requests."""
        if is_one_by_one:
            if not any(user.access for user in self.users):
                self._request(self.chance.choice(self.users))
        else:
            for user in self.users:
                if user.access is None and self.chance.random() < 0.3:
                    self._request(user)
        self.cluster.network.advance(passed)
        for site in self.sites:
            site.node.work()
        self.listen()

    def _request(self, user: User) -> None:
        kind, name = self.chance.choice(KINDS), self.chance.choice(NAMES)
        how = self.chance.choices((DECLARE, DELETE, LOOK_UP), (3, 3, 4))[0]
        if how == LOOK_UP:
            data = self.chance.choice(LOOK_UPS[kind])(name)
        else:
            data = (DECLARATIONS if how == DECLARE else DELETIONS)[kind](name)
        user.request((kind, name, how), data, self._next())

    def listen(self) -> None:
        """Take the answers that are there."""
        for user in self.users:
            if user.access is None:
                continue
            answer = user.answer()
            if answer is None:
                continue
            access, user.access = user.access, None
            if not answer or (self.is_interrupted and access[2] == DECLARE):
                # Nobody knows whether it has had an effect.
                self.history.append(ClientOperation(access, None, user.called, None))
            elif access[2] != LOOK_UP or answer == MISSING:
                self.missing_count += answer == MISSING
                self.history.append(ClientOperation(access, answer, user.called, self._next()))

    def interrupt(self, duration: int) -> None:
        """Let nothing pass for some time; then the nodes elect a leader again, during which clients wait."""
        self.cluster.network.part(duration)
        ends_at = self.cluster.network.time + duration

        def is_over() -> bool:
            self.listen()
            return self.cluster.network.time > ends_at and all(
                site.node.journal.group.leader[1] for site in self.sites
            )

        self.is_interrupted = True
        assert self.cluster.run(is_over)
        self.is_interrupted = False

    def settle(self) -> bool:
        """Let everything be answered; return whether all nodes agree."""

        def is_over() -> bool:
            self.listen()
            return not any(user.access for user in self.users) and is_settled(self.cluster, len(self.sites))

        return self.cluster.run(is_over)

    def _next(self) -> int:
        self.moment += 1
        return self.moment


def played(seed: int) -> Clients:
    """Clients that have made their requests, and have got all answers."""
    clients = Clients(seed)
    for number in range(STEPS):
        is_one_by_one = number // PHASE % 2 == 0
        clients.step(clients.chance.choice([1, 2, 5]), is_one_by_one=is_one_by_one)
        if clients.chance.random() < 0.004:
            clients.interrupt(clients.chance.choice([300, 2_000, 15_000]))
    assert clients.settle()
    return clients


@pytest.mark.seeds(SEEDS // 10)
def test_what_clients_of_several_nodes_are_told_of_names_is_linearizable(seed: int) -> None:
    clients = played(seed)
    for kind in KINDS:
        first, *others = (site.names(kind) for site in clients.sites)
        assert all(one == first for one in others), kind
    parts = partitioned(clients.history, lambda access: access[:2])
    for name, part in parts.items():
        found = check(part, Existence())
        assert found.verdict is HistoryVerdict.LINEARIZABLE, f"{name}: {found} of {part}"


def test_clients_of_several_nodes_are_told_that_a_name_is_missing() -> None:
    """By chance a single run may have none, which proves nothing."""
    assert sum(played(seed).missing_count for seed in range(3)) >= 10
