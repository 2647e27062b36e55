"""`warren perf`: loads a broker, and prints rates, latencies and costs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from warren.cli.operator.tls import TLS_OPTIONS, tls_of, tls_options
from warren.cli.perf import capacity
from warren.cli.perf.load import Load
from warren.cli.perf.report import as_json, print_progress, print_setup, table
from warren.cli.perf.result import Result, traffic_result
from warren.cli.perf.traffic import run_traffic
from warren.cli.perf.worker_group import LoadFailed, Observer
from warren.cli.sections import SectionedGroup
from warren.client.errors import BrokerRefused
from warren.client.uri import DEFAULT_URI, Target, parse_uri

# The traffic scenarios: help text, and the defaults that differ from those of Load.
PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "throughput": ("Publish and consume as fast as the broker allows.", {}),
    "sync": (
        "Fifty connections; each waits for the confirm of a message before it sends the next.",
        {"producers": 50, "consumers": 50, "queues": 50, "confirm_window": 1},
    ),
    "fanout": (
        "One producer, a fanout exchange and --queues queues; every delivery counts as a message.",
        {"exchange_type": "fanout", "queues": 10, "consumers": 10},
    ),
    "topic": (
        "A topic exchange with --bindings patterns, each of which matches one routing key in turn.",
        {"exchange_type": "topic", "bindings": 1000},
    ),
    "writes": (
        "One message per system call, from one producer that does not wait for confirms.",
        {"messages_per_write": 1},
    ),
    "latency": (
        "Publish at a fixed --rate; latency is measured from when a message was due.",
        {"rate": 5000},
    ),
}
QUEUE_TYPES = ("classic", "quorum")
# The options of a traffic scenario: field of Load, help text, minimum.
NUMBERS = {
    "size": ("size of a body in bytes", 0),
    "producers": ("publishing connections", 1),
    "consumers": ("consuming connections", 0),
    "queues": ("queues; producers and consumers are distributed over them", 1),
    "bindings": ("bindings of a topic exchange", 0),
    "confirm_window": ("unconfirmed messages per producer; 0: without confirms", 0),
    "ack_every": ("messages per acknowledgement; 0: automatic acknowledgement", 0),
    "prefetch": ("unacknowledged messages per consumer; 0: no limit", 0),
    "messages_per_write": ("messages per system call; 0: as many as fit", 0),
    "in_flight_max": ("messages published and not yet consumed; 0: 8 MiB", 0),
    "waiting": ("messages kept in the queues by withholding acknowledgements", 0),
    "rate": ("messages per second of all producers; 0: unlimited", 0),
    "processes": ("processes of this tool", 1),
}
DEFAULTS = {name: field.default for name, field in Load.__dataclass_fields__.items()}


_SECTIONS = {
    "Messages": ("throughput", "latency", "sync", "fanout", "topic", "writes"),
    "Memory": ("connections", "queues", "backlog"),
    "Churn": ("churn", "declares"),
}


@click.group(cls=SectionedGroup, sections=_SECTIONS)
def perf() -> None:
    """Measure a broker: rates, latencies, CPU time and memory.

    Works with any AMQP 0-9-1 broker. With --broker-pid, the CPU time of the broker per message is printed
    beside that of this tool.
    """


def common_options() -> list[click.Parameter]:
    """Return the options of every scenario."""
    return [
        click.Option(
            ["--uri"], default=DEFAULT_URI, envvar="WARREN_PERF_URI", show_default=True, help="the broker"
        ),
        *tls_options(),
        click.Option(
            ["--broker-pid"], type=int, multiple=True, help="process id of the broker; can be repeated"
        ),
        click.Option(["--json", "is_json"], is_flag=True, help="print JSON instead of a table"),
        click.Option(["--quiet", "is_quiet"], is_flag=True, help="print no progress on standard error"),
    ]


def number_option(name: str, text: str, minimum: int, default: Any) -> click.Option:
    """Return an option with an integer value of at least `minimum`."""
    flag = "--" + name.replace("_", "-")
    return click.Option([flag], type=click.IntRange(minimum), default=default, show_default=True, help=text)


def seconds_option(name: str, text: str, default: float) -> click.Option:
    """Return an option with a duration in seconds."""
    return click.Option([name], type=click.FloatRange(0), default=default, show_default=True, help=text)


DURATION = seconds_option("--duration", "seconds measured", 5.0)


def _report(common: dict[str, Any], measure: Callable[[Target, Observer], Result]) -> None:
    """Run a scenario and print its result."""
    pids = common["broker_pid"]
    observer = Observer(pids) if common["is_quiet"] else Observer(pids, print_progress, print_setup)
    try:
        target = replace(parse_uri(common["uri"]), tls=tls_of(common))
        result = measure(target, observer)
    except (LoadFailed, BrokerRefused, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(as_json([result]) if common["is_json"] else table(result))


def _split(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate the common options from those of the scenario."""
    names = ("uri", *TLS_OPTIONS, "broker_pid", "is_json", "is_quiet")
    return {name: arguments[name] for name in names}, {
        name: value for name, value in arguments.items() if name not in names
    }


