"""Commands about the process of a broker on this machine, without one, or with another program."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from warren.cli.operator.local_process import LOCAL_PROCESS
from warren.cli.rabbitmq_tools import run


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = run("rabbitmqctl", [*words, "--uri", "http://127.0.0.1:1"])
    return status, capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "No pid or pidfile specified"),
        (("file", "--pid", "1"), "Cannot specify both pid and pidfile"),
        (("file", "other"), "too many arguments."),
        (("--pid", "none"), "Invalid options for this command:\n--pid : none"),
    ],
)
def test_what_is_awaited_is_either_a_file_or_a_process(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    status, error = told(capsys, "wait", *words)
    assert (status, error.startswith(f"Error (argument validation): {sentence}\n")) == (64, True), error


def test_a_file_without_a_number_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in ("", "none\n", "\u00e4"):
        (tmp_path / "pid").write_text(content)
        assert told(capsys, "wait", str(tmp_path / "pid")) == (70, "Error: garbage in pid file.\n")
    status, error = told(capsys, "wait", str(tmp_path))
    assert (status, error) == (70, "Error: could not read pid. Detail: Is a directory\n")


def test_a_process_that_does_not_run_is_not_awaited(capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert told(capsys, "wait", "--pid", str(ended.pid)) == (70, "Error: process is not running.\n")
    assert told(capsys, "wait", "--pid", str(2**40)) == (70, "Error: process is not running.\n")


def test_a_file_of_a_process_that_has_ended_and_a_broker_that_does_not_answer_are_awaited_until_the_timeout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pid"
    for pid, problem in ((2**40, "does not run"), (os.getpid(), "cannot connect")):
        file.write_text(f"{pid}\n")
        status, error = told(capsys, "wait", str(file), "--timeout", "0.2")
        assert status == 75
        assert error.startswith("Error: operation wait on node rabbit@")
        assert "timed out. Timeout value used: 200\n" in error
        assert problem in error


def test_a_broker_that_does_not_answer_is_not_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("stop", "shutdown"):
        status, error = told(capsys, command)
        assert (status, "unable to perform an operation on node" in error) == (69, True)
    assert told(capsys, "stop", "--idempotent") == (0, "")


def test_the_commands_are_those_of_rabbitmq() -> None:
    assert [command.known_as for command in LOCAL_PROCESS] == ["wait", "stop", "shutdown"]
