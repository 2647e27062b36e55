"""The scripts of the page about moving from RabbitMQ, with exports beyond the example of the page."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.guide_pages import steps

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "moving-without-stopping.md"
FEDERATE = {"federation-upstream": "rabbitmq"}


def policy(name: str, apply_to: str, priority: int = 0, **definition: Any) -> dict[str, Any]:
    keys = {key.replace("_", "-"): value for key, value in definition.items()}
    return {
        "vhost": "/",
        "name": name,
        "pattern": ".*",
        "apply-to": apply_to,
        "priority": priority,
        "definition": keys,
    }


def federated(folder: Path, **export: Any) -> dict[str, Any]:
    """What `federated.py` makes of an `export`."""
    [script] = [step.text for step in steps(PAGE) if step.file == "federated.py"]
    (folder / "rabbit.json").write_text(json.dumps({"vhosts": [{"name": "/"}]} | export))
    subprocess.run([sys.executable, "-c", script, "amqp://reader:secret@rabbitmq"], cwd=folder, check=True)
    made: dict[str, Any] = json.loads((folder / "federated.json").read_text())
    return made


@pytest.mark.parametrize("kind", ["queues", "classic_queues", "quorum_queues"])
def test_every_policy_for_queues_federates_them(tmp_path: Path, kind: str) -> None:
    made = federated(tmp_path, policies=[policy("limit", kind, priority=-7, max_length=5)])
    limit, everything = made["policies"]
    assert limit == policy("limit", kind, priority=-7, max_length=5) | {
        "definition": {"max-length": 5} | FEDERATE
    }
    assert everything == policy("from-rabbitmq", "queues", priority=-8) | {"definition": FEDERATE}
    [upstream] = made["parameters"]
    assert upstream["value"]["uri"] == "amqp://reader:secret@rabbitmq/%2F"


def test_no_policy_federates_an_exchange_or_a_stream(tmp_path: Path) -> None:
    kept = [policy("other", "exchanges", alternate_exchange="a"), policy("age", "streams", max_age="1D")]
    whole = policy("whole", "all", max_length=5, federation_upstream_set="all")
    made = federated(tmp_path, policies=[*kept, whole])
    assert made["policies"][:3] == [*kept, policy("whole", "exchanges", max_length=5)]
    assert made["policies"][3] == policy("whole (queues)", "queues") | {
        "definition": {"max-length": 5} | FEDERATE
    }


def test_nothing_that_moves_messages_is_taken_over_nor_the_name_of_the_cluster(tmp_path: Path) -> None:
    limits = {"component": "vhost-limits", "vhost": "/", "name": "limits", "value": {"max-queues": 5}}
    moves = [
        {"component": component, "vhost": "/", "name": "n", "value": {}}
        for component in ("shovel", "federation-upstream", "federation-upstream-set")
    ]
    other = {"name": "mqtt_default_vhosts", "value": {}}
    made = federated(
        tmp_path,
        parameters=[limits, *moves],
        global_parameters=[{"name": "cluster_name", "value": "theirs"}, other],
        policies=[policy("fed", "exchanges", federation_upstream_set="all")],
    )
    assert [(each["component"], each["name"]) for each in made["parameters"]] == [
        ("vhost-limits", "limits"),
        ("federation-upstream", "rabbitmq"),
    ]
    assert made["global_parameters"] == [other]
    assert [each["name"] for each in made["policies"]] == ["from-rabbitmq"]
