"""The files of deploy/: a valid systemd unit, valid configurations, and clusters whose parts fit together."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from tests.integration.broker_process import broker

from warren.node import settings
from warren.node.cluster_config import check_cluster, formation_settings
from warren.node.cluster_formation import FormationSettings
from warren.node.config import Config, load

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
SYSTEMD, DOCKER, COMPOSE, KUBERNETES = (
    DEPLOY / name for name in ("systemd", "docker", "compose", "kubernetes")
)
ANALYZE = shutil.which("systemd-analyze")
# The exposure that systemd-analyze reports for a service with network access only; 10 is unprotected.
EXPOSURE_MAX = 2.0


def analyzed(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """The output of systemd-analyze for the unit, whose program is replaced by one that exists."""
    unit = folder / "warren.service"
    unit.write_text((SYSTEMD / "warren.service").read_text().replace("/opt/warren/bin/warren", "/bin/true"))
    return subprocess.run([str(ANALYZE), *command, str(unit)], capture_output=True, text=True, check=False)


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit_without_warnings(tmp_path: Path) -> None:
    verified = analyzed(tmp_path, "verify", "--man=no", "--recursive-errors=no")
    assert (verified.returncode, verified.stderr) == (0, "")


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
def test_the_unit_restricts_the_privileges_of_the_broker(tmp_path: Path) -> None:
    judged = analyzed(
        tmp_path, "security", "--offline=yes", "--no-pager", f"--threshold={int(EXPOSURE_MAX * 10)}"
    )
    assert judged.returncode == 0, judged.stdout


def test_the_broker_accepts_the_supplied_configuration(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path), config=SYSTEMD / "warren.conf") as started:
        assert set(started.ports) == {"amqp", "http", "http/prometheus", "stream"}
        assert not [line for line in started.lines if "[warning]" in line]


def settings_of(text: str, folder: Path, **environment: str) -> Config:
    """The configuration of a node in a container, whose settings refer to its environment."""
    path = folder / "warren.conf"
    path.write_text(text)
    return load(str(path), environment)


def formed_by(config: Config) -> FormationSettings:
    """How the node of a configuration comes into its cluster; without a warning."""
    assert config.warnings == check_cluster(config) == []
    found = formation_settings(config, config.get(settings.NODE_NAME), has_objects=False)
    assert found is not None
    return found


def test_the_nodes_of_compose_form_one_cluster(tmp_path: Path) -> None:
    compose = yaml.safe_load((COMPOSE / "compose.yaml").read_text())
    text = (COMPOSE / compose["configs"]["settings"]["file"]).read_text()
    plans = []
    for name, service in compose["services"].items():
        environment = service["environment"]
        assert environment["NODE_HOST"] == name
        assert service["configs"] == [{"source": "settings", "target": environment["WARREN_CONFIG"]}]
        assert service["volumes"] == [f"{name}:/var/lib/warren"]
        assert name in compose["volumes"]
        config = settings_of(
            text, tmp_path, **{key: value for key, value in environment.items() if key != "WARREN_CONFIG"}
        )
        plans.append(formed_by(config).plan)
    assert [plan.own_name for plan in plans] == [node.name for node in plans[0].nodes]
    assert {plan.seed for plan in plans} == {"warren@node1"}
    assert {plan.nodes for plan in plans} == {plans[0].nodes}
    # The seed waits for one of two others, and has none if it is the only one that is new.
    assert [plan.size_hint for plan in plans] == [2, 2, 2]
    ports = [port for service in compose["services"].values() for port in service["ports"]]
    assert len({port.split(":")[-2] for port in ports}) == len(ports)


@cache
def kubernetes() -> dict[tuple[str, str], Any]:
    """The objects of the file, by kind and name."""
    objects = yaml.safe_load_all((KUBERNETES / "warren.yaml").read_text())
    return {(one["kind"], one["metadata"]["name"]): one for one in objects}


def test_the_pods_of_kubernetes_form_one_cluster(tmp_path: Path) -> None:
    objects = kubernetes()
    stateful = objects["StatefulSet", "warren"]["spec"]
    assert stateful["podManagementPolicy"] == "Parallel"
    text = objects["ConfigMap", "warren"]["data"]["warren.conf"]
    secrets = {"CLUSTER_COOKIE": "c", "FIRST_USER": "u", "FIRST_PASSWORD": "p"}
    nodes = [
        formed_by(settings_of(text, tmp_path, POD_NAME=f"warren-{number}", **secrets))
        for number in range(stateful["replicas"])
    ]
    names = [node.plan.own_name for node in nodes]
    assert names == [f"warren@warren-{number}.{stateful['serviceName']}" for number in range(3)]
    assert {node.plan.seed for node in nodes} == {names[0]}
    assert {node.plan.size_hint for node in nodes} == {2}
    for node in nodes:
        assert node.discovery is not None
        assert node.discovery.hostname == stateful["serviceName"]
        # Of whom the pod is called in the DNS.
        assert node.discovery.own_host == node.plan.own_name.partition("@")[2]
        headless = objects["Service", node.discovery.hostname]["spec"]
        assert (headless["clusterIP"], headless["publishNotReadyAddresses"]) == ("None", True)
        assert [port["port"] for port in headless["ports"]] == [node.discovery.port]


def test_what_a_pod_refers_to_exists() -> None:
    objects = kubernetes()
    stateful = objects["StatefulSet", "warren"]["spec"]
    labels = stateful["template"]["metadata"]["labels"]
    pod = stateful["template"]["spec"]
    (container,) = pod["containers"]
    for selector in (
        stateful["selector"]["matchLabels"],
        objects["Service", "warren"]["spec"]["selector"],
        objects["Service", "warren-nodes"]["spec"]["selector"],
        objects["PodDisruptionBudget", "warren"]["spec"]["selector"]["matchLabels"],
    ):
        assert selector == labels
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for name in ("warren", "warren-nodes"):
        for port in objects["Service", name]["spec"]["ports"]:
            assert ports[port["targetPort"]] == port["port"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        what = container[probe].get("tcpSocket") or container[probe]["httpGet"]
        assert what["port"] in ports
    volumes = {
        volume["name"]
        for volume in (*pod["volumes"], *(one["metadata"] for one in stateful["volumeClaimTemplates"]))
    }
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    environment = {entry["name"]: entry for entry in container["env"]}
    assert Path(environment["WARREN_CONFIG"]["value"]).parent.as_posix() in mounted
    assert Path(container["args"][-1]).parent.as_posix() in mounted
    text = objects["ConfigMap", "warren"]["data"]["warren.conf"]
    assert set(re.findall(r"\$\((\w+)\)", text)) == set(environment) - {"WARREN_CONFIG"}
    # The secret is made by hand, as the beginning of the file says.
    head = (KUBERNETES / "warren.yaml").read_text().partition("apiVersion")[0]
    keys = {
        entry["valueFrom"]["secretKeyRef"]["key"]
        for entry in container["env"]
        if "secretKeyRef" in entry.get("valueFrom", {})
    }
    assert keys == set(re.findall(r"--from-literal=([\w-]+)", head))


def test_the_liveness_of_a_pod_needs_no_login() -> None:
    (container,) = kubernetes()["StatefulSet", "warren"]["spec"]["template"]["spec"]["containers"]
    path = container["livenessProbe"]["httpGet"]["path"]
    with broker() as started, urlopen(f"http://127.0.0.1:{started.ports['http']}{path}") as answer:
        assert answer.status == 200


def test_the_image_exposes_the_ports_of_the_pods() -> None:
    (container,) = kubernetes()["StatefulSet", "warren"]["spec"]["template"]["spec"]["containers"]
    exposed = re.search(r"^EXPOSE (.*)$", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
    assert exposed is not None
    assert {str(port["containerPort"]) for port in container["ports"]} <= set(exposed[1].split())
