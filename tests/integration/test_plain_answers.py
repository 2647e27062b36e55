"""Error messages of the command line name the cause, without Erlang terms."""

import json
import re
import socket
import time

import pytest
from click.testing import CliRunner
from tests.integration.broker_process import BrokerProcess
from tests.integration.test_operator import Operator
from tests.patience import patient

from warren.cli.main import main


@pytest.fixture
def operator(node: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> Operator:
    monkeypatch.setenv("WARREN_URI", f"http://127.0.0.1:{node.ports['http']}")
    return Operator()


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (
            ("policies", "set", "x", "^a", '{"max-lenght": 1}'),
            1,
            "refused: unknown policy setting: max-lenght (did you mean max-length?)",
        ),
        (
            ("policies", "set", "x", "a[", '{"max-length": 1}'),
            1,
            "refused: pattern should be regular expression but is invalid: "
            "missing terminating ] for character class, at position 2",
        ),
        (
            ("queues", "list", "nme"),
            2,
            "unknown column 'nme' (did you mean 'name'?); columns: ",
        ),
        (
            ("bindings", "add", "amq.topic", "nosuch"),
            1,
            "not found: no queue 'nosuch' in vhost '/'",
        ),
        (("bindings", "add", "nosuch", "nosuch"), 1, "not found: no "),
        (("vhosts", "delete", "nosuch"), 1, "not found: there is no virtual host 'nosuch'"),
        (("queues", "list", "-p", "nosuch"), 1, "not found: there is no virtual host 'nosuch'"),
        (("users", "delete", "nosuch"), 1, "not found: there is no user 'nosuch'"),
        (("permissions", "set", "nobody", ".*", ".*", ".*"), 1, "refused: there is no user 'nobody'"),
        (
            ("permissions", "set", "guest", "-p", "nosuch", ".*", ".*", ".*"),
            1,
            "refused: there is no virtual host 'nosuch'",
        ),
        (
            ("parameters", "clear", "federation-upstream", "nosuch"),
            1,
            "not found: 'federation-upstream', 'nosuch' in vhost '/'; 'warren parameters list'",
        ),
        (("bindings", "delete", "amq.topic", "nosuch"), 1, "not found: 'amq.topic', 'nosuch' in vhost '/'"),
        (("feature-flags", "enable", "nosuch"), 1, "refused: the feature flag is not supported"),
        (("health", "port", "1"), 6, "nothing listens on port 1"),
        (("health", "protocol", "nosuch"), 6, "nothing listens for nosuch"),
        (("permissions", "set", "guest", "(", ".*", ".*"), 1, "refused: '(' is not a regular expression: "),
        (
            ("perf", "throughput", "--uri", "amqp://127.0.0.1:{amqp}/"),
            1,
            "Error: the broker answered 530 NOT_ALLOWED - vhost  not found; a URI that ends with a slash",
        ),
    ],
)
def test_the_cause_is_named_in_plain_words(
    operator: Operator, node: BrokerProcess, arguments: tuple[str, ...], status: int, words: str
) -> None:
    result = operator.asks(*(word.replace("{amqp}", str(node.port)) for word in arguments))
    assert result.exit_code == status, result.output
    said = result.stderr.removeprefix("warren: ")
    assert said.startswith(words)
    assert len(result.stderr.splitlines()) == 1
    assert "<<" not in said


def test_a_valid_column_that_no_row_has_is_accepted(operator: Operator) -> None:
    operator.gets("queues", "declare", "without-statistics")
    rows = operator.gets("queues", "list", "name", "message_stats.publish", "--json")
    assert {"name": "without-statistics", "message_stats.publish": None} in json.loads(rows)


def test_the_status_of_a_broker_is_available_as_json(operator: Operator, node: BrokerProcess) -> None:
    found = json.loads(operator.gets("status", "--json"))
    assert (found["in_memory"], found["rabbitmq_version"]) == (False, "3.10.8")
    [one] = found["nodes"]
    assert one["running"] is True
    assert isinstance(one["uptime"], int)
    assert one["alarms"] == []
    assert {"node": one["name"], "protocol": "amqp", "ip_address": "127.0.0.1", "port": node.port} in found[
        "listeners"
    ]
    assert all(re.fullmatch("[a-z_]+", key) for key in (*found, *one, *found["object_totals"]))


def test_an_alarm_is_named(operator: Operator) -> None:
    try:
        operator.gets("nodes", "limit-disk", "1000TB")
        give_up_at = time.monotonic() + patient(30)
        while (result := operator.asks("health", "alarms")).exit_code == 0:
            assert time.monotonic() < give_up_at
            time.sleep(0.1)
    finally:
        operator.gets("nodes", "limit-disk", "50MB")
    assert result.exit_code == 6
    assert re.fullmatch(
        r"warren: alarm: disk space of node warren@\S+; publishers are blocked\n", result.stderr
    )


def test_help_and_version_are_commands_and_groups_have_aliases(
    operator: Operator,
) -> None:
    assert operator.gets("help") == operator.gets("--help")
    assert operator.gets("help", "queues", "list") == operator.gets("queues", "list", "--help")
    assert operator.asks("help", "nosuch").exit_code == 2
    assert operator.gets("version") == operator.gets("--version")
    assert operator.gets("queue", "list", "name") == operator.gets("queues", "list", "name")
    assert operator.gets("policy", "list") == operator.gets("policies", "list")


def test_a_publish_without_an_answer_is_not_reported_as_done() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        said = CliRunner().invoke(main, ("exchanges", "publish", "--uri", uri, "-t", "0.5", "", "q", "hello"))
    assert said.exit_code == 3
    assert "no response in time" in said.output
    assert said.output.endswith("; it may have been published\n")
