"""RabbitMQ's tools against a broker: the fields and types of their JSON, and exit statuses that scripts read.

The shapes are those of RabbitMQ 3.10.8; 4.3.6 has the same, and `tags`, `cluster_tags` and `cpu_cores`.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.integration.broker_process import BrokerProcess, broker
from tests.rabbitmq import SERVER

from warren.cli.rabbitmq_tools import run as call

LISTENER = {"interface": str, "node": str, "port": int, "protocol": str, "purpose": str}
MEMORY_PARTS = 25
TOOLS = (
    "rabbitmqctl", "rabbitmq-diagnostics", "rabbitmq-queues", "rabbitmq-streams", "rabbitmq-plugins",
    "rabbitmq-upgrade",
)  # fmt: skip
STATUS = {
    "active_plugins": [str], "alarms": [], "config_files": [], "crypto_lib_version": str,
    "data_directory": str, "disk_free": int, "disk_free_limit": int, "enabled_plugin_file": str,
    "erlang_version": str,
    "file_descriptors": {
        "sockets_limit": int, "sockets_used": int, "total_limit": int, "total_used": int,
    },
    "is_under_maintenance": bool, "listeners": [LISTENER], "log_files": [str], "net_ticktime": int,
    "os": str, "pid": int, "processes": {"limit": int, "used": int}, "product_name": str,
    "product_version": str, "rabbitmq_version": str, "raft_data_directory": str,
    "release_series_support_status": str, "run_queue": int, "tags": [],
    "totals": {"virtual_host_count": int, "connection_count": int, "queue_count": int},
    "uptime": int, "vm_memory_calculation_strategy": str, "vm_memory_high_watermark_limit": int,
    "vm_memory_high_watermark_setting": {"relative": float},
}  # fmt: skip
FLAG = {"desc": str, "doc_url": str, "name": str, "provided_by": str, "stability": str, "state": str}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker("--data-dir", str(tmp_path_factory.mktemp("tools"))) as started:
        yield started


@pytest.fixture(autouse=True)
def address(node: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARREN_URI", f"http://127.0.0.1:{node.ports['http']}")


def run(*words: str) -> tuple[int, str, str]:
    """The exit status of a tool, its output, and its errors."""
    with CliRunner().isolation() as streams:
        status = call("rabbitmqctl", list(words))
        sys.stdout.flush()
        output, errors = streams[0].getvalue(), streams[1].getvalue()
    return status, output.decode(), errors.decode()


def told(*words: str) -> object:
    status, output, _ = run(*words, "--formatter", "json")
    assert status == 0
    return json.loads(output)


def shape(value: object) -> object:
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value)


def test_the_status_has_the_fields_of_rabbitmq() -> None:
    # Ansible's rabbitmq_user reads rabbitmq_version, and rabbitmq_upgrade is_under_maintenance.
    found = told("status")
    assert isinstance(found, dict)
    memory = found.pop("memory")
    assert shape(memory.pop("total")) == {"erlang": int, "rss": int, "allocated": int}
    assert memory.pop("strategy") == "rss"
    assert {type(size) for size in memory.values()} == {int}
    assert len(memory) == MEMORY_PARTS
    assert shape(found) == STATUS
    assert found["rabbitmq_version"] == "3.10.8"


def test_the_status_of_the_cluster_has_the_fields_of_rabbitmq() -> None:
    found = told("cluster_status")
    assert isinstance(found, dict)
    (name,) = found["running_nodes"]
    version = {"erlang_version": str, "rabbitmq_name": str, "rabbitmq_version": str}
    assert shape(found) == {
        "alarms": [], "cluster_name": str, "cluster_tags": [], "cpu_cores": {name: int},
        "disk_nodes": [str], "feature_flags": [FLAG], "listeners": {name: [LISTENER]},
        "maintenance_status": {name: str}, "partitions": {}, "ram_nodes": [], "running_nodes": [str],
        "versions": {name: version},
    }  # fmt: skip
    assert found["maintenance_status"] == {name: "not under maintenance"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("alarms", {"alarms": [], "node": str, "result": str}),
        ("listeners", {"listeners": [LISTENER], "node": str, "result": str}),
        ("server_version", {"result": str, "value": str}),
        ("log_location", {"node_name": str, "paths": [str], "result": str}),
        ("ping", {"message": str}),
        ("check_running", {"message": str}),
        ("is_running", {"message": str, "result": bool}),
        ("is_booting", {"message": str, "result": bool}),
        ("check_alarms", {"result": str}),
        ("check_local_alarms", {"result": str}),
        ("check_virtual_hosts", {"result": str}),
        ("check_certificate_expiration", {"result": str}),
        ("check_protocol_listener amqp", {"node": str, "protocol": str, "result": str}),
        ("check_port_connectivity", {"listeners": [LISTENER], "node": str, "result": str}),
        ("check_if_any_deprecated_features_are_used", {"result": str}),
        ("check_for_quorum_queues_without_an_elected_leader .", {"result": str}),
        ("check_if_new_quorum_queue_replicas_have_finished_initial_sync", {"result": str}),
        ("has_reached_target_cluster_size", {"result": str}),
    ],
)
def test_json_has_the_fields_of_rabbitmq(command: str, expected: object) -> None:
    assert shape(told(*command.split())) == expected


def test_memory_is_shown_in_bytes_and_percent_or_in_a_unit() -> None:
    found = told("memory_breakdown")
    assert isinstance(found, dict)
    assert {str(shape(part)) for part in found.values()} == {str({"bytes": int, "percentage": float})}
    assert "MB" not in run("-q", "memory_breakdown")[1]
    assert "other_system: " in run("memory_breakdown", "--unit", "mb")[1]


def test_the_report_has_the_headings_of_rabbitmq() -> None:
    status, report, _ = run("report")
    lines = report.splitlines()
    node = lines[0].split()[-2]
    assert (status, lines[0]) == (0, f"Reporting server status of node {node} ...")
    headings = [
        line
        for line in lines
        if line.endswith("...") and line.startswith(("Status", "Cluster", "App", "List"))
    ]
    assert headings[:5] == [
        f"Status of node {node} ...", f"Cluster status of node {node} ...",
        f"Application environment of node {node} ...", "Listing connections ...", "Listing channels ...",
    ]  # fmt: skip
    of_vhost = headings[headings.index("Listing queues for vhost / ...") :]
    assert of_vhost[:7] == [
        "Listing queues for vhost / ...", "Listing exchanges for vhost / ...",
        "Listing bindings for vhost /...", 'Listing permissions for vhost "/" ...',
        'Listing policies for vhost "/" ...', "Listing global runtime parameters ...",
        'Listing runtime parameters for vhost "/" ...',
    ]  # fmt: skip


def test_settings_are_one_application() -> None:
    found = told("environment")
    assert isinstance(found, dict)
    assert found["rabbit"]["heartbeat"] == "60"


def test_texts_are_in_sections() -> None:
    assert "RabbitMQ version: 3.10.8" in run("status", "--unit", "mb")[1]
    status = run("-q", "cluster_status")[1]
    assert status.startswith("Basics\n\nCluster name: ")
    assert "\nAlarms\n\n(none)\n" in status


def test_a_failed_check_has_the_status_and_the_sentence_of_rabbitmq(node: BrokerProcess) -> None:
    assert run("check_port_listener", str(node.port))[0] == 0
    status, _, error = run("check_port_listener", "1")
    assert (status, error[:30]) == (69, "No listener for port 1 is acti")
    status, _, error = run("check_protocol_listener", "mqtt", "--formatter", "json")
    assert status == 69
    assert json.loads(error)["missing"] == "mqtt"
    run("set_vm_memory_high_watermark", "absolute", "1")
    try:
        assert run("check_local_alarms")[0] == 69
        alarms = told("alarms")
        assert isinstance(alarms, dict)
        assert (alarms["local"][0][:20], alarms["global"]) == ("Memory alarm on node", [])
    finally:
        run("set_vm_memory_high_watermark", "0.4")


def test_users_are_added_once_and_may_have_no_password() -> None:
    # Ansible adds a user without a password with an empty one.
    assert run("add_user", "cli-once", "secret")[0] == 0
    assert run("add_user", "cli-once", "secret")[::2] == (
        70,
        'Error:\nUser "cli-once" already exists\n',
    )
    assert run("add_user", "cli-none", "")[0] == 0
    assert run("authenticate_user", "cli-once", "secret")[0] == 0
    assert run("authenticate_user", "cli-once", "wrong")[0] == 65
    hashed = run("-q", "hash_password", "hashed")[1].strip()
    assert run("add_user", "cli-hashed", hashed, "--pre-hashed-password")[0] == 0
    assert run("authenticate_user", "cli-hashed", "hashed")[0] == 0


def test_options_may_precede_a_command_or_follow_it() -> None:
    run("add_vhost", "cli-other", "--description", "first")
    assert run("-p", "cli-other", "-q", "list_queues", "name")[0] == 0
    assert (
        run("update_vhost_metadata", "cli-other", "-d", "second", "--protected-from-deletion", "true")[0] == 0
    )
    vhosts = told("list_vhosts", "name", "description", "cluster_state")
    assert isinstance(vhosts, list)
    (row,) = [row for row in vhosts if row["name"] == "cli-other"]
    assert row["description"] == "second"
    assert list(row["cluster_state"].values()) == ["running"]
    assert run("delete_vhost", "cli-other")[0] != 0
    assert run("disable_vhost_deletion_protection", "cli-other")[0] == 0
    assert run("delete_vhost", "cli-other")[0] == 0


def test_connections_of_one_virtual_host_are_closed_unless_all_are_asked_for() -> None:
    assert "connections: 0 closed" in run("close_all_connections", "--limit", "3", "over")[1]
    assert "connections: 0 closed" in run("close_all_connections", "--global", "over")[1]


def test_commands_of_newer_versions_work() -> None:
    for command in (
        "list_deprecated_features --used", "list_channel_interceptors", "reset_stats_db --all",
        "check_if_cluster_has_classic_queue_mirroring_policy", "set_permissions_globally guest .* .* .*",
        "list_policies_with_classic_queue_mirroring", "check_if_metadata_store_is_initialized",
        "list_operator_policies_with_classic_queue_mirroring", "enable_feature_flag --opt-in all",
        "check_if_metadata_store_is_initialized_with_data", "version", "help", "help list_queues",
        "help --list-commands", "list_node_auth_attempt_stats --by-source",
    ):  # fmt: skip
        assert run(*command.split())[0] == 0, command


def test_a_message_is_shown_by_its_place(node: BrokerProcess, tmp_path: Path) -> None:
    definitions = tmp_path / "definitions.json"
    definitions.write_text(json.dumps({"queues": [{"name": "cli-peek", "vhost": "/", "durable": True}]}))
    assert run("import_definitions", str(definitions), "--skip-if-unchanged", "--format", "JSON")[0] == 0
    assert run("peek", "cli-peek", "1")[::2] == (65, "Message at the given position was not found\n")
    assert run("export_definitions", str(tmp_path / "out.json"), "--format", "erlang")[0] == 64


@pytest.mark.long
@pytest.mark.rabbitmq
@pytest.mark.parametrize("tool", TOOLS)
def test_the_installed_tool_has_no_command_that_is_not_in_the_table(tool: str, tmp_path: Path) -> None:
    table = Path(__file__).parents[1] / "unit/cli/rabbitmq_commands.txt"
    known = {line.split("|")[2] for line in table.read_text().splitlines() if f"|{tool}|" in line}
    command = [str(SERVER.with_name(tool)), "help", "--list-commands"]
    folder = {"HOME": str(tmp_path), "RABBITMQ_ENABLED_PLUGINS_FILE": str(tmp_path / "none")}
    asked = subprocess.run(command, env=os.environ | folder, capture_output=True, text=True, check=False)
    commands_of_tool = set(re.findall(r"^   (\w+)  ", asked.stdout + asked.stderr, re.MULTILINE))
    assert commands_of_tool
    assert commands_of_tool <= known


def test_a_change_says_what_rabbitmqctl_says_and_nothing_more() -> None:
    for line, sentence in (
        ("change_password guest guest", 'Changing password for user "guest" ...'),
        ("set_user_tags guest administrator management",
         'Setting tags for user "guest" to [administrator, management] ...'),
        ("set_user_tags guest administrator", 'Setting tags for user "guest" to [administrator] ...'),
        ("add_vhost said", 'Adding vhost "said" ...'),
        ("set_permissions -p said guest .* .* .*",
         'Setting permissions for user "guest" in vhost "said" ...'),
        ("set_policy -p said p ^a {\"max-length\":5}",
         'Setting policy "p" for pattern "^a" to "{"max-length":5}" with priority "0" for vhost "said" ...'),
        ("clear_policy -p said p", 'Clearing policy "p" on vhost "said" ...'),
        ("set_user_limits guest {}", 'Setting user limits to "{}" for user "guest" ...'),
        ("clear_user_limits guest all", 'Clearing all limits for user "guest" ...'),
        ("trace_on -p said", 'Starting tracing for vhost "said" ...'),
        ("delete_vhost said", 'Deleting vhost "said" ...'),
    ):  # fmt: skip
        assert run(*line.split(" ")) == (0, sentence + "\n", ""), line
    added = run("add_user", "told", "secret")[1].splitlines()
    assert added[0] == 'Adding user "told" ...'
    assert added[1].startswith("Done. Don't forget to grant the user permissions to some virtual hosts!")
    assert run("authenticate_user", "told", "secret")[1].splitlines()[1:] == ["Success"]
    assert run("delete_user", "-q", "told")[1] == ""
    assert run("delete_user", "told")[:2] == (67, 'Deleting user "told" ...\n')
