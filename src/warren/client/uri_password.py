"""Hides the passwords of AMQP URIs, and fills in a hidden one from the URI in which it was hidden."""

from warren.client.rabbitmq_uri import (
    HIDDEN,
    PASSWORD,
    parse_target,
    uri_without_credentials,
    without_passwords,
)


def masked_uri(uri: str) -> str:
    """Return `uri` with its passwords hidden: `amqp://user:***@host`."""
    return without_passwords(uri)[0]


def is_masked(uri: str) -> bool:
    """True if a password in `uri` is hidden."""
    return HIDDEN in without_passwords(uri)[1]


def with_password_of(uri: str, known: str) -> str | None:
    """Return `uri` with the hidden passwords of `known`, a URI of the same broker, virtual host and user.

    None if it is of another one: a password must not be sent to a host that it was not given for, nor open
    another virtual host.
    """
    if masked_uri(known) == uri:
        return known
    found = PASSWORD.search(known.partition("?")[0])
    if found is None or not _is_same_account(uri, known):
        return None
    filled = PASSWORD.sub(lambda hidden: hidden[1] + found[2] + hidden[3], uri, count=1)
    return None if is_masked(filled) else filled


def _is_same_account(uri: str, known: str) -> bool:
    try:
        new, old = parse_target(uri), parse_target(known)
    except ValueError:
        return False
    is_as_safe = (new.is_tls, new.tls) == (old.is_tls, old.tls)
    # Without a path, the virtual host of an upstream is that of the link.
    is_there = (new.host, new.port, new.vhost, _has_path(uri)) == (
        old.host, old.port, old.vhost, _has_path(known),
    )  # fmt: skip
    return is_as_safe and is_there and new.user == old.user


def _has_path(uri: str) -> bool:
    return "/" in uri_without_credentials(uri).partition("://")[2]
