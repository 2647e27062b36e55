"""Deprecated names of commands and options."""

import click
import pytest

from warren.cli.deprecated_names import COMMANDS, OPTIONS, current_words
from warren.cli.main import main


def command_of(group: str, name: str) -> click.Command | None:
    context = click.Context(main)
    found = main.get_command(context, group)
    assert isinstance(found, click.Group)
    return found.get_command(context, name)


@pytest.mark.parametrize(("group", "old"), COMMANDS)
def test_a_renamed_command_is_declared_under_its_new_name_only(group: str, old: str) -> None:
    assert command_of(group, old) is None
    assert command_of(group, COMMANDS[group, old]) is not None


@pytest.mark.parametrize(("group", "command"), OPTIONS)
def test_a_renamed_option_is_declared_under_its_new_name_only(group: str, command: str) -> None:
    found = command_of(group, command)
    assert found is not None
    declared = {name for parameter in found.params for name in parameter.opts}
    assert set(OPTIONS[group, command].values()) <= declared
    assert not set(OPTIONS[group, command]) & declared


def test_deprecated_words_are_replaced_with_a_warning_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert current_words("queues", ["return", "q", "--all"]) == ["requeue", "q", "--all"]
    words = ["redrive", "q", "--died-in=a", "--came-by", "b", "--", "--died-in"]
    assert current_words("dead-letters", words) == [
        "redrive", "q", "--first-death-queue=a", "--first-death-exchange", "b", "--", "--died-in",
    ]  # fmt: skip
    notes = capsys.readouterr()
    assert notes.out == ""
    assert notes.err.splitlines() == [
        "note: 'warren queues return' is deprecated: use 'warren queues requeue'",
        "note: '--died-in' is deprecated: use '--first-death-queue'",
        "note: '--came-by' is deprecated: use '--first-death-exchange'",
    ]


def test_current_words_are_unchanged_and_completion_prints_no_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert current_words("queues", ["requeue", "q"]) == ["requeue", "q"]
    assert current_words("exchanges", ["return"]) == ["return"]
    assert current_words("queues", []) == []
    assert current_words("log", ["level", "info"], is_silent=True) == ["set-level", "info"]
    assert capsys.readouterr().err == ""
