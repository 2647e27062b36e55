"""Every operator command against a broker, under its own name and under its name in rabbitmqctl."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest
from click.testing import CliRunner, Result
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.operator_cases import (
    ACCOUNT_CASES,
    LINK_CASES,
    LOG_CASES,
    QUEUE,
    QUORUM,
    REPLICA_CASES,
    USER,
    Case,
)
from tests.integration.stream_client import RawStreamClient
from tests.patience import patient
from tests.warren_process import free_port

from warren.cli.main import main
from warren.cli.operator.command_groups import COMMANDS
from warren.cli.operator.command_types import OperatorCommand
from warren.cli.operator.unsupported_commands import UNSUPPORTED
from warren.wire.streams import commands

EXCHANGE = ("exchanges", "declare", "$")
VHOST = ("vhosts", "add", "$")
BOUND = (QUEUE, EXCHANGE, ("bindings", "add", "$", "$", "--routing-key", "a.b"))
FULL = (QUEUE, ("exchanges", "publish", "", "$", "hello"))
PARKING = ("queues", "declare", "$-to")
POLICY = ("policies", "set", "$", "^$", '{"max-length": 5}')
OPERATOR_POLICY = ("operator-policies", *POLICY[1:])
STREAM = ("queues", "declare", "$", "--type", "stream")
IN_STREAM = (STREAM, ("exchanges", "publish", "", "$", "hello"))
PARTITIONS = (b"whole-eu", b"whole-us", b"whole-apac")
SUPER = ("streams", "add-super-stream", "$", "--partitions", "2")
CASES = (
    Case("health quarantine", (), "no unacknowledged data in the quarantine"),
    Case("quarantine acknowledge", (), "quarantine: acknowledged"),
    Case("health answering", (), "the HTTP API responds"),
    Case("streams list", ("name", "committed_offset"), "$", (STREAM,)),
    Case("streams show", ("$",), "epoch", (STREAM,)),
    Case("streams clients", ("$",), "readers", (STREAM,)),
    Case("streams peek", ("$",), "hello", IN_STREAM),
    Case("streams peek", ("$", "--from", "first"), "hello", IN_STREAM),
    Case("streams peek", ("$", "--from", "2020-01-31T12:00"), "hello", IN_STREAM),
    Case("streams peek", ("$", "--from", "never"), "not 'never'", (STREAM,), status=2),
    Case("streams status", ("$",), "writer", (STREAM,)),
    Case("streams status", ("$", "--tracking"), "reference", (STREAM,), prints_known_as=""),
    Case("streams status", ("$",), "not found: no queue '$' in vhost '/'", status=1),
    Case("streams connections", (), "name", prints_known_as=""),
    Case("streams publishers", (), "reference", prints_known_as=""),
    Case("streams consumers", (), "offset_lag", prints_known_as=""),
    Case("streams add-super-stream", ("$", "--partitions", "3"), "super stream $: added, with 3 partitions"),
    Case(
        "streams add-super-stream", ("$", "--routing-keys", "eu,us", "--max-age", "7D"), "with 2 partitions"
    ),
    Case(
        "streams add-super-stream",
        ("$", "--partitions", "3"),
        "exchange '$' exists already",
        (SUPER,),
        status=1,
    ),
    Case("streams add-super-stream", ("$",), "--partitions or --routing-keys", status=2, is_own=True),
    Case("streams delete-super-stream", ("$",), "super stream $: deleted, with 2 partitions", (SUPER,)),
    Case("streams delete-super-stream", ("amq.topic",), "not a super stream", status=1),
    Case("leases list", (), "expires_at"),
    Case("leases release", ("$",), "not found: '$'", status=1),
    Case("status", prints="compatible with"),
    Case("overview", prints="rabbitmq_version"),
    Case("whoami", prints="guest"),
    Case("trace on", ("-p", "$"), "vhost $: tracing to amq.rabbitmq.trace enabled", (VHOST,)),
    Case("trace off", ("-p", "$"), "vhost $: tracing to amq.rabbitmq.trace disabled", (VHOST,)),
    Case("queues list", ("name", "messages"), "$", (QUEUE,)),
    Case("queues show", ("$",), "classic", (QUEUE,)),
    Case("queues declare", ("$", "-a", "x-max-length=10", "--type", "classic"), "queue $: declared"),
    Case("queues delete", ("$", "--if-empty"), "queue $: deleted", (QUEUE,)),
    Case("queues delete", ("$", "--if-empty"), "not empty", FULL, status=1),
    Case("queues purge", ("$",), "queue $: purged", FULL),
    Case("queues get", ("$",), "hello", FULL),
    Case("queues peek", ("$", "--count", "3"), "hello", FULL),
    Case("queues pause", ("$",), "queue $: paused", (QUEUE,)),
    Case("queues resume", ("$",), "queue $: resumed", (QUEUE, ("queues", "pause", "$"))),
    Case("queues peek", ("$", "--quarantined"), "payload", (QUORUM,)),
    Case("queues peek", ("$", "--quarantined", "--unacknowledged"), "give either", (QUORUM,), status=2),
    Case("queues release", ("$", "--all"), "queue $: 0 released", (QUORUM,)),
    Case("queues release", ("$",), "give either --position or --all", (QUORUM,), status=2),
    Case("queues release", ("$", "--position", "7"), "0 released, 1 not in quarantine", (QUORUM,), status=1),
    Case("queues release", ("$", "--all"), "'$' is not a quorum queue", (QUEUE,), status=1),
    Case("queues remove-quarantined", ("$", "--all"), "queue $: 0 removed", (QUORUM,)),
    Case("queues recover", ("$", "--accept-loss"), "queue $: running, nothing to recover", (QUORUM,)),
    Case("queues recover", ("$",), "'$' is not a quorum queue", (QUEUE,), status=1),
    Case("queues requeue", ("$", "--all"), "queue $: 0 requeued", (QUEUE,)),
    Case("queues requeue", ("$",), "give deliveries", (QUEUE,), status=1),
    Case(
        "queues requeue",
        ("$", "--delivery-tag", "1"),
        "requires --connection and --channel",
        (QUEUE,),
        status=2,
    ),
    Case(
        "queues requeue",
        ("$", "--connection", "c", "--channel", "1", "--delivery-tag", "1"),
        "0 requeued, 1 no longer unacknowledged",
        (QUEUE,),
        status=1,
    ),
    Case("exchanges list", ("name", "type"), "$", (EXCHANGE,)),
    Case("queues move", ("$", "$-to", "--rate", "1000"), "done: 1 moved", (*FULL, PARKING)),
    Case("queues move", ("$", "$-to", "--dry-run"), "1 would be moved, 0 would not", (*FULL, PARKING)),
    Case("queues move", ("$", "$"), "the queue that the messages are in", FULL, status=1),
    Case("queues move", ("$", "nowhere"), "no queue 'nowhere'", FULL, status=1),
    Case("dead-letters list", (), "first death queue"),
    Case("dead-letters list", ("$",), "first death queue", (QUEUE,)),
    Case("dead-letters list", ("$",), "not found: no queue '$' in vhost '/'", status=1),
    Case("dead-letters redrive", ("$", "--to-queue", "$-to", "--no-wait"), "redrive", (*FULL, PARKING)),
    Case("dead-letters redrive", ("$", "--dry-run"), "not a dead letter", FULL),
    Case(
        "dead-letters redrive",
        ("$", "--routing-key", "k", "--to", "queue"),
        "require --to exchange",
        (QUEUE,),
        status=2,
    ),
    Case("jobs list", (), "moved_per_second"),
    Case("jobs show", ("$",), "not found: '$'", status=1),
    Case("jobs stop", ("$",), "not found: '$'", status=1),
    Case("jobs undo", ("$",), "not found: '$'", status=1),
    Case("exchanges route", ("$", "a.b"), "the routing key is 'a.b'", BOUND),
    Case("exchanges route", ("$", "a.c"), "no queue would receive the message", BOUND, status=1),
    Case("exchanges show", ("$",), "direct", (EXCHANGE,)),
    Case("exchanges declare", ("$", "--type", "topic", "--transient"), "exchange $: declared"),
    Case("exchanges delete", ("$",), "exchange $: deleted", (EXCHANGE,)),
    Case("exchanges publish", ("$", "a.b", "hello", "--header", "n=1"), "published", BOUND),
    Case("exchanges publish", ("$", "nowhere"), "no queue received it", BOUND, status=1, typed="hello"),
    Case("bindings list", (), "a.b", BOUND),
    Case("bindings add", ("$", "$"), "$: bound to $", (QUEUE, EXCHANGE)),
    Case("bindings add", ("amq.topic", "$", "--to", "exchange"), "bound to amq.topic", (EXCHANGE,)),
    Case("bindings delete", ("$", "$", "--properties-key", "a.b"), "$: unbound from $", BOUND),
    *ACCOUNT_CASES,
    Case(
        "users topic-permissions",
        ("$",),
        "amq.topic",
        (USER, ("topic-permissions", "set", "$", "amq.topic", "a", "b")),
    ),
    Case("vhosts list", ("name", "description"), "$", (VHOST,)),
    Case("vhosts show", ("$",), "$", (VHOST,)),
    Case("vhosts add", ("$", "--description", "of tests", "--tags", "a,b"), "vhost $: added"),
    Case("vhosts delete", ("$",), "vhost $: deleted", (VHOST,)),
    Case("vhosts set-tags", ("$", "a", "b"), "vhost $: tags are a,b", (VHOST,)),
    Case("vhosts set-tags", ("$",), "vhost $: has no tags", (VHOST,)),
    Case("vhosts set-tags", ("$", "a"), "not found: there is no virtual host '$'", status=1),
    Case("vhosts restart", ("$",), "vhost $: started", (VHOST,), is_own=True),
    Case("vhosts restart", ("-p", "$"), "vhost $: started", (VHOST,)),
    Case("permissions list", (), "guest"),
    Case("permissions set", ("$", ".*", "^$", ""), "user $: permissions set in vhost /", (USER,)),
    Case(
        "permissions clear",
        ("$",),
        "user $: permissions deleted in vhost /",
        (USER, ("permissions", "set", "$", "", "", "")),
    ),
    Case("topic-permissions list", (), "user"),
    Case("topic-permissions set", ("$", "amq.topic", "a", "b"), "user $: topic permissions set", (USER,)),
    Case(
        "topic-permissions clear",
        ("$", "amq.topic"),
        "user $: topic permissions deleted",
        (USER, ("topic-permissions", "set", "$", "amq.topic", "a", "b")),
    ),
    Case("policies list", (), '{"max-length":5}', (POLICY,)),
    Case("policies show", ("$",), "definition", (POLICY,)),
    Case("policies set", ("$", "^$", '{"max-length": 5}', "--priority", "3"), "policy $: set"),
    Case("policies set", ("$", "^$", "no json"), "not JSON", status=2),
    Case("policies clear", ("$",), "policy $: removed", (POLICY,)),
    Case("operator-policies list", (), '{"max-length":5}', (OPERATOR_POLICY,)),
    Case("operator-policies show", ("$",), "definition", (OPERATOR_POLICY,)),
    Case("operator-policies set", ("$", "^$", '{"max-length": 5}'), "operator policy $: set"),
    Case("operator-policies clear", ("$",), "operator policy $: removed", (OPERATOR_POLICY,)),
    Case("parameters list", (), "component"),
    Case("parameters show", ("none", "$"), "not found", status=1),
    Case("parameters set", ("none", "$", "{}"), "refused", status=1),
    Case("parameters clear", ("none", "$"), "not found", status=1),
    Case("parameters list-global", (), "$", (("parameters", "set-global", "$", "1"),)),
    Case("parameters set-global", ("$", '{"a": 1}'), "parameter $: set"),
    Case("parameters clear-global", ("$",), "removed", (("parameters", "set-global", "$", "1"),)),
    Case("limits list", (), "value", prints_known_as="{}"),
    Case("limits set", ("-p", "$", '{"max-queues": 9}'), "set: max-queues", (VHOST,)),
    Case(
        "limits clear",
        ("-p", "$"),
        "removed: max-queues",
        (VHOST, ("limits", "set", "-p", "$", '{"max-queues": 9}')),
    ),
    Case("limits list-users", (), "value", prints_known_as=""),
    Case(
        "limits list-users",
        ("--user", "$"),
        '$  {"max-channels":9}',
        (USER, ("limits", "set-user", "$", '{"max-channels": 9}')),
        prints_known_as='{"max-channels":9}',
    ),
    Case("limits set-user", ("$", '{"max-channels": 9}'), "set: max-channels", (USER,)),
    Case(
        "limits clear-user",
        ("$", "max-channels"),
        "removed: max-channels",
        (USER, ("limits", "set-user", "$", '{"max-channels": 9}')),
    ),
    Case("limits clear-user", ("$", "max-channels"), "is set", (USER,), status=1, is_own=True),
    Case("definitions export", ("-",), '"rabbit_version"'),
    Case("definitions import", ("-",), "definitions: imported", typed='{"vhosts": [{"name": "$"}]}'),
    Case("definitions import", ("-",), "not JSON", status=2, typed="nothing"),
    Case("definitions import", ("-", "--skip-invalid"), "skipped: q", typed='{"queues": [{"name": "$"}]}'),
    Case("definitions plan", ("-",), "create  vhost", typed='{"vhosts": [{"name": "$"}]}'),
    Case("definitions plan", ("-",), "not JSON", status=2, typed="nothing"),
    Case("definitions apply", ("-", "--yes"), "definitions: 2 applied", typed='{"vhosts": [{"name": "$"}]}'),
    Case("definitions apply", ("-", "--fingerprint", "no"), "make a new plan", typed="{}", status=1),
    Case("connections list", (), "user", prints_known_as=""),
    Case("connections show", ("$",), "not found: '$'", status=1),
    Case("connections close", ("$", "why"), "not found: '$'", status=1),
    Case("connections close", ("$", "two\nlines"), "one line", status=2),
    Case("connections close-user", ("$",), "closed", (USER,), is_own=True),
    Case("connections close-all", ("-p", "$", "why"), "connections: 0 closed", (VHOST,)),
    Case("channels list", (), "user", prints_known_as=""),
    Case("channels show", ("$",), "not found: '$'", status=1),
    Case("consumers list", (), "consumer_tag", prints_known_as=""),
    Case("nodes list", (), "mem_used"),
    Case("nodes show", ("$",), "not found: '$'", status=1),
    Case("nodes ping", (), "responded in"),
    Case("nodes set-cluster-name", ("$",), "cluster: named $"),
    Case("feature-flags list", (), "quorum_queue"),
    Case("feature-flags enable", ("user_limits",), "enabled"),
    Case("feature-flags enable", ("all",), "9 enabled"),
    Case("feature-flags enable", ("nosuch",), "not supported", status=1, is_own=True),
    Case("nodes report", (), "connection_max"),
    Case("nodes report", ("--json",), '"bindings": ['),
    Case("health alarms", (), "no alarms"),
    Case("health local-alarms", (), "no alarms"),
    Case("health virtual-hosts", (), "all virtual hosts are running"),
    Case("health port", ("1",), "nothing listens on port 1", status=6),
    Case("health protocol", ("amqp",), "protocol amqp: the broker listens"),
    Case("health certificates", ("--within", "2", "--unit", "weeks"), "within 2 weeks"),
    Case("health running", (), "the node is running"),
    Case("health alive", (), "vhost /: alive"),
    Case("health losses", (), "no unacknowledged losses"),
    Case("health quorum-queues", (), "all quorum queues have a leader"),
    Case("health acknowledge-losses", (), "acknowledged"),
    Case("quarantine list", (), "bytes"),
    Case("quarantine remove", ("nosuch",), "not found", status=1),
    *LINK_CASES,
    *REPLICA_CASES,
    Case("cluster status", (), "no problems"),
    Case("cluster status", ("--json",), '"is_in_minority": false'),
    Case("cluster join", ("there", "--reset"), "cannot connect to the node at there:25672", status=1),
    Case("cluster join", ("rabbit@there:9", "--disc"), "refused: joining would delete", (QUEUE,), status=1),
    Case("cluster join", ("there:port",), "the member must be HOST, HOST:PORT or the name", status=2),
    Case("cluster leave", ("--accept-loss",), "there is nothing to leave", status=1),
    Case("cluster forget", ("$",), "not found: the cluster has no member '$'; its members:", status=1),
    Case("cluster forget", ("$", "--offline"), "see 'warren cluster recover --help'", status=2),
    Case("cluster drain", (), "in maintenance mode, without clients"),
    Case("cluster revive", (), "accepts clients"),
    Case("cluster drain", ("--node", "$"), "not found: there is no node '$'", status=1),
    Case("cluster revive", ("-n", "$"), "not found: there is no node '$'", status=1),
    Case("cluster await", ("1",), "nodes that are up: at least 1"),
    Case("cluster await", ("2", "--within", "0"), "timed out after 0 s: 1 of 2 nodes are up", status=1),
    Case("cluster await", ("2", "--within", "0.3"), "timed out after 0.3 s: 1 of 2 nodes are up", status=1),
    Case("cluster await-quorum", (), "a majority of the voters and one more are up, or all of them"),
    Case("cluster change-node-type", ("ram",), "every node keeps its data on disk"),
    Case("nodes limit-memory", ("0.5",), "publishers are blocked above"),
    Case("nodes limit-memory", ("absolute", "2GB"), "memory: publishers are blocked above 2000000000 bytes"),
    Case("nodes limit-memory", ("absolute", "much"), "must be a size", status=1),
    Case("nodes limit-memory", ("half",), "the fraction must be a number", status=2),
    Case("nodes limit-memory", ("mem_relative", "1"), "the limit must be VALUE or absolute VALUE", status=2),
    Case("nodes limit-disk", ("60MB",), "disk: publishers are blocked below 60000000 bytes"),
    Case("nodes limit-disk", ("mem_relative", "0.01"), "publishers are blocked below"),
    Case("nodes limits", (), "memory"),
    Case("nodes memory", (), "total"),
    Case("nodes listeners", (), "127.0.0.1"),
    Case("nodes version", (), "rabbitmq_version"),
    Case("nodes alarms", (), "no alarms"),
    Case("nodes await", ("--within", "5"), "the broker is running"),
    Case("nodes auth-attempts", (), "auth_attempts_failed"),
    Case("nodes reset-auth-attempts", (), "authentication attempts: reset"),
    Case("nodes settings", (), "vm_memory_high_watermark.relative"),
    *LOG_CASES,
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("operated")
    arguments = ("--data-dir", str(folder / "data"), "--cluster-port", str(free_port()))
    with broker(*arguments, WARREN_LOG_FILE=str(folder / "warren.log")) as started:
        yield started


@pytest.fixture
def operator(node: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> "Operator":
    monkeypatch.setenv("WARREN_URI", f"http://127.0.0.1:{node.ports['http']}")
    return Operator()


class Operator:
    """A user at a terminal."""

    def asks(self, *arguments: str, typed: str = "") -> Result:
        """The result of a command."""
        return CliRunner().invoke(main, arguments, input=typed, prog_name="warren")

    def gets(self, *arguments: str) -> str:
        """The output of a command that succeeds."""
        result = self.asks(*arguments)
        assert result.exit_code == 0, (arguments, result.output)
        return str(result.stdout)


def names_of(command: OperatorCommand) -> list[tuple[str, ...]]:
    """The names of the command."""
    own = (command.group, command.name) if command.group else (command.name,)
    return [own, (command.known_as,)] if command.known_as else [own]


def calls() -> list[object]:
    """Every case under every name, with a unique name for what it creates."""
    by_name = {" ".join(names_of(command)[0]): command for command in COMMANDS}
    return [
        pytest.param(
            case, name, f"{at}-{case.of.replace(' ', '-')}-{len(name)}", id=" ".join(name) + f"-{at}"
        )
        for at, case in enumerate(CASES)
        for name in names_of(by_name[case.of])[: 1 if case.is_own else None]
    ]


@pytest.mark.parametrize(("case", "name", "new"), calls())
def test_a_command_prints_its_line(operator: Operator, case: Case, name: tuple[str, ...], new: str) -> None:
    for line in case.before:
        operator.gets(*(word.replace("$", new) for word in line))
    arguments = [word.replace("$", new) for word in case.arguments]
    result = operator.asks(*name, *arguments, typed=case.typed.replace("$", new))
    assert result.exit_code == case.status, result.output
    is_known_as = len(name) == 1 and case.prints_known_as is not None
    prints = case.prints_known_as if is_known_as else case.prints
    # By its name in rabbitmqctl, a command that changes something says what rabbitmqctl says instead.
    is_announced = len(name) == 1 and not case.status and result.output.partition("\n")[0].endswith("...")
    assert is_announced or str(prints).replace("$", new) in result.output
    if case.status:
        # RabbitMQ's tools print the sentence alone, which may be of several lines.
        assert is_known_as or result.stderr.startswith("warren: ")
        assert is_known_as or len(result.stderr.splitlines()) == 1


def test_every_command_has_a_case() -> None:
    assert {case.of for case in CASES} == {" ".join(names_of(command)[0]) for command in COMMANDS}


def test_a_list_is_fetched_to_its_end(operator: Operator) -> None:
    queues = [{"name": f"many-{at}", "vhost": "many", "durable": True} for at in range(1_101)]
    definitions = json.dumps({"vhosts": [{"name": "many"}], "queues": queues})
    assert operator.asks("definitions", "import", "-", typed=definitions).exit_code == 0
    expected = sorted(str(queue["name"]) for queue in queues)
    assert sorted(operator.gets("list_queues", "-p", "many", "-s", "name").split()) == expected
    rows = json.loads(operator.gets("list_queues", "-p", "many", "--json"))
    assert sorted(row["name"] for row in rows) == expected


def test_control_characters_of_a_name_are_not_printed(operator: Operator) -> None:
    operator.gets("queues", "declare", "red\x1b[31m\u202e\x07")
    assert "red\\x1b[31m\\u202e\\x07" in operator.gets("list_queues", "name")
    assert "\x1b" not in operator.gets("queues", "list", "--json")


def test_columns_are_those_of_rabbitmqctl(operator: Operator) -> None:
    for line in BOUND:
        operator.gets(*(word.replace("$", "known") for word in line))
    columns = ("source_name", "source_kind", "destination_name", "destination_kind", "routing_key")
    rows = operator.gets("list_bindings", "-s", "--formatter", "tsv", *columns).splitlines()
    assert "known\texchange\tknown\tqueue\ta.b" in rows


def test_json_output_is_for_programs(operator: Operator) -> None:
    operator.gets("queues", "declare", "for-programs")
    rows = json.loads(operator.gets("list_queues", "--json", "name", "messages"))
    assert {"name": "for-programs", "messages": 0} in rows
    assert json.loads(operator.gets("queues", "show", "for-programs", "--json"))["name"] == "for-programs"


def test_an_unreachable_broker_is_status_3(operator: Operator) -> None:
    result = operator.asks("status", "--uri", "http://127.0.0.1:1")
    assert result.exit_code == 3
    assert "cannot connect" in result.stderr


@pytest.mark.parametrize("arguments", [("whoami",), ("users", "list"), ("status",)])
def test_a_wrong_password_is_status_4_and_not_printed(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("WARREN_USER", "guest")
    monkeypatch.setenv("WARREN_PASSWORD", "not-the-one")
    result = operator.asks(*arguments)
    assert result.exit_code == 4
    assert "not-the-one" not in result.output


def test_no_password_is_read_from_piped_input(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    operator.gets("users", "add", "piper", "pied", "--tags", "management")
    monkeypatch.setenv("WARREN_USER", "piper")
    assert operator.asks("whoami", typed="pied\n").exit_code == 0


def test_password_hashes_are_shown_only_on_request(operator: Operator) -> None:
    (shown,) = json.loads(operator.gets("users", "list", "--json", "password_hash"))[:1]
    assert shown["password_hash"]
    assert '"password_hash"' not in operator.gets("users", "show", "guest", "--json")
    assert '"password_hash"' not in operator.gets("users", "list", "--json")


def test_a_user_who_may_not_see_nodes_can_show_the_status(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.gets("users", "add", "looker", "secret", "--tags", "management")
    monkeypatch.setenv("WARREN_USER", "looker")
    monkeypatch.setenv("WARREN_PASSWORD", "secret")
    assert "compatible with" in operator.gets("status")


def test_connections_channels_and_consumers_are_listed_and_closed(
    operator: Operator, node: BrokerProcess
) -> None:
    operator.gets("queues", "declare", "followed")
    says = {"connection_name": "the till", "product": "shop"}
    connection = pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", node.port, client_properties=says)
    )
    channel = connection.channel()
    channel.basic_consume("followed", lambda *_: None, consumer_tag="follower")
    (name,) = operator.gets("list_connections", "-s", "--formatter", "tsv", "name").splitlines()
    assert (
        operator.gets("list_channels", "-s", "--formatter", "tsv", "connection", "number") == f"{name}\t1\n"
    )
    assert operator.gets("list_consumers", "-s", "queue_name", "consumer_tag") == "followed\tfollower\n"
    assert "the till" in operator.gets("connections", "list")
    own = operator.gets("list_connections", "-s", "--formatter", "tsv", "name", "user_provided_name")
    assert own == f"{name}\tthe till\n"
    assert '{"product","shop"}' in operator.gets("list_connections", "client_properties")
    assert "protocol" in operator.gets("connections", "show", name)
    assert "consumer_details" in operator.gets("channels", "show", f"{name} (1)")
    operator.gets("close_connection", name, "enough")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="enough"):
        connection.process_data_events(10)


def test_all_connections_of_a_vhost_are_closed(operator: Operator, node: BrokerProcess) -> None:
    parameters = pika.ConnectionParameters("127.0.0.1", node.port)
    connections = [pika.BlockingConnection(parameters) for _ in range(2)]
    assert "connections: 2 closed" in operator.gets("close_all_connections", "-p", "/", "maintenance")
    for connection in connections:
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="maintenance"):
            connection.process_data_events(10)


def test_options_may_precede_the_command(operator: Operator, node: BrokerProcess) -> None:
    assert json.loads(operator.gets("--json", "whoami"))["name"] == "guest"
    assert operator.asks("--uri", "http://127.0.0.1:1", "whoami").exit_code == 3
    nearer = ("--uri", f"http://127.0.0.1:{node.ports['http']}")
    assert operator.asks("--uri", "http://127.0.0.1:1", "whoami", *nearer).exit_code == 0


def test_dead_letters_are_listed_redriven_and_undone(operator: Operator, node: BrokerProcess) -> None:
    arguments = ("-a", "x-dead-letter-exchange=", "-a", "x-dead-letter-routing-key=cli-dead")
    operator.gets("queues", "declare", "cli-dead")
    operator.gets("queues", "declare", "cli-orders", *arguments)
    for number in range(3):
        operator.gets("exchanges", "publish", "", "cli-orders", f"{number}", "--header", f"n={number}")
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port)) as connection:
        channel = connection.channel()
        for _ in range(3):
            channel.basic_reject(channel.basic_get("cli-orders")[0].delivery_tag, requeue=False)
    for line in (("dead-letters", "list"), ("dead-letters", "list", "cli-dead")):
        (row,) = list(operator.gets(*line, "-s", "--formatter", "tsv").splitlines())
        assert row.split("\t")[:6] == ["/", "cli-dead", "cli-orders", "rejected", "", "3"]
    chosen = ("--reason", "rejected", "--match", "headers.n>=1", "--set-header", "fixed=true")
    job = json.loads(operator.gets("dead-letters", "redrive", "cli-dead", *chosen, "--json"))
    assert (job["state"], job["moved"]) == ("done", 2)
    assert "true" in operator.gets("queues", "peek", "cli-orders", "--json")
    assert job["id"] in operator.gets("jobs", "list")
    assert "done: 2 moved, 0 already delivered" in operator.gets("jobs", "undo", job["id"])
    assert operator.asks("jobs", "undo", job["id"]).exit_code == 1
    assert "stopped, or removed" in operator.gets("jobs", "stop", job["id"])


def test_exported_definitions_are_readable_by_their_owner_only(operator: Operator, tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.touch(0o644)
    operator.gets("export_definitions", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    assert "users" in json.loads(file.read_text())
    assert "imported" in operator.gets("import_definitions", str(file))
    assert operator.asks("definitions", "import", str(tmp_path / "none")).exit_code == 2
    assert operator.asks("definitions", "export", str(tmp_path / "none" / "x")).exit_code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_scripts_are_printed(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    assert "_WARREN_COMPLETE" in operator.gets("completion", shell)


def test_names_are_completed(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    operator.gets("queues", "declare", "completed-1")
    operator.gets("queues", "declare", "completed-$(reboot)")
    monkeypatch.setenv("_WARREN_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "warren queues show compl")
    monkeypatch.setenv("COMP_CWORD", "3")
    result = CliRunner().invoke(main, [], prog_name="warren", complete_var="_WARREN_COMPLETE")
    assert result.output.split() == ["plain,completed-1"]


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_a_command_without_function_here_says_why(name: str) -> None:
    result = CliRunner().invoke(main, [name, "whatever", "--it", "takes"], prog_name="warren")
    assert result.exit_code == 1
    assert result.stderr == f"warren: {name}: {UNSUPPORTED[name]}\n"


@pytest.mark.parametrize("tool", ["rabbitmqctl", "rabbitmq-diagnostics"])
def test_every_command_of_the_tools_of_rabbitmq_is_known(tool: str) -> None:
    program = shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("rabbitmq-server is not installed")
    said = subprocess.run([program, "help"], capture_output=True, text=True, timeout=60, check=False).stdout
    names = re.findall(r"^   ([a-z_0-9]+) ", said, re.MULTILINE)
    assert len(names) > 50
    assert [name for name in names if name not in main.commands] == []


def test_a_limit_applies_at_once_and_until_it_is_set_again(operator: Operator) -> None:
    operator.gets("nodes", "limit-memory", "absolute", "1MB")
    assert "memory" in operator.gets("nodes", "alarms")
    assert operator.asks("health", "alarms").exit_code == 6
    operator.gets("nodes", "limit-memory", "0.9")
    assert operator.gets("nodes", "alarms") == "no alarms\n"


def test_settings_are_shown_with_their_source_and_without_secrets(operator: Operator) -> None:
    rows = {row["key"]: row for row in json.loads(operator.gets("nodes", "settings", "--json"))}
    assert rows["log.file"]["origin"] == "WARREN_LOG_FILE"
    assert rows["heartbeat"] == {"key": "heartbeat", "value": "60", "origin": "default"}
    assert rows["default_pass"]["value"] == "********"


def test_the_log_names_the_user_who_changed_a_limit(operator: Operator) -> None:
    operator.gets("nodes", "limit-disk", "50MB")
    file = json.loads(operator.gets("log", "show", "--json"))["file"]
    until = time.monotonic() + patient(20)
    # A thread writes the log.
    while "user 'guest': disk limit set to 47 MiB" not in Path(file).read_text():
        assert time.monotonic() < until


def test_a_super_stream_created_by_a_command_is_usable_by_stream_clients(
    node: BrokerProcess, operator: Operator
) -> None:
    operator.gets("streams", "add-super-stream", "whole", "--routing-keys", "eu,us,apac", "--max-age", "7D")
    client = RawStreamClient(node.ports["stream"])
    answer = client.ask(commands.Partitions("whole"))
    client.close()
    assert answer.endswith(b"".join(len(name).to_bytes(2, "big") + name for name in PARTITIONS))
    shown = json.loads(operator.gets("queues", "show", "whole-us", "--json"))
    assert shown["arguments"] == {"x-queue-type": "stream", "x-max-age": "7D"}


def test_a_super_stream_that_cannot_be_created_leaves_nothing_behind(operator: Operator) -> None:
    operator.gets("queues", "declare", "half-1")
    failed = operator.asks("streams", "add-super-stream", "half", "--partitions", "2")
    assert failed.exit_code == 1
    assert "queue 'half-1' exists already" in failed.stderr
    assert operator.asks("exchanges", "show", "half").exit_code == 1
    assert operator.asks("queues", "show", "half-0").exit_code == 1
    assert operator.asks("queues", "show", "half-1").exit_code == 0
