"""Programs of pika, kombu and Celery have the addresses of three nodes; one is killed, and another drained.

No program is restarted: each goes to another node when its own is gone. Durable queues whose home is the
killed node wait until it returns.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from celery import Celery
from tests.cluster.counted import with_channel
from tests.cluster.warren_cluster import WarrenCluster, WarrenNode, warren_cluster
from tests.oracle.cluster.cluster_brokers import full_name
from tests.patience import patient

ROOT = Path(__file__).resolve().parents[2]
NODES = ("a", "b", "c")
END_S = patient(20)
RESULT_S = patient(30)
CONFIRMS_MIN = 10


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarrenCluster]:
    with warren_cluster(tmp_path_factory.mktemp("cluster")) as formed:
        yield formed


def uris(cluster: WarrenCluster, first: str) -> list[str]:
    """The addresses of all nodes for clients, beginning with `first`."""
    at = NODES.index(first)
    return [
        f"amqp://guest:guest@127.0.0.1:{cluster.nodes[name].amqp}/%2F" for name in NODES[at:] + NODES[:at]
    ]


class Program:
    """A process of a client, and what it has written."""

    def __init__(self, name: str, folder: Path, command: Sequence[str], **environment: str) -> None:
        self.name = name
        self._output = folder / f"{name}.out"
        self._errors = folder / f"{name}.err"
        search = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=folder, env=os.environ | {"PYTHONPATH": search, **environment},
                stdout=output, stderr=errors, start_new_session=True,
            )  # fmt: skip

    def lines(self) -> set[str]:
        """The complete lines of its output."""
        return set(self._output.read_text().split("\n")[:-1])

    def of(self, queue: str) -> set[str]:
        """The lines of one queue."""
        return {line for line in self.lines() if line.startswith(f"{queue} ")}

    def check_running(self) -> None:
        """It never ended."""
        assert self.process.poll() is None, f"{self.name} has ended: {self._errors.read_text()[-4000:]}"

    def end(self) -> None:
        """End it as an operator would, and what is left of its group."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def declare(cluster: WarrenCluster, home: str, queue: str) -> None:
    """Declare a durable queue with a home."""
    with_channel(cluster.nodes[home].amqp, lambda channel: channel.queue_declare(queue, durable=True))


def is_whole(cluster: WarrenCluster, node: WarrenNode) -> bool:
    """Whether `node` says that all are up."""
    return all(cluster.sees(node, other) for other in cluster.nodes.values())


@contextlib.contextmanager
def ended(programs: Sequence[Program]) -> Iterator[None]:
    """End all `programs` in the end."""
    try:
        yield
    finally:
        for program in programs:
            program.end()


@contextlib.contextmanager
def drained(cluster: WarrenCluster, name: str) -> Iterator[None]:
    """Have a node in maintenance meanwhile."""
    done = cluster.control(name, "cluster", "drain")
    assert done.status == 0, done.lines
    yield
    done = cluster.control(name, "cluster", "revive")
    assert done.status == 0, done.lines


@pytest.mark.timeout(120)
def test_programs_of_pika_and_kombu_go_to_another_node(cluster: WarrenCluster, tmp_path: Path) -> None:
    queues = [f"on.{name}" for name in NODES]
    for name, queue in zip(NODES, queues, strict=True):
        declare(cluster, name, queue)

    def program(kind: str, first: str, *of: str) -> Program:
        command = ["tests.cluster.failover_programs", kind, ",".join(uris(cluster, first)), ",".join(of)]
        return Program(f"{kind}-{first}", tmp_path, command)

    publishers = [program("pika-publish", "b", *queues), program("kombu-publish", "c", *queues)]
    # None is at the home of its queue. One of each client is at the node that is killed or drained.
    consumers = {
        "on.a": program("kombu-consume", "b", "on.a"),
        "on.b": program("pika-consume", "c", "on.b"),
        "on.c": program("pika-consume", "b", "on.c"),
    }
    programs = [*publishers, *consumers.values()]

    def wait_progress(*expected: str) -> None:
        """Wait until each publisher has got further confirms of the `expected` queues, and so on."""
        watched = [(one, queue) for one in publishers for queue in expected]
        watched += [(consumers[queue], queue) for queue in expected]
        least = [len(one.of(queue)) + CONFIRMS_MIN for one, queue in watched]

        def is_done() -> bool:
            for one in programs:
                one.check_running()
            return all(
                len(one.of(queue)) >= count for (one, queue), count in zip(watched, least, strict=True)
            )

        cluster.wait(is_done, f"messages of {expected} are confirmed and received", 40)

    with ended(programs):
        wait_progress(*queues)
        cluster.kill("b")
        wait_progress("on.a", "on.c")
        cluster.start("b")
        wait_progress(*queues)
        with drained(cluster, "c"):
            wait_progress(*queues)
        for publisher in publishers:
            publisher.end()
        for queue, consumer in consumers.items():
            confirmed = {line for publisher in publishers for line in publisher.of(queue)}
            cluster.wait(
                lambda consumer=consumer, confirmed=confirmed: confirmed <= consumer.lines(),
                f"all that was confirmed of {queue} is received",
            )
            consumer.check_running()


