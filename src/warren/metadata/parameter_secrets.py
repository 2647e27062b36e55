"""Hides the passwords in parameters that are shown, and puts them back when a shown value is set again.

A client that reads a parameter, changes it and sets it again sends hidden passwords. Each is replaced by the
stored password of the same user at the same broker and virtual host, if there is one that the client may see;
otherwise the parameter is refused.
"""

from collections.abc import Callable, Mapping

from warren.client.uri_password import is_masked, masked_uri, with_password_of
from warren.metadata.commands import Json
from warren.metadata.federation_definition import UPSTREAM
from warren.metadata.shovel_definition import SHOVEL
from warren.metadata.uri_check import ENCRYPTED_PREFIX, uris_of

# The keys with addresses, by component.
_ADDRESSES: Mapping[str, tuple[str, ...]] = {SHOVEL: ("src-uri", "dest-uri"), UPSTREAM: ("uri",)}


class HiddenPasswordError(Exception):
    """A password is hidden, and there is none to put back; the text names the key."""


def masked_parameter(component: str, value: Json) -> Json:
    """`value` with hidden passwords, to be shown."""
    return with_uris(component, value, lambda _key, uri: masked_uri(uri))


def unmasked_parameter(component: str, value: Json, stored: Json) -> Json:
    """`value` with the passwords of `stored` in place of hidden ones.

    HiddenPasswordError if `stored` has not all of them.
    """

    def unmasked(key: str, uri: str) -> str:
        if not is_masked(uri):
            return uri
        known = uris_of(stored.get(key)) if isinstance(stored, Mapping) else ()
        found = (with_password_of(uri, one) for one in known)
        filled = next((one for one in found if one is not None), None)
        if filled is None:
            raise HiddenPasswordError(
                f"{key}: the password is hidden, and none that you may see is known for this user, host and "
                "virtual host: give it again"
            )
        return filled

    return with_uris(component, value, unmasked)


def undecrypted_keys(component: str, value: Json) -> list[str]:
    """The keys of `value` with addresses that could not be decrypted, because the key is missing."""
    found: list[str] = []

    def look(key: str, uri: str) -> str:
        if uri.startswith(ENCRYPTED_PREFIX):
            found.append(key)
        return uri

    with_uris(component, value, look)
    return list(dict.fromkeys(found))


def with_uris(component: str, value: Json, change: Callable[[str, str], str]) -> Json:
    """A copy of `value` with each address changed; itself if it has none."""
    keys = _ADDRESSES.get(component, ())
    if not isinstance(value, Mapping) or not any(key in value for key in keys):
        return value
    changed = dict(value)
    for key in keys:
        uris = value.get(key)
        if isinstance(uris, str):
            changed[key] = change(key, uris)
        elif isinstance(uris, list):
            changed[key] = [change(key, uri) if isinstance(uri, str) else uri for uri in uris]
    return changed
