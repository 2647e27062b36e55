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
    identity = {"rabbitmq_node": node.node_name, "rabbitmq_cluster": node.cluster_name}
    counts = totals(node)
    lines = [
        *_gauge("rabbitmq_build_info", "RabbitMQ & Erlang/OTP version info", 1, _build()),
        *_gauge("rabbitmq_identity_info", "RabbitMQ node & cluster identity info", 1, identity),
    ]
    for name, text in _HELP.items():
        lines += _gauge(f"rabbitmq_{name}", text, counts[name], {})
    return web.Response(body="\n".join([*lines, ""]).encode(), headers={"content-type": _TYPE})


def _build() -> dict[str, str]:
    return {
        "rabbitmq_version": COMPATIBLE_VERSION,
        "warren_version": __version__,
        "python_version": platform.python_version(),
    }


def _gauge(name: str, text: str, value: float, labels: dict[str, str]) -> list[str]:
    written = ",".join(f'{label}="{_escape(of)}"' for label, of in labels.items())
    where = f"{{{written}}}" if written else ""
    return [f"# TYPE {name} gauge", f"# HELP {name} {text}", f"{name}{where} {value}"]


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
