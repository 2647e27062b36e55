"""Replaces Docker in the suites of aiormq and aio-pika: the container is the broker that already runs.

aiormq's release leaves out the file with the fixtures `rabbitmq_container` and `amqp_direct_url`, which
are therefore here; aio-pika's own take precedence.
"""

import os
from urllib.parse import urlsplit

import pytest
from tests import docker_client
from yarl import URL

TLS = os.environ["WARREN_CLIENTS_TLS_PORT"]
BROKER = urlsplit(os.environ["WARREN_CLIENTS_BROKER"])


class RunningBroker:
    """The part of the suites' own Docker client that they call."""

    def __init__(self, host_info=None):
        self.host_info = host_info

    def run(self, image, ports, environment=None):
        """Return the broker as a container whose ports are mapped."""
        mapped = {"5672/tcp": BROKER.port, "5671/tcp": int(TLS or 1)}
        return docker_client.ContainerInfo(id="broker", host=BROKER.hostname, ports=mapped)

    def kill(self, container_id):
        """Do nothing: the broker was not started here."""

    def remove(self, container_id):
        """Do nothing: the broker was not started here."""


@pytest.fixture(scope="session")
def rabbitmq_container():
    """Return the broker in the form that the suites' fixtures expect."""
    return RunningBroker().run("", [])


@pytest.fixture(scope="session")
def amqp_direct_url(rabbitmq_container):
    """Return the URL of its default vhost, spelled as in aio-pika's fixture of this name."""
    port = rabbitmq_container.ports["5672/tcp"]
    return URL.build(
        scheme="amqp", user="guest", password="guest", path="//", host=rabbitmq_container.host, port=port
    )


def pytest_collection_modifyitems(items):
    """Skip tests that need TLS if the broker has none."""
    for item in items:
        if not TLS and "amqps" in item.nodeid:
            item.add_marker(pytest.mark.skip(reason="the broker has no TLS port"))


docker_client.DockerClient = RunningBroker
docker_client.check_docker_available = lambda: None
