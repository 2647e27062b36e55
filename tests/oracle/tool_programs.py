"""Runs commands of RabbitMQ's tools: RabbitMQ's, all of them in one Erlang process, and Warren's in this one.

The process of `rabbitmqctl exec` has all commands of all tools: a tool takes seconds to start, and a command
milliseconds.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from click.testing import CliRunner
from tests import rabbitmq
from tests.patience import patient
from tests.warren_process import free_port

from warren.cli.rabbitmq_tools import run

# The node that does not run, after -n.
ABSENT_NODE = "nosuch@localhost"

_COMMANDS_S = patient(600)

# Runs each command as `main` of the tools does, with streams of its own, and keeps the reason of its exit,
# which is the status of a tool; if it fails otherwise, the status is 1. `exec` evaluates a program twice.
_ELIXIR = """
Logger.configure(level: :none)
:net_kernel.stop()
words = fn line -> line |> String.split(" ") |> Enum.map(&Base.decode64!/1) end
encoded = fn text -> text |> IO.iodata_to_binary() |> Base.encode64() end
ask = fn [input | arguments] ->
  {:ok, out} = StringIO.open(input)
  {:ok, errors} = StringIO.open("")
  before = Process.whereis(:standard_error)
  Process.unregister(:standard_error)
  Process.register(errors, :standard_error)
  {pid, monitor} =
    spawn_monitor(fn ->
      Process.group_leader(self(), out)
      RabbitMQCtl.MAIN(arguments)
    end)
  {status, crash} =
    receive do
      {:DOWN, ^monitor, _, _, {:shutdown, status}} -> {status, ""}
      {:DOWN, ^monitor, _, _, {error, _}} -> {1, "** " <> inspect(error)}
      {:DOWN, ^monitor, _, _, reason} -> {1, "** " <> inspect(reason)}
    after
      200_000 ->
        Process.exit(pid, :kill)
        {124, "does not end"}
    end
  Process.unregister(:standard_error)
  Process.register(before, :standard_error)
  {_, printed} = StringIO.contents(out)
  {_, failed} = StringIO.contents(errors)
  Enum.join([status, encoded.(printed), encoded.(failed <> crash)], " ")
end
unless File.exists?("PLACE.answers") do
  for line <- String.split(File.read!("PLACE"), "\\n", trim: true) do
    File.write!("PLACE.answers", ask.(words.(line)) <> "\\n", [:append])
  end
end
"""


def asked_of_rabbitmq(
    broker: rabbitmq.RabbitMQ, folder: Path, commands: Sequence[tuple[str, list[str]]]
) -> list[tuple[int, str, str]]:
    """The statuses, outputs and errors of commands, each with its input."""
    place, program = folder / "commands", folder / "commands.exs"
    lines = []
    for typed, (tool, *arguments) in commands:
        named = [] if tool == "rabbitmqctl" else ["--script-name", tool]
        lines.append(" ".join(_encoded(text) for text in (typed, *named, *arguments)))
    place.write_text("\n".join(lines))
    answers = place.with_suffix(".answers")
    answers.unlink(missing_ok=True)
    main = "main1" if broker.version() >= (4,) else "main"
    program.write_text(_ELIXIR.replace("PLACE", str(place)).replace("MAIN", main))
    broker.control("exec", f'Code.eval_file("{program}")', within_s=_COMMANDS_S)
    found = [line.split(" ") for line in answers.read_text().splitlines()]
    return [(int(status), _decoded(output), _decoded(errors)) for status, output, errors in found]


def asked_of_warren(uri: str, words: list[str], typed: str = "") -> tuple[int, str, str]:
    """The status, output and errors of a command of Warren's tools; there is no API of ABSENT_NODE."""
    tool, *arguments = words
    where = f"http://127.0.0.1:{free_port()}" if f"-n {ABSENT_NODE}" in " ".join(words) else uri
    with patch.dict(os.environ, {"WARREN_URI": where}), CliRunner().isolation(input=typed) as streams:
        status = run(tool, arguments)
        sys.stdout.flush()
        output, errors = streams[0].getvalue(), streams[1].getvalue()
    return status, output.decode(), errors.decode()


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode("utf-8", "replace")