def _add_traffic(name: str, text: str, preset: dict[str, Any]) -> None:
    def run(**arguments: Any) -> None:
        common, own = _split(arguments)
        fixed = {"exchange_type": preset["exchange_type"]} if "exchange_type" in preset else {}
        settings = {
            "duration_s": own.pop("duration"),
            "warmup_s": own.pop("warmup"),
            "is_persistent": own.pop("persistent"),
            "queue_type": own.pop("queue_type") or "",
            **own,
        }
        shown = {key: value for key, value in settings.items() if value != DEFAULTS[key]}
        _report(
            common,
            lambda target, observer: traffic_result(
                name, shown, run_traffic(Load(target=target, **fixed, **settings), observer)
            ),
        )

    defaults = DEFAULTS | preset
    options: list[click.Parameter] = [
        number_option(option, help_text, minimum, defaults[option])
        for option, (help_text, minimum) in NUMBERS.items()
    ]
    options += [
        click.Option(["--persistent"], is_flag=True, help="persistent messages"),
        click.Option(
            ["--queue-type"],
            type=click.Choice(QUEUE_TYPES),
            help="type of the queues; by default what the broker declares",
        ),
        seconds_option("--warmup", "seconds before the measurement", 1.0),
        DURATION,
    ]
    perf.add_command(click.Command(name, params=options + common_options(), callback=run, help=text))


def _add_capacity(
    name: str, text: str, options: list[click.Parameter], measure: Callable[..., Result]
) -> None:
    def run(**arguments: Any) -> None:
        common, own = _split(arguments)
        _report(common, lambda target, observer: measure(target, observer=observer, **own))

    perf.add_command(click.Command(name, params=options + common_options(), callback=run, help=text))


def _backlog(target: Target, *, count: int, size: int, persistent: bool, observer: Observer) -> Result:
    return capacity.measure_backlog(target, capacity.BacklogLoad(count, size, persistent), observer)


for _name, (_text, _preset) in PRESETS.items():
    _add_traffic(_name, _text, _preset)
_add_capacity(
    "connections",
    "Memory per connection: idle, with a channel, with a queue and a consumer.",
    [number_option("count", "connections", 1, 1000)],
    capacity.measure_connections,
)
_add_capacity(
    "churn",
    "Open and close connections with a channel, repeatedly.",
    [number_option("processes", "number of processes", 1, 2), DURATION],
    capacity.measure_churn,
)
_add_capacity(
    "declares",
    "Declare queues one after another, each after the response to the previous one.",
    [click.Option(["--durable"], is_flag=True, help="durable queues; without it, exclusive ones"), DURATION],
    capacity.measure_declares,
)
_add_capacity(
    "queues",
    "Memory per queue.",
    [number_option("count", "queues", 1, 1000)],
    capacity.measure_queues,
)
_add_capacity(
    "backlog",
    "Memory per ready message, without its body.",
    [
        number_option("count", "messages", 1, 100_000),
        number_option("size", "size of a body in bytes", 0, 16),
        click.Option(["--persistent"], is_flag=True, help="persistent messages"),
    ],
    _backlog,
)
