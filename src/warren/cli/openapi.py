"""`warren openapi`: writes the OpenAPI document of the HTTP API."""

from typing import BinaryIO

import click
import msgspec

from warren.management.openapi import document
from warren.management.routes import ROUTES


@click.command()
@click.option(
    "--output", "-o", metavar="FILE", type=click.File("wb"), default="-", help="[default: standard output]"
)
def openapi(output: BinaryIO) -> None:
    """Write the OpenAPI 3.1 document of the HTTP API; needs no running broker.

    A running broker serves the document at /api/warren/openapi.json.
    """
    written = msgspec.json.encode(document(ROUTES))
    output.write(msgspec.json.format(written) + b"\n")
