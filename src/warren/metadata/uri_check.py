"""Checks the addresses in a parameter: one AMQP URI, or a list of them that are tried in turn."""

from collections.abc import Callable

from msgspec import Struct

from warren.client.rabbitmq_uri import parse_target, uri_refusal
from warren.limits_relay import URIS_MAX
from warren.metadata.validation import Check, string
from warren.model.erlang_terms import printed_json

# Begins an address that is encrypted in the log, and elsewhere one that could not be decrypted. No scheme of
# an address that could be set.
ENCRYPTED_PREFIX = "encrypted:"


class VhostAccess(Struct, frozen=True):
    """The user who sets a parameter, and in which virtual hosts they have permissions."""

    user: str
    allows: Callable[[str], bool]


def uri_check(access: VhostAccess | None = None) -> Check:
    """A check of addresses; those of this node must be in a virtual host that `access` allows."""

    def check(name: str, term: object) -> str | None:
        if not isinstance(term, str | list):
            return f"{name} should be list, actually was {printed_json(term)}"
        uris = [term] if isinstance(term, str) else term
        if len(uris) > URIS_MAX:
            return f"{name} should be at most {URIS_MAX} addresses, actually was {len(uris)}"
        return next((error for uri in uris if (error := _wrong_uri(name, uri, access)) is not None), None)

    return check


def uris_of(term: object) -> tuple[str, ...]:
    """The addresses in a value that was accepted, or that an older log contains."""
    uris = [term] if isinstance(term, str) else term
    return tuple(uri for uri in uris if isinstance(uri, str)) if isinstance(uris, list) else ()


def _wrong_uri(name: str, uri: object, access: VhostAccess | None) -> str | None:
    if isinstance(uri, list):
        return string(name, uri)
    if not isinstance(uri, str):
        return f"{name} should be list, actually was {printed_json(uri)}"
    if uri.startswith(ENCRYPTED_PREFIX):
        return f"{name}: the address cannot be decrypted with the key of this node: it has to be set again"
    error = uri_refusal(uri)
    if error is not None or access is None:
        return error
    target = parse_target(uri)
    if not target.is_local or access.allows(target.vhost):
        return None
    return f'user "{access.user}" may not connect to vhost "{target.vhost}"'
