"""Runs `warren spark` as a user does, in its own process."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.patience import patient
from tests.spark.brokers import BrokerUnderTest
from tests.warren_process import PROGRAM

import warren

COMMAND_S_MAX = patient(300)


def environment(place: BrokerUnderTest) -> dict[str, str]:
    """The environment of a process: the address of the broker, and the tested Warren."""
    source = Path(warren.__file__).resolve().parents[1]
    variables = {"WARREN_AMQP_URI": place.options["uri"], "WARREN_URI": place.options["managementUri"]}
    return {**os.environ, **variables, "PYTHONPATH": str(source)}


def run(
    place: BrokerUnderTest, *arguments: str, changed: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The output and the status of a command, which may fail."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "spark", *arguments],
        env=environment(place) | dict(changed or {}),
        capture_output=True,
        text=True,
        timeout=COMMAND_S_MAX,
        check=False,
    )
