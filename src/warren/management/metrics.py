"""Metrics for Prometheus, under RabbitMQ's names."""

import platform

from aiohttp import web

from warren import __version__
from warren.management.api.overview import totals
from warren.management.managed import Managed
from warren.session.greeting import COMPATIBLE_VERSION

_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HELP = {
    "connections": "Connections currently open",
    "channels": "Channels currently open",
    "consumers": "Consumers currently connected",
    "queues": "Queues available",
}


def metrics(request: web.Request, node: Managed) -> web.Response:
    """Every metric of this node."""
    lines: list[str] = []
    _add(lines, "rabbitmq_build_info", "RabbitMQ & Erlang/OTP version info", 1, _build(node))
    identity = {"rabbitmq_node": node.node_name, "rabbitmq_cluster": node.cluster_name}
    _add(lines, "rabbitmq_identity_info", "RabbitMQ node & cluster identity info", 1, identity)
    counts = totals(node)
    for name, text in _HELP.items():
        _add(lines, f"rabbitmq_{name}", text, counts[name], {})
    return web.Response(body="\n".join([*lines, ""]).encode(), headers={"content-type": _TYPE})


def _build(node: Managed) -> dict[str, str]:
    return {
        "rabbitmq_version": COMPATIBLE_VERSION,
        "warren_version": __version__,
        "python_version": platform.python_version(),
    }


def _add(lines: list[str], name: str, text: str, value: float, labels: dict[str, str]) -> None:
    written = ",".join(f'{label}="{_escape(of)}"' for label, of in labels.items())
    lines.append(f"# TYPE {name} gauge")
    lines.append(f"# HELP {name} {text}")
    lines.append(f"{name}{{{written}}} {value}" if written else f"{name} {value}")


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
