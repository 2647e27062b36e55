"""Fixtures of the tests of replicated queues."""

import random

import pytest
from tests.unit.cluster.two_nodes import TwoNodes


@pytest.fixture
def cluster() -> TwoNodes:
    made = TwoNodes()
    for node in made.nodes:
        node.attach_store(random.Random(1))
    return made
