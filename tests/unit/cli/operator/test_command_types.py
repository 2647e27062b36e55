"""Invariants of all declared commands."""

from collections import Counter

import click

from warren.cli.main import main
from warren.cli.operator.command_groups import COMMANDS
from warren.cli.operator.command_types import ListCommand, built


def test_command_names_are_unique() -> None:
    own = Counter((command.group, command.name) for command in COMMANDS)
    known = Counter(command.known_as for command in COMMANDS if command.known_as)
    assert not [name for name, count in (own | known).items() if count > 1]


def test_every_command_is_below_the_main_command() -> None:
    names = {command.group or command.name for command in COMMANDS}
    names |= {command.known_as for command in COMMANDS if command.known_as}
    # Listing them imports them; before that the group has none.
    assert names <= set(main.list_commands(click.Context(main)))


def test_no_command_declares_an_option_twice() -> None:
    for command in COMMANDS:
        for is_known_as in (False, True):
            parameters = built(command, is_known_as=is_known_as).params
            flags = Counter(flag for parameter in parameters for flag in parameter.opts)
            assert not [flag for flag, count in flags.items() if count > 1], (command.group, command.name)


def test_rabbitmqctl_uses_the_default_vhost_where_warren_uses_all() -> None:
    for command in COMMANDS:
        if isinstance(command, ListCommand) and command.within and command.chosen_by == "vhost":
            defaults = [
                parameter.default
                for is_known_as in (False, True)
                for parameter in built(command, is_known_as=is_known_as).params
                if parameter.name == "vhost"
            ]
            # rabbitmqctl's `shovel_status` lists all virtual hosts as well.
            assert defaults == [None, None if command.known_as == "shovel_status" else "/"]
