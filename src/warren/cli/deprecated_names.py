"""Renamed commands and options: the old name works, is not in the help, and prints a hint to the new one."""

import click

# Current names of commands by group and old name.
COMMANDS: dict[tuple[str, str], str] = {
    ("queues", "return"): "requeue",
    ("streams", "add-super"): "add-super-stream",
    ("streams", "delete-super"): "delete-super-stream",
    ("leases", "give-back"): "release",
    ("nodes", "attempts"): "auth-attempts",
    ("nodes", "forget-attempts"): "reset-auth-attempts",
    ("nodes", "rename-cluster"): "set-cluster-name",
    ("log", "level"): "set-level",
}
# Current names of options by group, command and old name.
OPTIONS: dict[tuple[str, str], dict[str, str]] = {
    ("dead-letters", "redrive"): {
        "--died-in": "--first-death-queue",
        "--came-by": "--first-death-exchange",
    },
    ("exchanges", "route"): {"--misses": "--unmatched"},
    ("metadata", "recover"): {"--choose": "--source"},
    ("spark", "archive"): {
        "--pattern": "--queue-pattern",
        "--starting": "--starting-offsets",
        "--once": "--available-now",
    },
    ("spark", "decode"): {
        "--bad-to": "--dead-letter-exchange",
        "--bad-key": "--dead-letter-routing-key",
        "--bad-to-queue": "--dead-letter-queue",
        "--batch": "--batch-rows",
        "--once": "--available-now",
    },
}


def current_words(group: str, words: list[str], *, is_silent: bool = False) -> list[str]:
    """Return `words`, which follow the name of `group`, with current names in place of deprecated ones."""
    if not words:
        return words
    command, *rest = words
    if (group, command) in COMMANDS:
        current = COMMANDS[group, command]
        if not is_silent:
            _note(f"warren {group} {command}", f"warren {group} {current}")
        command = current
    renamed = OPTIONS.get((group, command), {})
    # Words after `--` are arguments, not options.
    end = rest.index("--") if "--" in rest else len(rest)
    for place, word in enumerate(rest[:end]):
        option, equals, value = word.partition("=")
        if option in renamed:
            if not is_silent:
                _note(option, renamed[option])
            rest[place] = renamed[option] + equals + value
    return [command, *rest]


def _note(old: str, new: str) -> None:
    click.echo(f"note: '{old}' is deprecated: use '{new}'", err=True)
