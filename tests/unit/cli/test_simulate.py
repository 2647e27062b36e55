"""`warren simulate`: prints what was survived, and how to repeat what was not."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from warren.cli.simulate import simulate
from warren.simulation.actions import Action
from warren.simulation.simulation import Simulation

DEFINITIONS = {
    "vhosts": [{"name": "/"}, {"name": "shop"}],
    "queues": [
        {"name": "orders", "vhost": "shop", "durable": True, "auto_delete": False, "arguments": {}},
        {"name": "short", "vhost": "shop", "durable": True, "auto_delete": False, "arguments": {}},
        {"name": "all", "vhost": "/", "durable": True, "auto_delete": False,
         "arguments": {"x-queue-type": "stream"}},
    ],
    "policies": [
        {"name": "p", "vhost": "shop", "pattern": "^short$", "definition": {"max-length": 2}},
    ],
}  # fmt: skip


def test_it_prints_what_was_survived() -> None:
    result = CliRunner().invoke(simulate, ["--seed", "3", "--seeds", "2", "--actions", "40"])
    assert result.exit_code == 0, result.output
    assert "2 seeds, 80 actions" in result.output
    assert "lost 0" in result.output


def test_it_uses_the_queues_of_a_definitions_file(tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(DEFINITIONS))
    result = CliRunner().invoke(simulate, ["--seeds", "2", "--actions", "60", "--definitions", str(file)])
    assert result.exit_code == 0, result.output
    assert "simulating 3 queues" in result.output


def test_a_definitions_file_that_cannot_be_imported_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.write_text("{")
    result = CliRunner().invoke(simulate, ["--definitions", str(file)])
    assert result.exit_code == 2
    assert "definitions file" in result.output


def test_it_prints_how_to_repeat_a_violation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    perform = Simulation.perform

    def fail(self: Simulation, action: Action) -> None:
        perform(self, action)
        raise ValueError("planted")

    monkeypatch.setattr(Simulation, "perform", fail)
    result = CliRunner().invoke(simulate, ["--seeds", "1", "--actions", "8"])
    assert result.exit_code == 1
    assert "seed 0: unexpected ValueError: planted" in result.output
    assert "1 actions are enough" in result.output
    file = tmp_path / "actions.json"
    file.write_text(result.output.splitlines()[-1])
    repeated = CliRunner().invoke(simulate, ["--repeat", str(file)])
    assert repeated.exit_code == 1, repeated.exception
    assert repeated.output == "unexpected ValueError: planted\n"
    monkeypatch.undo()
    repeated = CliRunner().invoke(simulate, ["--repeat", str(file)])
    assert (repeated.exit_code, repeated.output) == (0, "1 actions break nothing\n")
