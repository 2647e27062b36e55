"""The figures of repeated measurements, and tables of them."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from brokers import OLDER_RABBITMQ, RABBITMQ
from table import figure, ratio, table
from warren.cli.perf.result import Result

WARREN = "warren"
# In the order of the columns of all tables; ratios are those of RABBITMQ and WARREN.
NAMES = (RABBITMQ, OLDER_RABBITMQ, WARREN)


@dataclass(slots=True)
class Samples:
    """The figures of one measurement: by broker, a list with one dictionary for each run."""

    by_broker: dict[str, list[dict[str, float]]] = field(default_factory=dict)

    def add(self, broker: str, result: Result) -> None:
        """Add the figures of one run."""
        self.by_broker.setdefault(broker, []).append(result.figures)

    def median(self, broker: str, name: str) -> float | None:
        """Return the median of a figure; None if it was not measured."""
        values = [figures[name] for figures in self.by_broker.get(broker, []) if name in figures]
        return statistics.median(values) if values else None

    def ratio(self, name: str, *, is_rate: bool = False) -> float | None:
        """Return by which factor Warren's figure is better than RabbitMQ's: the median over the pairs.

        A lower figure is better, except for a rate.
        """
        pairs = zip(self.by_broker.get(RABBITMQ, []), self.by_broker.get(WARREN, []), strict=False)
        ratios = [
            ours[name] / theirs[name] if is_rate else theirs[name] / ours[name]
            for theirs, ours in pairs
            if theirs.get(name, 0) > 0 and ours.get(name, 0) > 0
        ]
        return statistics.median(ratios) if ratios else None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table: a figure of a measurement, and its text."""

    measurement: str
    name: str
    text: str
    promised: str = ""
    is_rate: bool = False


def measured_names(found: Mapping[str, Samples]) -> list[str]:
    """Return the brokers that were measured, in the order of NAMES."""
    return [name for name in NAMES if any(name in samples.by_broker for samples in found.values())]


def lines_table(lines: Sequence[Line], found: Mapping[str, Samples]) -> str:
    """Return a table of all lines, with the figure for each broker, and their ratio."""
    names = measured_names(found)
    rows = []
    for line in lines:
        samples = found[line.measurement]
        cells = [figure(samples.median(broker, line.name)) for broker in names]
        rows.append([line.text, *cells, ratio(samples.ratio(line.name, is_rate=line.is_rate)), line.promised])
    return table(["what", *names, "ratio", "promised"], rows)
