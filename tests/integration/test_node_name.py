"""The name of a node, which its data directory keeps, and the owners of exclusive queues over restarts."""

import re
import socket
from pathlib import Path

import pika
import pytest
from tests.integration.broker_process import BrokerProcess, broker, refusal
from tests.integration.test_serve import connect, get

HOST = socket.gethostname().partition(".")[0]


def name_of(started: BrokerProcess) -> object:
    """The name that the API shows."""
    status, overview = get(started.ports["http"], "/api/overview")
    assert status == 200
    assert isinstance(overview, dict)
    nodes = get(started.ports["http"], "/api/nodes")[1]
    assert isinstance(nodes, list)
    assert [node["name"] for node in nodes] == [overview["node"]]
    return overview["node"]


def test_two_nodes_on_one_machine_have_the_names_that_were_set(tmp_path: Path) -> None:
    first = broker("--data-dir", str(tmp_path / "a"), WARREN_NODE_NAME="a@here")
    second = broker("--data-dir", str(tmp_path / "b"), RABBITMQ_NODENAME="b")
    with first as a, second as b:
        assert (name_of(a), name_of(b)) == ("a@here", f"b@{HOST}")
        for one, name in ((a, "a@here"), (b, f"b@{HOST}")):
            connect(one.port).channel().queue_declare("q", durable=True)
            queue = get(one.ports["http"], "/api/queues/%2f/q")[1]
            assert isinstance(queue, dict)
            assert queue["node"] == name


def test_a_directory_keeps_its_name_and_refuses_another(tmp_path: Path) -> None:
    arguments = ("--data-dir", str(tmp_path / "data"))
    with broker(*arguments, WARREN_NODE_NAME="a@here") as started:
        assert name_of(started) == "a@here"
    with broker(*arguments) as started:
        assert name_of(started) == "a@here"
    status, errors = refusal(*arguments, "--node-name", "b@here")
    assert status == 1
    assert errors.splitlines()[-1] == (
        f"warren: the data directory '{tmp_path / 'data'}' belongs to the node 'a@here', but --node-name: "
        "node.name is 'b@here': set node.name = a@here, or start with another data directory"
    )
    with broker(*arguments, "--node-name", "a@here") as started:
        assert name_of(started) == "a@here"


@pytest.mark.parametrize("is_killed", [False, True])
def test_what_ended_with_the_run_before_is_gone_and_its_names_are_free(
    tmp_path: Path, is_killed: bool
) -> None:
    runs = []
    for _ in range(3):
        with broker("--data-dir", str(tmp_path / "data")) as started:
            channel = connect(started.port).channel()
            for name, owned in (("own", True), ("transient", False)):
                with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="NOT_FOUND"):
                    connect(started.port).channel().queue_declare(name, passive=True)
                channel.queue_declare(name, exclusive=owned)
            channel.queue_bind("own", "amq.topic", "key")
            with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="RESOURCE_LOCKED"):
                connect(started.port).channel().queue_declare("own", passive=True)
            queue = get(started.ports["http"], "/api/queues/%2f/own")[1]
            assert isinstance(queue, dict)
            connections = get(started.ports["http"], "/api/connections")[1]
            assert isinstance(connections, list)
            assert queue["owner_pid_details"]["name"] in [one["name"] for one in connections]
            if is_killed:
                started.process.kill()
            started.stop()
            found = re.search(r"<warren@[^ .]+\.(\d+)\.1\.0>", "".join(started.lines))
            assert found is not None
            runs.append(int(found[1]))
    assert runs == sorted(set(runs))
