"""A connection to the broker under load: blocking while it is set up, then handed to the load loop."""

import ssl

from warren.client.link import Link, Manner
from warren.client.uri import Target

NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def open_link(target: Target) -> Link:
    """A connection to `target`; a certificate is not checked, since all that travels is invented."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return Link(target, Manner(product="warren perf", context=context))
