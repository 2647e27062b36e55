"""Commands as they are started in a terminal and by spark-submit, each in its own process."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.spark.brokers import STREAM, BrokerUnderTest
from tests.spark.commands import COMMAND_S_MAX, environment
from tests.warren_process import PROGRAM

from warren.cli.operator.failures import Failure
from warren.cli.spark.options import SparkSettings
from warren.cli.spark.session import spark_session

SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
# The program that the guide submits.
APPLICATION = "from warren.cli.spark.command import spark\n\nspark()\n"
INTERRUPTED = 130


class Terminal:
    """A command in its own process group, as a shell starts it: Ctrl-C reaches all of the group."""

    def __init__(self, place: BrokerUnderTest, folder: Path, arguments: Sequence[str]) -> None:
        self._said = folder / "stderr"
        # The tests may run unbuffered; a user's command does not.
        reported = {name: value for name, value in environment(place).items() if name != "PYTHONUNBUFFERED"}
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, "spark", *arguments], env=reported, cwd=folder,
                stdout=subprocess.PIPE, stderr=said, start_new_session=True,
            )  # fmt: skip

    def read_until(self, text: str) -> str:
        """The output, up to `text`."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + COMMAND_S_MAX
        printed = b""
        while text.encode() not in printed:
            is_there, _, _ = select.select([self.process.stdout], [], [], deadline - time.monotonic())
            data = os.read(self.process.stdout.fileno(), 65_536) if is_there else b""
            assert data, f"{printed!r} has no {text!r}; {self._said.read_text()}"
            printed += data
        return printed.decode()

    def interrupt(self) -> tuple[int, str]:
        """Press Ctrl-C; returns the status and the error output."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(COMMAND_S_MAX), self._said.read_text()


@contextmanager
def terminal(place: BrokerUnderTest, folder: Path, *arguments: str) -> Iterator[Terminal]:
    """A command that is killed if it has not ended."""
    found = Terminal(place, folder, arguments)
    try:
        yield found
    finally:
        if found.process.poll() is None:
            os.killpg(found.process.pid, signal.SIGKILL)
        found.process.wait()
        assert found.process.stdout is not None
        found.process.stdout.close()


@pytest.mark.long
def test_a_command_whose_output_pipe_is_closed_ends_silently(warren: BrokerUnderTest, tmp_path: Path) -> None:
    query = "select repeat('x', 100) from range(10000)"
    with terminal(warren, tmp_path, "sql", query, "--limit", "10000") as command:
        assert command.process.stdout is not None
        command.process.stdout.close()
        assert command.process.wait(COMMAND_S_MAX) == 1
        assert "ipe" not in (tmp_path / "stderr").read_text()


@pytest.mark.long
def test_a_watched_query_shows_new_messages_and_ends_silently_on_ctrl_c(
    warren: BrokerUnderTest, tmp_path: Path
) -> None:
    warren.declare("watched")
    warren.publish("watched", [b"1", b"2"])
    query = "select 'n=' || count(*) as found from queue.watched"
    with terminal(warren, tmp_path, "sql", query, "--watch", "0.2", "--master", "local[1]") as watching:
        watching.read_until("n=2")
        warren.publish("watched", [b"3"])
        watching.read_until("n=3")
        status, said = watching.interrupt()
    assert status == 0, said
    assert all(line.startswith("warren: ") for line in said.splitlines()), said
    assert warren.count("watched") == 3


def test_an_interrupted_archive_says_so_in_one_line_and_can_be_continued(
    warren: BrokerUnderTest, tmp_path: Path
) -> None:
    warren.declare("interrupted", STREAM)
    warren.publish("interrupted", [b"1", b"2"])
    arguments = ("archive", "--queue", "interrupted", "--to", "lake", "--master", "local[1]")
    with terminal(warren, tmp_path, *arguments, "--interval", "1 second") as archiving:
        archiving.read_until("committed 2 rows")
        status, said = archiving.interrupt()
    assert status == INTERRUPTED, said
    assert said.splitlines()[-1] == "warren: interrupted"
    assert all(line.startswith("warren: ") for line in said.splitlines()), said
    assert DeltaTable(tmp_path / "lake").to_pyarrow_table().num_rows == 2


def test_errors_during_the_end_of_an_interrupted_command_are_not_shown(spark: SparkSession) -> None:
    settings = SparkSettings(
        broker={},
        master="local",
        remote=None,
        configuration={},
        is_json=False,
        is_quiet=True,
        is_verbose=False,
    )

    def interrupted() -> None:
        with spark_session(settings, "nothing"):
            try:
                raise KeyboardInterrupt
            finally:
                raise ConnectionResetError("Java does not answer any more")

    with pytest.raises(Failure, match="interrupted") as failure:
        interrupted()
    assert failure.value.exit_code == INTERRUPTED


def submit(place: BrokerUnderTest, folder: Path, *arguments: str) -> str:
    """The output of a command that spark-submit has started."""
    application = folder / "warren_spark.py"
    application.write_text(APPLICATION)
    ended = subprocess.run(
        [SUBMIT, "--master", "local[2]", "--conf", "spark.ui.enabled=false", application, *arguments],
        env=environment(place) | {"SPARK_LOCAL_IP": "127.0.0.1"}, cwd=folder, capture_output=True, text=True,
        timeout=COMMAND_S_MAX, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.long
def test_spark_submit_runs_a_writing_and_a_reading_pipeline(warren: BrokerUnderTest, tmp_path: Path) -> None:
    warren.declare("submitted", STREAM)
    warren.publish("submitted", [b"%d" % number for number in range(20)])
    chosen = ("--queue", "submitted", "--to", "lake", "--available-now", "--batch-rows", "10", "--json", "-q")
    reported = [json.loads(line) for line in submit(warren, tmp_path, "archive", *chosen).splitlines()]
    committed = [(one["batch"], one["rows"]) for one in reported if one["stage"] == "committed"]
    assert committed == [(0, 10), (1, 10)]
    query = "select count(*) as n from lake.`lake` join stream.submitted using (offset)"
    assert json.loads(submit(warren, tmp_path, "sql", query, "--json", "-q")) == [{"n": 20}]
