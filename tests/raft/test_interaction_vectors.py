"""Groups of replicas step by step as the published interactions say, byte by byte."""

from pathlib import Path

import pytest
from tests.raft.datadriven import read
from tests.raft.interaction import Interaction
from tests.raft.vectors import vectors


@pytest.mark.parametrize("path", vectors("testdata"))
def test_each_published_interaction_is_printed_as_expected(path: Path) -> None:
    read(path).run(Interaction().execute)
