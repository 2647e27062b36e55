"""Metrics for Prometheus, under RabbitMQ's names."""

import platform
from collections.abc import Callable, Iterable

from aiohttp import web

from warren import __version__
from warren.flow.alarms import Resource
from warren.management.managed import Managed, VhostView
from warren.management.views.overview import totals
from warren.session.greeting import COMPATIBLE_VERSION

_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HELP = {
    "connections": "Connections currently open",
    "channels": "Channels currently open",
    "consumers": "Consumers currently connected",
    "queues": "Queues available",
}
_ALARMS = {
    Resource.DISK: ("free_disk_space_watermark", "is 1 if free disk space watermark alarm is in effect"),
    Resource.MEMORY: ("memory_used_watermark", "is 1 if VM memory watermark alarm is in effect"),
}
# Octets, and their limit.
_LEVELS = {
    Resource.DISK: (
        ("disk_space_available_bytes", "Disk space available in bytes"),
        ("disk_space_available_limit_bytes", "Free disk space low watermark in bytes"),
    ),
    Resource.MEMORY: (
        ("process_resident_memory_bytes", "Memory used in bytes"),
        ("resident_memory_limit_bytes", "Memory high watermark in bytes"),
    ),
}
_VHOST: dict[str, tuple[str, Callable[[VhostView], int]]] = {
    "warren_vhost_running": (
        "Whether clients can work in the virtual host",
        lambda vhost: int(vhost.is_running),
    ),
    "warren_vhost_disk_full": (
        "Whether confirms in the virtual host wait for room on the disk",
        lambda vhost: int(vhost.is_full),
    ),
    "warren_vhost_damaged_records": (
        "Places in the messages of the virtual host that could not be read when it was opened",
        lambda vhost: len(vhost.damage),
    ),
}


def metrics(request: web.Request, node: Managed) -> web.Response:
    """Every metric of this node."""
    identity = {"rabbitmq_node": node.node_name, "rabbitmq_cluster": node.cluster_name}
    counts = totals(node)
    lines = [
        *_gauge("rabbitmq_build_info", "RabbitMQ & Erlang/OTP version info", 1, _build()),
        *_gauge("rabbitmq_identity_info", "RabbitMQ node & cluster identity info", 1, identity),
    ]
    for name, text in _HELP.items():
        lines += _gauge(f"rabbitmq_{name}", text, counts[name], {})
    for resource, (name, text) in _ALARMS.items():
        lines += _gauge(f"rabbitmq_alarms_{name}", text, int(node.alarms.is_low(resource)), {})
        level = node.alarms.level(resource)
        if level is not None:
            for (name, text), value in zip(_LEVELS[resource], (level.octets, level.limit), strict=True):
                lines += _gauge(f"rabbitmq_{name}", text, value, {})
    vhosts = node.vhosts()
    for name, (text, count) in _VHOST.items():
        lines += _family(name, text, [({"vhost": vhost.name}, count(vhost)) for vhost in vhosts])
    return web.Response(body="\n".join([*lines, ""]).encode(), headers={"content-type": _TYPE})


def _build() -> dict[str, str]:
    return {
        "rabbitmq_version": COMPATIBLE_VERSION,
        "warren_version": __version__,
        "python_version": platform.python_version(),
    }


def _gauge(name: str, text: str, value: float, labels: dict[str, str]) -> list[str]:
    return _family(name, text, [(labels, value)])


def _family(name: str, text: str, values: Iterable[tuple[dict[str, str], float]]) -> list[str]:
    lines = [f"# TYPE {name} gauge", f"# HELP {name} {text}"]
    for labels, value in values:
        written = ",".join(f'{label}="{_escape(of)}"' for label, of in labels.items())
        lines.append(f"{name}{{{written}}} {value}" if written else f"{name} {value}")
    return lines


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
