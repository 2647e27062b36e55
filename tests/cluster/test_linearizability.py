"""What clients of live nodes are told of names is linearizable, while nodes and their network fail.

Clients of three nodes declare, delete and look for a few durable queues and exchanges. Declarations,
deletions and 404s are in the history; what is found may be a moment old, so that it is not. Nor is that the
home of a queue is down, which changes nothing. A node that is cut off answers a declaration of what it has,
also if the others have agreed before that it is gone: what is declared while something fails may have
happened or not.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.adapters.utils.connection_workflow import AMQPConnectorException
from pika.exceptions import AMQPError, ChannelClosedByBroker
from tests.cluster.counted import connected
from tests.cluster.warren_cluster import WarrenCluster
from tests.long_params import long_params
from tests.sim.test_cluster_channels import DECLARE, DELETE, DONE, LOOK_UP, MISSING, Access, Existence

from warren.simulation.linearizability import ClientOperation, HistoryVerdict, check, partitioned

CLIENTS_PER_NODE = 2
NAMES = ("one", "two")
PAUSE_S = 0.03
# The kinds of answers that are counted, and how many of each there are before and behind each fault.
KINDS = (MISSING, DECLARE, DELETE)
ANSWERS = 25
HOME_IS_DOWN = "is down or inaccessible"
Operation = ClientOperation[Access, str]

OPERATIONS: dict[tuple[str, str], Callable[[BlockingChannel, str], object]] = {
    ("queue", DECLARE): lambda channel, name: channel.queue_declare(name, durable=True),
    ("queue", DELETE): lambda channel, name: channel.queue_delete(name),
    ("queue", LOOK_UP): lambda channel, name: channel.queue_declare(name, passive=True),
    ("exchange", DECLARE): lambda channel, name: channel.exchange_declare(name, "fanout", durable=True),
    ("exchange", DELETE): lambda channel, name: channel.exchange_delete(name),
    ("exchange", LOOK_UP): lambda channel, name: channel.exchange_declare(name, passive=True),
}


class NameClient(threading.Thread):
    """A client of one node, which makes one request behind the other."""

    def __init__(self, port: int, seed: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._chance = random.Random(seed)
        self._is_ending = threading.Event()
        self.history: list[Operation] = []
        self.answers: Counter[str] = Counter()
        # Refusals that no request of these can have.
        self.surprises: list[tuple[Access, Exception]] = []

    def end(self) -> None:
        """Stop, and wait for the thread."""
        self._is_ending.set()
        self.join(60)
        assert not self.is_alive()

    def run(self) -> None:
        while not self._is_ending.is_set():
            try:
                connection = connected(self._port)
            except (AMQPError, AMQPConnectorException, OSError):
                # Its node is down, or in the minority.
                self._is_ending.wait(0.2)
                continue
            self._use(connection)

    def _use(self, connection: pika.BlockingConnection) -> None:
        """Make requests until the connection is lost."""
        try:
            channel = connection.channel()
            while not self._is_ending.wait(self._chance.random() * PAUSE_S):
                kind = self._chance.choice(("queue", "exchange"))
                how = self._chance.choice((DECLARE, DELETE, LOOK_UP, LOOK_UP))
                answer = self._request(channel, (kind, self._chance.choice(NAMES), how))
                self.answers[answer] += 1
                if not channel.is_open:
                    channel = connection.channel()
            connection.close()
        except (AMQPError, OSError):
            self.answers["lost"] += 1

    def _request(self, channel: BlockingChannel, access: Access) -> str:
        """Make one request, note what it was told, and return that."""
        kind, name, how = access
        called = time.monotonic_ns()
        try:
            OPERATIONS[kind, how](channel, name)
        except ChannelClosedByBroker as closed:
            if closed.reply_code == 404 and HOME_IS_DOWN in closed.reply_text:
                return HOME_IS_DOWN
            if closed.reply_code != 404 or how != LOOK_UP:
                self.surprises.append((access, closed))
            self._note(access, MISSING, called)
            return MISSING
        except (AMQPError, OSError):
            if how != LOOK_UP:
                self.history.append(ClientOperation(access, None, called, None))
            raise
        if how != LOOK_UP:
            self._note(access, DONE, called)
        return how

    def _note(self, access: Access, answer: str, called: int) -> None:
        self.history.append(ClientOperation(access, answer, called, time.monotonic_ns()))


class Faults:
    """What fails, one after the other, with the times of that."""

    def __init__(self, cluster: WarrenCluster, clients: Sequence[NameClient]) -> None:
        self.cluster = cluster
        self.clients = clients
        self.windows: list[tuple[int, int]] = []

    def during(self, begin: Callable[[], object], seconds: float, end: Callable[[], object]) -> None:
        """Let something fail for some time, until all is as before, and clients are told as much again."""
        since, before = time.monotonic_ns(), self.answers()
        begin()
        time.sleep(seconds)
        end()
        self.cluster.wait(self.cluster.is_whole, "all nodes see one another", 60)
        self.windows.append((since, time.monotonic_ns()))
        self.wait_answers({how: self.answers()[how] - before[how] for how in KINDS})

    def answers(self) -> dict[str, int]:
        """How many answers of each kind all clients have got so far."""
        return {how: sum(client.answers[how] for client in self.clients) for how in KINDS}

    def wait_answers(self, more: Mapping[str, int] = {}) -> None:
        """Wait until all clients together got further answers of each kind, ANSWERS or `more`."""
        before = self.answers()
        self.cluster.wait(
            lambda: all(self.answers()[how] - before[how] >= max(ANSWERS, more.get(how, 0)) for how in KINDS),
            "answers",
            60,
        )


def cut(faults: Faults) -> None:
    """A pair of nodes, then each node from both others."""
    cluster = faults.cluster
    faults.during(lambda: cluster.cut("a", "b"), 2, cluster.mend)
    for name in cluster.nodes:
        others = [other for other in cluster.nodes if other != name]
        faults.during(
            lambda name=name, others=others: [cluster.cut(name, one) for one in others], 3, cluster.mend
        )


def killed(faults: Faults) -> None:
    for name in faults.cluster.nodes:
        faults.during(
            lambda name=name: faults.cluster.kill(name), 1, lambda name=name: faults.cluster.start(name)
        )


def paused(faults: Faults) -> None:
    for name in faults.cluster.nodes:
        faults.during(
            lambda name=name: faults.cluster.pause(name), 3, lambda name=name: faults.cluster.resume(name)
        )


def silenced(faults: Faults) -> None:
    """All that one node sends, and then all that it is sent."""
    cluster = faults.cluster
    for name in ("a", "c"):
        others = [other for other in cluster.nodes if other != name]
        for pairs in ([(name, one) for one in others], [(one, name) for one in others]):
            faults.during(
                lambda pairs=pairs: [cluster.proxies.silence(*pair) for pair in pairs], 3, cluster.mend
            )


def without_doubt(history: list[Operation], windows: list[tuple[int, int]]) -> list[Operation]:
    """`history`, in which a declaration while something failed may have happened or not."""

    def is_doubtful(one: Operation) -> bool:
        return one.returned is not None and any(
            one.call <= until and since <= one.returned for since, until in windows
        )

    return [
        ClientOperation(one.input, None, one.call, None)
        if one.input[2] == DECLARE and is_doubtful(one)
        else one
        for one in history
    ]


def verdicts(history: list[Operation]) -> dict[object, HistoryVerdict]:
    """The verdict for each name."""
    parts = partitioned(history, lambda access: access[:2])
    return {name: check(part, Existence()).verdict for name, part in parts.items()}


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "fault", [cut, killed, *long_params(paused, silenced)], ids=lambda fault: fault.__name__
)
def test_what_clients_of_all_nodes_are_told_of_names_is_linearizable(
    fault: Callable[[Faults], None], cluster: WarrenCluster
) -> None:
    clients = [
        NameClient(node.amqp, seed)
        for seed, node in enumerate(list(cluster.nodes.values()) * CLIENTS_PER_NODE)
    ]
    faults = Faults(cluster, clients)
    for client in clients:
        client.start()
    faults.wait_answers()
    fault(faults)
    for client in clients:
        client.end()
    history = without_doubt([one for client in clients for one in client.history], faults.windows)
    assert [client.surprises for client in clients] == [[]] * len(clients)
    assert sum(one.returned is not None for one in history) > len(history) / 2
    assert set(verdicts(history).values()) == {HistoryVerdict.LINEARIZABLE}, (
        faults.answers(), faults.windows,
    )  # fmt: skip


def told(*operations: tuple[str, str | None, int, int | None]) -> list[Operation]:
    return [
        ClientOperation(("queue", "one", how), answer, call, returned)
        for how, answer, call, returned in operations
    ]


def test_a_name_that_is_missing_behind_its_declaration_is_noticed() -> None:
    history = told((DECLARE, DONE, 1, 2), (LOOK_UP, MISSING, 3, 4))
    assert set(verdicts(history).values()) == {HistoryVerdict.VIOLATED}
    # If it was declared while something failed, it may not be there.
    assert set(verdicts(without_doubt(history, [(2, 3)])).values()) == {HistoryVerdict.LINEARIZABLE}
    # A deletion whose connection was lost may have come between them.
    history += told((DELETE, None, 1, None))
    assert set(verdicts(history).values()) == {HistoryVerdict.LINEARIZABLE}
