"""What RabbitMQ's tools say of a node and its cluster, with their fields and types."""

import socket
from collections.abc import Mapping
from typing import Any

from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.session import Session

# What a listener is for, by protocol.
_PURPOSES = {
    "amqp": "AMQP 0-9-1",
    "amqp/ssl": "AMQP 0-9-1 over TLS",
    "http": "HTTP API",
    "https": "HTTP API over TLS (HTTPS)",
    "http/prometheus": "Prometheus exporter API over HTTP",
    "https/prometheus": "Prometheus exporter API over TLS (HTTPS)",
    "stream": "stream",
    "stream/ssl": "stream over TLS",
    "clustering": "inter-node communication",
}
# The resource of an alarm, and its name in a sentence, by the field of a node.
_ALARMS = {"mem_alarm": ("memory", "Memory"), "disk_free_alarm": ("disk", "Free disk space")}
_RELATIVE, _ABSOLUTE = "vm_memory_high_watermark.relative", "vm_memory_high_watermark.absolute"


def node_name(given: str | None) -> str:
    """Return the name of the node that a command asks, as its option --node or the default says."""
    host = socket.gethostname().partition(".")[0]
    name = given or "rabbit"
    return name if "@" in name else f"{name}@{host}"


def this_node(session: Session) -> str:
    """Return the name of the node that the commands reach."""
    name: str = session.api.get("/overview", [("columns", "node")])["node"]
    return name


def listeners_of(overview: Row) -> list[Row]:
    """Return the listeners of all nodes."""
    return [
        {
            "interface": f"[{each['ip_address']}]" if ":" in each["ip_address"] else each["ip_address"],
            "node": each["node"],
            "port": each["port"],
            "protocol": each["protocol"],
            "purpose": _PURPOSES.get(each["protocol"], each["protocol"]),
        }
        for each in overview["listeners"]
    ]


def own_listeners(session: Session) -> tuple[str, list[Row]]:
    """Return the name of the node that the commands reach, and its listeners."""
    overview: Row = session.api.get("/overview", [("columns", "node,listeners")])
    node: str = overview["node"]
    return node, [each for each in listeners_of(overview) if each["node"] == node]


def alarms_of(nodes: list[Row]) -> list[Row]:
    """Return the alarms of `nodes`."""
    return [
        {"node": node["name"], "resource": resource, "type": "resource_limit"}
        for node in nodes
        for field, (resource, _) in _ALARMS.items()
        if node.get(field)
    ]


def alarm_sentence(alarm: Row) -> str:
    """Say which alarm is in effect where."""
    words = next(words for resource, words in _ALARMS.values() if resource == alarm["resource"])
    return f"{words} alarm on node {alarm['node']}"


def status_facts(session: Session) -> Row:
    """Return the fields of the status of a node."""
    overview: Row = session.api.get("/overview")
    name: str = overview["node"]
    node: Row = session.api.get(filled("/nodes/{node}", overview))
    memory: Row = session.api.get(filled("/nodes/{node}/memory", overview))["memory"]
    totals = overview.get("object_totals") or {}
    return {
        "tags": [],
        "active_plugins": node["enabled_plugins"],
        "alarms": alarms_of([node]),
        "config_files": node["config_files"],
        "crypto_lib_version": "",
        "data_directory": node["db_dir"],
        "disk_free": node["disk_free"],
        "disk_free_limit": node["disk_free_limit"],
        "enabled_plugin_file": "",
        "erlang_version": overview.get("erlang_full_version", ""),
        "file_descriptors": {
            "sockets_limit": node["sockets_total"],
            "sockets_used": node["sockets_used"],
            "total_limit": node["fd_total"],
            "total_used": node["fd_used"],
        },
        "is_under_maintenance": name in _in_maintenance(session),
        "listeners": [each for each in listeners_of(overview) if each["node"] == name],
        "log_files": node["log_files"],
        "memory": memory,
        "net_ticktime": node["net_ticktime"],
        "os": "Linux",
        "pid": int(node["os_pid"]),
        "processes": {"limit": node["proc_total"], "used": node["proc_used"]},
        "product_name": overview.get("product_name", ""),
        "product_version": overview.get("product_version", ""),
        "rabbitmq_version": overview["rabbitmq_version"],
        "raft_data_directory": node["db_dir"],
        "release_series_support_status": "supported",
        "run_queue": node["run_queue"],
        "totals": {
            "virtual_host_count": len(session.api.get("/vhosts", [("columns", "name")])),
            "connection_count": totals.get("connections", 0),
            "queue_count": totals.get("queues", 0),
        },
        "uptime": node["uptime"] // 1_000,
        "vm_memory_calculation_strategy": node["mem_calculation_strategy"],
        "vm_memory_high_watermark_limit": node["mem_limit"],
        "vm_memory_high_watermark_setting": _watermark(settings_of(session), node["mem_limit"]),
    }


def cluster_facts(session: Session) -> Row:
    """Return the fields of the status of a cluster."""
    overview: Row = session.api.get("/overview")
    nodes: list[Row] = session.api.get("/nodes")
    names = [node["name"] for node in nodes]
    running = [node["name"] for node in nodes if node.get("running")]
    listeners = listeners_of(overview)
    drained = _in_maintenance(session)
    version = {
        "erlang_version": overview.get("erlang_version", ""),
        "rabbitmq_name": "RabbitMQ",
        "rabbitmq_version": overview["rabbitmq_version"],
    }
    return {
        "alarms": alarms_of(nodes),
        "cluster_name": overview["cluster_name"],
        "cluster_tags": [],
        "cpu_cores": {node["name"]: node["processors"] for node in nodes if node.get("running")},
        "disk_nodes": names,
        "feature_flags": session.api.get("/feature-flags"),
        "listeners": {name: [each for each in listeners if each["node"] == name] for name in running},
        "maintenance_status": {
            name: "marked for maintenance" if name in drained else "not under maintenance"
            for name in running
        },
        "partitions": {
            node["name"]: node["partitions"] for node in nodes if node.get("partitions")
        },
        "ram_nodes": [],
        "running_nodes": running,
        "versions": dict.fromkeys(running, version),
    }  # fmt: skip


def memory_shares(memory: Mapping[str, Any]) -> Row:
    """Return bytes and percentage of each category of memory, the largest first."""
    parts = {name: size for name, size in memory.items() if name not in ("total", "strategy")}
    total = sum(parts.values()) or 1
    return {
        name: {"bytes": size, "percentage": round(100 * size / total, 2)}
        for name, size in sorted(parts.items(), key=lambda item: -item[1])
    }


def settings_of(session: Session) -> Row:
    """Return the settings of the node that the commands reach."""
    return {row["key"]: row["value"] for row in session.api.get("/warren/config")}


def _in_maintenance(session: Session) -> set[str]:
    found: Row = session.api.get("/warren/cluster")
    return {member["name"] for member in found["members"] if member["is_draining"]}


def _watermark(settings: Row, limit: int) -> Row:
    relative = settings.get(_RELATIVE)
    if relative in (None, "") or settings.get(_ABSOLUTE):
        return {"absolute": limit}
    return {"relative": float(relative)}
