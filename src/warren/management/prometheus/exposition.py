"""The text that Prometheus reads (exposition format 0.0.4)."""

from dataclasses import dataclass

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

GAUGE = "gauge"
COUNTER = "counter"
UNTYPED = "untyped"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: what it is called without `rabbitmq_` in front, and what it says."""

    name: str
    kind: str
    text: str


def head(name: str, family: Family) -> str:
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