def celery_program(
    cluster: WarrenCluster, folder: Path, first: str, *options: str, **environment: str
) -> Program:
    """A worker or a beat of Celery, or without `options` a producer, that begins with the node `first`."""
    celery = ["celery", "-A", "tests.cluster.celery_programs", *options, "-l", "info"]
    return Program(
        f"{options[0] if options else 'producer'}-{first}",
        folder,
        celery if options else ["tests.cluster.celery_programs"],
        FAILOVER_BROKERS=";".join(uris(cluster, first)),
        FAILOVER_NOTES=str(folder / "notes"),
        **environment,
    )


def worker_options(first: str) -> list[str]:
    """The options of a worker."""
    return ["worker", "-c", "1", "-n", f"{first}@{first}"]


@pytest.mark.timeout(150)
@pytest.mark.parametrize(("home", "retry"), [("a", "no"), ("b", "yes")], ids=["other", "home"])
def test_a_celery_application_goes_to_another_node(
    cluster: WarrenCluster, tmp_path: Path, home: str, retry: str
) -> None:
    with_channel(cluster.nodes[home].amqp, lambda channel: channel.queue_delete("tasks"))
    declare(cluster, home, "tasks")
    notes = tmp_path / "notes"
    notes.touch()
    environment = {"FAILOVER_CHANNEL_ERROR_RETRY": retry}
    producer = celery_program(cluster, tmp_path, "a", **environment)
    programs = [
        producer,
        celery_program(cluster, tmp_path, "b", *worker_options("b"), **environment),
        celery_program(cluster, tmp_path, "c", *worker_options("c"), **environment),
    ]

    def done() -> set[str]:
        return {line.removeprefix("task ") for line in notes.read_text().split("\n")[:-1]}

    def wait_progress() -> None:
        least = len(done()) + CONFIRMS_MIN

        def is_done() -> bool:
            for program in programs:
                program.check_running()
            return len(done()) >= least

        cluster.wait(is_done, "tasks are done", 40)

    with ended(programs):
        wait_progress()
        cluster.kill("b")
        first, killed = cluster.nodes["a"], cluster.nodes["b"]
        cluster.wait(lambda: not cluster.sees(first, killed), "b is down")
        if home != "b":
            wait_progress()
        cluster.start("b")
        wait_progress()
        with drained(cluster, "c"):
            wait_progress()
        producer.check_running()
        producer.end()
        sent = producer.lines()
        assert len(sent) >= 3 * CONFIRMS_MIN
        cluster.wait(lambda: sent <= done(), "every task is done")
        for program in programs[1:]:
            program.check_running()


@pytest.mark.timeout(120)
def test_a_celery_application_uses_three_nodes_that_have_joined(tmp_path: Path) -> None:
    cluster = WarrenCluster(tmp_path)
    try:
        for node in cluster.nodes.values():
            node.begin()
        for node in cluster.nodes.values():
            node.wait_ready()
        for name in ("b", "c"):
            joined = cluster.control(name, "cluster", "join", f"127.0.0.1:{cluster.nodes['a'].advertised}")
            assert joined.status == 0, joined.lines
        for node in cluster.nodes.values():
            cluster.wait(lambda node=node: is_whole(cluster, node), f"{node.name} sees all", 60)
        notes = tmp_path / "notes"
        notes.touch()
        programs = [
            celery_program(cluster, tmp_path, "b", *worker_options("b")),
            celery_program(cluster, tmp_path, "c", "beat", "-s", str(tmp_path / "schedule")),
        ]
        app = Celery("producer", broker=";".join(uris(cluster, "a")), backend="rpc://", set_as_current=False)
        app.conf.task_default_queue = "tasks"
        with ended(programs):
            results = [app.send_task("add", (number, number)) for number in range(50)]
            assert [result.get(RESULT_S) for result in results] == [2 * number for number in range(50)]
            cluster.wait(lambda: notes.read_text().count("beat\n") >= 3, "what beat has sent is done")
            _, connections = cluster.ask("a", "GET", "/api/connections?columns=node")
            assert {one["node"] for one in connections} == {full_name(name) for name in NODES}
            for program in programs:
                program.check_running()
        app.close()
    finally:
        cluster.close()
