"""The TLS options of all commands: trusted certificates and the client certificate."""

import os
import ssl
from collections.abc import Mapping
from typing import Any

import click

from warren.blocking.tls import TlsNames, client_context
from warren.cli.operator.failures import USAGE, Failure
from warren.client.uri import ClientTls

TLS_NAMES = TlsNames(
    ca_file="--cacert", cert_file="--cert", key_file="--key", key_password="WARREN_KEY_PASSWORD"
)
TLS_OPTIONS = ("cacert", "cert", "key", "is_insecure")


def tls_options() -> list[click.Parameter]:
    """Return the TLS options."""
    return [
        click.Option(
            ["--cacert"],
            metavar="FILE",
            envvar="WARREN_CACERT",
            help="CA certificates to verify the broker's certificate with [default: those of the system]",
        ),
        click.Option(["--cert"], metavar="FILE", envvar="WARREN_CERT", help="client certificate"),
        click.Option(
            ["--key"],
            metavar="FILE",
            envvar="WARREN_KEY",
            help="private key of --cert, if in another file; WARREN_KEY_PASSWORD is its passphrase",
        ),
        click.Option(
            ["--insecure", "is_insecure"],
            is_flag=True,
            envvar="WARREN_INSECURE",
            help="do not verify the broker's certificate",
        ),
    ]


def tls_of(given: Mapping[str, Any]) -> ClientTls:
    """Return the TLS files in these options; an empty value means none."""
    return ClientTls(
        ca_file=given["cacert"] or None,
        cert_file=given["cert"] or None,
        key_file=given["key"] or None,
        key_password=os.environ.get("WARREN_KEY_PASSWORD"),
        is_verified=not given["is_insecure"],
    )


def tls_context(tls: ClientTls) -> ssl.SSLContext:
    """Create the TLS context; raises Failure with the name of a file that is not usable."""
    try:
        return client_context(tls, TLS_NAMES)
    except ValueError as error:
        raise Failure(str(error), USAGE) from None
