"""What is loaded for a command, in a process of its own."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, os, sys
import click
from warren.cli.main import main
before = dict(os.environ)
assert main.get_command(click.Context(main), "serve").name == "serve"
from aiohttp import connector
print(json.dumps({
    "unchanged": dict(os.environ) == before,
    "certificates": connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509"],
    "loaded": sorted(sys.modules),
}))
"""


@pytest.mark.parametrize("variables", [{}, {"SSL_CERT_FILE": "/nowhere/a.pem", "SSL_CERT_DIR": "/nowhere"}])
def test_a_broker_loads_what_it_needs_and_reads_no_certificates(variables: dict[str, str]) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SSL_CERT")}
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    reported = json.loads(answer.stdout)
    assert reported["unchanged"]
    assert reported["certificates"] == 0
    unneeded = ("warren.cli.operator.command_groups", "joserfc", "cryptography", "pyarrow", "pyspark")
    assert not [name for name in reported["loaded"] if name.startswith(unneeded)]
