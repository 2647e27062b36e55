"""The `warren` command."""

import click

from warren import __version__
from warren.cli.perf.command import perf
from warren.cli.server import serve


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="warren")
def main() -> None:
    """A message broker that RabbitMQ's applications can switch to unchanged."""


main.add_command(serve)
main.add_command(perf)

if __name__ == "__main__":
    main()
