"""The image that takes the place of RabbitMQ's: its start script, run in a folder as in a container.

What a compose file gives a container is given to the script: variables, files in /etc/rabbitmq, a volume at
/var/lib/rabbitmq, and commands for the health check.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest
from tests.integration.broker_process import STOP_TIMEOUT_S
from tests.warren_process import free_port

DOCKER = Path(__file__).resolve().parents[2] / "deploy" / "docker"
SCRIPT = DOCKER / "rabbitmq-entrypoint.sh"


class Container:
    """A folder with the files of a container, and the variables of its service."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.etc, self.volume = folder / "etc/rabbitmq", folder / "var/lib/rabbitmq"
        (self.etc / "conf.d").mkdir(parents=True)
        self.volume.mkdir(parents=True)
        shutil.copy(DOCKER / "10-defaults.conf", self.etc / "conf.d")
        self.port, self.management_port = free_port(), free_port()
        (self.etc / "conf.d" / "20-ports.conf").write_text(
            f"management.tcp.port = {self.management_port}\nmanagement.tcp.ip = 127.0.0.1\n"
            "prometheus.tcp.port = 0\nstream.listeners.tcp = none\n"
        )
        self.environment = {
            # The commands are beside the interpreter.
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SYS_PREFIX": str(folder),
            **{
                name: value
                for name, value in os.environ.items()
                if name in ("WARREN_PURE", "WARREN_COMPILED")
            },
            **environment,
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [SCRIPT, *(words or ("rabbitmq-server",))],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of a health check, or of `docker exec`."""
        uri = {"WARREN_URI": f"http://127.0.0.1:{self.management_port}"}
        return subprocess.run(
            words, env=self.environment | uri, capture_output=True, text=True, check=False
        )  # fmt: skip


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """A running container with its own user, as in most compose files."""
    folder = tmp_path_factory.mktemp("container")
    made = Container(
        folder,
        RABBITMQ_DEFAULT_USER="shop",
        RABBITMQ_DEFAULT_PASS_FILE=str(folder / "secret"),
        RABBITMQ_DEFAULT_VHOST="store",
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-rabbit log_levels [{connection,error}]",
        RABBITMQ_ERLANG_COOKIE="cookie",
    )
    (folder / "secret").write_text("s3 cret\n")
    (made.etc / "rabbitmq.conf").write_text("heartbeat = 33\ndefault_user = other\n")
    (made.etc / "advanced.config").write_text("[{rabbit, [{collect_statistics, fine}]}].\n")
    (made.etc / "enabled_plugins").write_text("[rabbitmq_management,rabbitmq_mqtt].\n")
    # Written for the shell: without the prefix, and with a value that is a command.
    (made.etc / "rabbitmq-env.conf").write_text(
        f"NODE_PORT={made.port}\nexport NODE_IP_ADDRESS=$(echo 127.0.0.1)\nRABBITMQ_DEFAULT_USER=unused\n"
    )
    process = made.start()
    lines: list[str] = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if "ready: " in line:
                break
        made.environment["LOG"] = "".join(lines)
        yield made
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_TIMEOUT_S) == 0
    finally:
        process.kill()
        process.communicate()


def logged_in(container: Container, user: str, password: str) -> pika.BlockingConnection:
    credentials = pika.PlainCredentials(user, password)
    return pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", container.port, "store", credentials)
    )


def test_the_user_of_the_variables_can_log_in_and_guest_does_not_exist(container: Container) -> None:
    logged_in(container, "shop", "s3 cret").close()
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        logged_in(container, "guest", "guest")
    users = container.run("rabbitmqctl", "list_users", "-q")
    assert (users.returncode, users.stdout) == (0, "user\ttags\nshop\t[administrator]\n")


def test_files_in_etc_rabbitmq_are_read(container: Container) -> None:
    told = container.run("rabbitmqctl", "environment", "--silent")
    settings = dict(line.split("\t")[:2] for line in told.stdout.splitlines())
    assert settings["heartbeat"] == "33"
    assert settings["listeners.tcp.default"] == f"127.0.0.1:{container.port}"
    assert settings["loopback_users.guest"] == "false"
    log = container.environment["LOG"]
    assert "RABBITMQ_ENABLED_PLUGINS_FILE: of its plugins Warren lacks rabbitmq_mqtt" in log
    assert "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: Warren does not run on Erlang" in log
    assert "rabbit.collect_statistics has no effect" in log


def test_data_are_in_the_volume(container: Container) -> None:
    assert (container.volume / "warren" / "node").is_file()


def check(container: Container, command: str) -> None:
    checked = container.run(*command.split())
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_usual_health_checks_of_compose_files_pass(container: Container) -> None:
    for command in ("ping", "check_running", "check_port_connectivity"):
        check(container, f"rabbitmq-diagnostics -q {command}")


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        "rabbitmq-diagnostics -q check_local_alarms",
        "rabbitmq-diagnostics -q check_virtual_hosts",
        "rabbitmq-diagnostics is_running",
        "rabbitmqctl node_health_check",
        "rabbitmqctl await_startup",
        "rabbitmqctl await_online_nodes 1",
        "rabbitmqctl -n rabbit@localhost status",
        "rabbitmqctl list_unresponsive_queues -p store",
        "rabbitmq-diagnostics is_booting",
        "rabbitmq-diagnostics check_if_node_is_quorum_critical",
        "rabbitmq-diagnostics check_if_node_is_mirror_sync_critical",
        "rabbitmq-diagnostics memory_breakdown --unit MB",
        "rabbitmq-upgrade await_online_quorum_plus_one",
        "rabbitmq-upgrade await_online_synchronized_mirror",
        "rabbitmq-upgrade post_upgrade",
        "rabbitmq-queues rebalance all",
        "rabbitmq-plugins enable --offline rabbitmq_management",
        "rabbitmqctl -q list_queues -p store --online name",
        "rabbitmqctl -q list_queues -p store --offline name slave_pids",
        "rabbitmqctl list_vhost_limits --global",
        "rabbitmqctl list_user_limits --global",
    ],
)
def test_commands_of_probes_and_scripts_pass(container: Container, command: str) -> None:
    check(container, command)


def test_lists_are_what_scripts_parse(container: Container) -> None:
    # Ansible's modules, Chef and Nagios read these.
    def told(*words: str) -> str:
        return container.run("rabbitmqctl", *words).stdout

    assert json.loads(told("list_users", "--formatter", "json")) == [
        {"user": "shop", "tags": ["administrator"]}
    ]
    assert told("list_vhosts", "name", "tracing", "-q") == "name\ttracing\nstore\tfalse\n"
    assert (
        container.run("warren", "queues", "declare", "-p", "store", "q", "-a", "x-max-length=10").returncode
        == 0
    )
    assert told("list_queues", "-p", "store", "name", "arguments", "slave_pids") == (
        "Timeout: 60.0 seconds ...\nListing queues for vhost store ...\n"
        'name\targuments\tslave_pids\nq\t[{"x-max-length",10}]\t\n'
    )
    assert told("list_queues", "-p", "store", "--online", "--local", "-s", "name") == "q\n"
    assert told("list_queues", "-p", "store", "--offline", "-q", "name") == ""
    (binding,) = json.loads(told("list_bindings", "-p", "store", "--formatter", "json"))
    assert binding == {
        "source_name": "", "source_kind": "exchange", "destination_name": "q", "destination_kind": "queue",
        "routing_key": "q", "arguments": [],
    }  # fmt: skip


def test_limits_are_json_or_a_table_of_all(container: Container) -> None:
    assert container.run("rabbitmqctl", "list_vhost_limits", "-q", "-p", "store").stdout == "{}\n"
    container.run("rabbitmqctl", "set_vhost_limits", "-p", "store", '{"max-queues": 5}')
    told = container.run("rabbitmqctl", "list_vhost_limits", "-q", "-p", "store")
    assert told.stdout == '{"max-queues":5}\n'
    told = container.run("rabbitmqctl", "list_vhost_limits", "-q", "--global")
    assert told.stdout == 'vhost\tlimits\nstore\t{"max-queues":5}\n'


PREPARE = """\
set -e
export SYS_PREFIX=$FOLDER
rabbitmq-server -detached
rabbitmqctl wait --timeout 60 "$RABBITMQ_PID_FILE"
rabbitmqctl add_user app secret
rabbitmqctl shutdown
docker-entrypoint.sh rabbitmq-server &
rabbitmqctl wait --timeout 60 --pid $!
rabbitmqctl list_users -q
rabbitmqctl stop "$RABBITMQ_PID_FILE"
wait
rabbitmqctl stop --idempotent
"""


def test_a_script_starts_the_broker_waits_for_it_and_stops_it_as_it_does_with_rabbitmq(
    tmp_path: Path,
) -> None:
    container = Container(tmp_path, RABBITMQ_NODE_PORT=str(free_port()), FOLDER=str(tmp_path))
    container.environment["WARREN_URI"] = f"http://127.0.0.1:{container.management_port}"
    names = tmp_path / "bin"
    names.mkdir()
    for name in ("docker-entrypoint.sh", "rabbitmq-server"):
        (names / name).symlink_to(SCRIPT)
    container.environment["PATH"] = f"{names}:{container.environment['PATH']}"
    script = tmp_path / "prepare.sh"
    script.write_text(PREPARE)
    prepared = container.start("sh", str(script))
    output, _ = prepared.communicate()
    assert prepared.returncode == 0, output
    (host, *_) = socket.gethostname().split(".")
    file = container.volume / f"mnesia/rabbit@{host}.pid"
    lines = [re.sub(r"\d+", "N", line) for line in output.splitlines()]
    for line in (
        f"Waiting for pid file '{file}' to appear",
        "pid is N",
        'Adding user "app" ...',
        "app\t[]",
    ):
        assert re.sub(r"\d+", "N", line) in lines, output
    assert sum("successfully shut down" in line for line in lines) == 1
    assert sum("Stopping and halting node" in line for line in lines) == 1
    assert "is no longer running" in lines[-1]
    assert not file.exists()


def test_a_health_check_fails_with_the_status_of_rabbitmq_when_the_broker_is_gone(tmp_path: Path) -> None:
    assert Container(tmp_path).run("rabbitmq-diagnostics", "-q", "ping").returncode == 69


def test_any_other_command_is_run(tmp_path: Path) -> None:
    shown = Container(tmp_path).start("warren", "config", "show", "--changed")
    output, _ = shown.communicate()
    assert shown.returncode == 0, output
    assert f"data_dir = {tmp_path}/var/lib/rabbitmq/warren" in output


def test_a_volume_that_a_variable_names_has_the_data(tmp_path: Path) -> None:
    shown = Container(tmp_path, RABBITMQ_MNESIA_BASE="/data").start("warren", "config", "show", "--changed")
    assert "data_dir = /data/warren" in shown.communicate()[0]


def test_the_image_has_what_its_dockerfile_copies() -> None:
    dockerfile = (DOCKER / "Dockerfile").read_text()
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    for file in (SCRIPT, DOCKER / "10-defaults.conf"):
        place = f"deploy/docker/{file.name}"
        assert f"COPY {place} " in dockerfile
        assert f"!{place}" in ignored
    assert os.access(SCRIPT, os.X_OK)
    assert "for name in docker-entrypoint.sh rabbitmq-server; do" in dockerfile
