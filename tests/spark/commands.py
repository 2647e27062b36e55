"""`warren spark` as somebody types it, in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping

from tests.broker import PROGRAM
from tests.spark.brokers import Place

COMMAND_S_MAX = 300


def run(
    place: Place, *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What it printed and how it ended, whatever that was."""
    told = {"WARREN_AMQP_URI": place.options["uri"], "WARREN_URI": place.options["managementUri"]}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "spark", *arguments],
        env={**os.environ, **told, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=COMMAND_S_MAX,
        check=False,
    )
