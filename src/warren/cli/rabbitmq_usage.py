"""The usage of a command as RabbitMQ's tools print it after a wrong call."""

import click

_BEFORE = "[--node <node>] [--longnames] [--quiet]"


def usage_lines(context: click.Context | None) -> list[str]:
    """Return the usage of the command of `context`; of the tool, if it has none."""
    if context is None:
        return ["Usage"]
    root = context.find_root()
    if context is root:
        return ["Usage", "", f"{root.info_name} {_BEFORE} <command> [<command options>]"]
    words = [str(root.info_name), _BEFORE, str(context.info_name), *_arguments(context.command)]
    return ["Usage", "", " ".join(words)]


def _arguments(command: click.Command) -> list[str]:
    """Return the arguments of a command, and its options that are shown in its help."""
    words = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            name = f"<{(parameter.name or '').replace('_', '-')}>"
            name += " ..." if parameter.nargs == -1 else ""
            words.append(name if parameter.required else f"[{name}]")
        elif isinstance(parameter, click.Option) and not parameter.hidden:
            name = parameter.opts[-1]
            words.append(f"[{name}]" if parameter.is_flag else f"[{name} <{parameter.name}>]")
    return words
