"""The text format of Prometheus (exposition format 0.0.4)."""

from collections.abc import Iterator

from msgspec import Struct

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


class MetricFamily(Struct, frozen=True):
    """A metric family: its name without the prefix `rabbitmq_`, its type and its help text."""

    name: str
    kind: str
    text: str
    # The deprecated name; the family is exposed under both names.
    deprecated_name: str = ""

    def deprecated(self) -> "MetricFamily":
        """This family under its deprecated name."""
        return MetricFamily(self.deprecated_name, self.kind, f"Deprecated: use {self.name}. {self.text}")


class ScrapeStatistics:
    """Summaries of the durations and sizes of scrapes by registry, as in RabbitMQ."""

    def __init__(self) -> None:
        # The count of scrapes, their bytes and their seconds.
        self._by_registry: dict[str, tuple[int, int, float]] = {}

    def note(self, registry: str, size: int, seconds: float) -> None:
        """Count a finished scrape of `size` bytes."""
        count, byte_count, took = self._by_registry.get(registry, (0, 0, 0.0))
        self._by_registry[registry] = count + 1, byte_count + size, took + seconds

    def text(self) -> str:
        """The summaries of the finished scrapes as text."""
        return "".join(self._summaries())

    def _summaries(self) -> Iterator[str]:
        for name, text, encoding in _SCRAPED:
            yield head(name, MetricFamily(name, SUMMARY, text))
            for registry, (count, byte_count, seconds) in self._by_registry.items():
                about = labels(registry=registry, content_type=CONTENT_TYPE, **encoding)
                yield line(f"{name}_count", about, count)
                yield line(f"{name}_sum", about, seconds if "duration" in name else byte_count)


def head(name: str, family: MetricFamily) -> str:
    """The TYPE and HELP lines of `family` under the name `name`."""
    return f"# TYPE {name} {family.kind}\n# HELP {name} {family.text}\n"


def line(name: str, labels: str, value: float) -> str:
    """A sample line; `labels` may be empty."""
    return f"{name}{{{labels}}} {value}\n" if labels else f"{name} {value}\n"


def labels(**of: str) -> str:
    """The text of labels, with escaped values."""
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in of.items())


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        value = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    # Bytes of a name that are not UTF-8 are replaced.
    return value.encode("utf-8", "replace").decode() if not value.isascii() else value
