"""`warren spark` as somebody types it, in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.spark.brokers import BrokerUnderTest
from tests.warren_process import PROGRAM

import warren

COMMAND_S_MAX = 300


def environment(place: BrokerUnderTest) -> dict[str, str]:
    """What a process has to know of the broker, and where it finds the Warren that is tested."""
    source = Path(warren.__file__).resolve().parents[1]
    told = {"WARREN_AMQP_URI": place.options["uri"], "WARREN_URI": place.options["managementUri"]}
    return {**os.environ, **told, "PYTHONPATH": str(source)}


def run(
    place: BrokerUnderTest, *arguments: str, changed: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What it printed and how it ended, whatever that was."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "spark", *arguments],
        env=environment(place) | dict(changed or {}),
        capture_output=True,
        text=True,
        timeout=COMMAND_S_MAX,
        check=False,
    )
