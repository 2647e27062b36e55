"""The first program of the README and every page of the guide work against a started broker."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from tests import rabbitmq
from tests.integration.guide_pages import Step, steps
from tests.patience import patient
from tests.rabbitmq import RabbitMQ
from tests.user_environment import user_environment
from tests.warren_process import (
    WarrenProcess,
    free_port,
    start_warren,
    stop,
    wait_until_listening,
    warren_environment,
)

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "guide").glob("*.md"))
# Its load takes long; it is not needed after its connections are closed.
# A node that was in a cluster listens to other nodes on the default port when it starts again.
LEAVES_NOTHING = {"benchmarks", "clustering"}
COMMAND_S_MAX = patient(120)
# Texts of the pages, and their replacements for a test on a shared machine.
HTTP = "15672"
METRICS = "15692"
STREAMS = "5552"
# A page with a second broker starts it with these ports.
SECOND = ("15673", "15693", "5553", "5673")
CLUSTER = ("25672", "25673")
PORTS = (HTTP, METRICS, STREAMS, *CLUSTER, "5672", "5671", *SECOND)
# A page with commands that name it is tried with a RabbitMQ.
RABBITMQ = "rabbitmq:5672"
# A slow machine cannot process everything that `warren perf` may have in flight.
LOAD = ("--duration 1 ", "--duration 1 --in-flight-max 1000 ")
# Programs in the pages use the default port of their client, on which `warren serve` listens.
DEFAULT_PORT = "import pika.connection as c; c.Parameters.DEFAULT_PORT = {port}\n"


# Packages that pages say to install in addition to those of `make run`, with their dependencies.
INSTALLED = {
    "stream-protocol": ("rstream", "mmh3"),
    "clustering": (
        "celery", "kombu", "amqp", "vine", "billiard", "click-didyoumean", "click-plugins", "click-repl",
        "prompt_toolkit", "wcwidth", "python-dateutil", "six", "tzlocal",
    ),
}  # fmt: skip


class Reader:
    """A user with an empty directory who follows a page step by step."""

    def __init__(self, folder: Path, *packages: str) -> None:
        """`packages` are those that the page says to install."""
        self._folder = folder
        self._programs = user_environment(folder / ".venv-compiled", *packages)
        self._ports = {said: str(free_port()) for said in PORTS}
        self._broker: WarrenProcess | None = None
        self._second: WarrenProcess | None = None
        self._rabbitmq: RabbitMQ | None = None
        self._old_http = 0
        self._served = ""
        self._printed = ""
        (folder / "sitecustomize").mkdir()
        (folder / "sitecustomize" / "sitecustomize.py").write_text(
            DEFAULT_PORT.format(port=self._ports["5672"])
        )

    def follow(self, step: Step) -> None:
        """Execute one block."""
        if step.language == "sh" and "rabbitmq" in step.text and self._rabbitmq is None:
            self._start_rabbitmq()
        text = re.sub("|".join((RABBITMQ, *PORTS)), lambda found: self._ports[found[0]], step.text)
        if step.file:
            (self._folder / step.file).write_text(text)
        elif step.language == "sh":
            for command in text.replace(*LOAD).splitlines():
                self._run(command)
        elif step.language == "python":
            self._run(f"python -c {shlex.quote(text)}")
        elif step.language == "text":
            assert self._printed == step.text

    def serve(self, command: str = "warren serve") -> None:
        """Start the broker of the page in place of the previous one, unless they are equal."""
        if self._broker is not None and command == self._served == "warren serve":
            return
        if self._ports["5673"] in command:
            self._serve_second(command)
            return
        self._stop_warren()
        self._served = command
        arguments = shlex.split(command)[2:]
        if "--config" not in arguments:
            arguments += ["--port", self._ports["5672"]]
        elif "listeners.tcp" not in (self._folder / arguments[-1]).read_text():
            with (self._folder / arguments[-1]).open("a") as file:
                file.write(f"listeners.tcp.default = {self._ports['5672']}\n")
        arguments += ["--management-port", self._ports[HTTP], "--prometheus-port", self._ports[METRICS]]
        arguments += ["--stream-port", self._ports[STREAMS]]
        self._broker = start_warren(
            self._folder, int(self._ports["5672"]), *arguments,
            environment={"XDG_DATA_HOME": str(self._folder / "share")},
            command=(str(self._programs / "warren"),),
        )  # fmt: skip
        for port in (HTTP, METRICS):
            wait_until_listening(self._broker.process, int(self._ports[port]), self._broker.log)

    def leave(self) -> None:
        """Stop all brokers; those of Warren must end with status 0."""
        try:
            self._stop_warren()
        finally:
            if self._rabbitmq is not None:
                self._rabbitmq.stop()
                self._rabbitmq = None

    def _stop_warren(self) -> None:
        for broker in (self._broker, self._second):
            if broker is not None:
                stop(broker.process)
                assert broker.process.returncode == 0, broker.log.read_text()
        self._broker = self._second = None

    def _serve_second(self, command: str) -> None:
        """Start a broker beside the first; the page says all of its ports and its data directory."""
        if self._second is None:
            self._second = start_warren(
                self._folder, int(self._ports["5673"]), *shlex.split(command)[2:],
                command=(str(self._programs / "warren"),),
            )  # fmt: skip
            for port in ("15673", "15693"):
                wait_until_listening(self._second.process, int(self._ports[port]), self._second.log)

    def _start_rabbitmq(self) -> None:
        if not rabbitmq.is_installed():
            pytest.skip("rabbitmq-server is not installed")
        folder = self._folder / "rabbitmq"
        folder.mkdir()
        self._old_http = free_port()
        settings = f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {self._old_http}\n"
        self._rabbitmq = RabbitMQ(folder, settings=settings, plugins=("rabbitmq_management",))
        self._ports[RABBITMQ] = f"127.0.0.1:{self._rabbitmq.port}"
        self._rabbitmq.start()

    def _run(self, command: str) -> None:
        if command.startswith("warren serve"):
            self.serve(command)
            return
        environment = warren_environment()
        environment["WARREN_URI"] = f"http://127.0.0.1:{self._ports[HTTP]}"
        environment["PYTHONPATH"] = str(self._folder / "sitecustomize")
        environment["PATH"] = os.pathsep.join([str(self._programs), environment["PATH"]])
        if self._rabbitmq is not None:
            environment["WARREN_OLD_MANAGEMENT_URI"] = f"http://127.0.0.1:{self._old_http}"
            environment |= self._rabbitmq.environment
            environment["PATH"] = os.pathsep.join([str(rabbitmq.SERVER.parent), environment["PATH"]])
        result = subprocess.run(
            ["bash", "-ec", command], cwd=self._folder, env=environment, capture_output=True, text=True,
            timeout=COMMAND_S_MAX, check=False,
        )  # fmt: skip
        assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
        self._printed = result.stdout


def with_duration(page: Path) -> ParameterSet:
    """Return the page as a parameter; one that starts RabbitMQ takes long."""
    has_rabbitmq = any(step.language == "sh" and "rabbitmq" in step.text for step in steps(page))
    return pytest.param(page, id=page.stem, marks=[pytest.mark.long] if has_rabbitmq else [])


# The longest page starts a RabbitMQ and a second broker.
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", [with_duration(page) for page in PAGES])
def test_every_command_of_the_page_works(page: Path, tmp_path: Path) -> None:
    reader = Reader(tmp_path, *INSTALLED.get(page.stem, ()))
    try:
        for step in steps(page):
            reader.follow(step)
    finally:
        reader.leave()


@pytest.mark.long
# All pages have some two hundred commands: 189 s on a machine loaded to ten times its cores.
@pytest.mark.timeout(600)
def test_the_pages_can_be_followed_one_after_the_other_with_one_broker(tmp_path: Path) -> None:
    """What a page leaves in the broker and its directory does not affect other pages."""
    reader = Reader(tmp_path, *{package for packages in INSTALLED.values() for package in packages})
    at = ""
    try:
        for page in (page for page in PAGES if page.stem not in LEAVES_NOTHING):
            for step in steps(page):
                at = f"{page.stem}: {step.text}"
                reader.follow(step)
    except AssertionError as error:
        raise AssertionError(at) from error
    finally:
        reader.leave()


def test_a_refused_request_of_the_guide_prints_the_reason() -> None:
    """curl prints the answer with the reason, ends with an error, and reports an unreachable broker."""
    requests = [
        line for page in PAGES for step in steps(page) for line in step.text.splitlines() if "curl " in line
    ]
    assert len(requests) > 30
    assert [line for line in requests if "curl --fail-with-body -sS" not in line] == []


def test_the_first_program_of_the_readme_prints_its_greeting(tmp_path: Path) -> None:
    found = steps(ROOT / "README.md")
    # The commands before it are `make run`, which is done here, and `make test`.
    first = next(at for at, step in enumerate(found) if step.language == "python")
    program, command, printed = found[first : first + 3]
    assert (program.file, command.text) == ("first.py", ".venv-compiled/bin/python first.py\n")
    assert printed == Step("text", "Hello, Warren!\n", "")
    reader = Reader(tmp_path)
    try:
        reader.serve()
        for step in (program, command, printed):
            reader.follow(step)
    finally:
        reader.leave()
    assert len(program.text.splitlines()) <= 10


def test_every_program_of_the_guide_is_found() -> None:
    assert len([step for page in PAGES for step in steps(page) if step.language == "python"]) >= 4
