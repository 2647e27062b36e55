"""The text that Prometheus reads (exposition format 0.0.4)."""

from collections.abc import Iterator
from dataclasses import dataclass

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

GAUGE = "gauge"
COUNTER = "counter"
UNTYPED = "untyped"
SUMMARY = "summary"

_SCRAPED: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("telemetry_scrape_size_bytes", "Scrape size, not encoded", {}),
    ("telemetry_scrape_duration_seconds", "Scrape duration", {}),
    ("telemetry_scrape_encoded_size_bytes", "Scrape size, encoded", {"encoding": "identity"}),
)


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """One metric: what it is called without `rabbitmq_` in front, and what it says."""

    name: str
    kind: str
    text: str
    # What it was called before; it is exposed under both names.
    deprecated_name: str = ""

    def deprecated(self) -> "MetricFamily":
        """The same family under its deprecated name."""
        return MetricFamily(self.deprecated_name, self.kind, f"Deprecated: use {self.name}. {self.text}")


class ScrapeStatistics:
    """What scrapes came to, by registry: a summary of each, as RabbitMQ has it."""

    def __init__(self) -> None:
        # How many, how many octets, how many seconds.
        self._by_registry: dict[str, tuple[int, int, float]] = {}

    def note(self, registry: str, size: int, seconds: float) -> None:
        """One is over."""
        count, octets, took = self._by_registry.get(registry, (0, 0, 0.0))
        self._by_registry[registry] = count + 1, octets + size, took + seconds

    def text(self) -> str:
        """Those that are over."""
        return "".join(self._summaries())

    def _summaries(self) -> Iterator[str]:
        for name, text, encoding in _SCRAPED:
            yield head(name, MetricFamily(name, SUMMARY, text))
            for registry, (count, octets, seconds) in self._by_registry.items():
                about = labels(registry=registry, content_type=CONTENT_TYPE, **encoding)
                yield line(f"{name}_count", about, count)
                yield line(f"{name}_sum", about, seconds if "duration" in name else octets)


def head(name: str, family: MetricFamily) -> str:
    """The lines in front of the values of `family`, which is called `name`."""
    return f"# TYPE {name} {family.kind}\n# HELP {name} {family.text}\n"


def line(name: str, labels: str, value: float) -> str:
    """One value, for what `labels` say."""
    return f"{name}{{{labels}}} {value}\n" if labels else f"{name} {value}\n"


def labels(**of: str) -> str:
    """What a value is about."""
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in of.items())


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        value = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    # A name that is no UTF-8 is shown as far as it is.
    return value.encode("utf-8", "replace").decode() if not value.isascii() else value
