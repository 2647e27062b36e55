"""Leaves passwords out of texts that are printed."""

import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus, unquote

_HEX = re.compile(r"%[0-9A-F]{2}")
# Up to a user's name, and its password, in an address that stands in a text.
_ACCOUNT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^\s:/@]*):(?:(?!://)\S)+@")


def masked(text: str, addresses: Iterable[str]) -> str:
    """`text` without the password of any address in it, and without those of `addresses` wherever they stand.

    A password is left out where it stands alone: it may be a part of other words, which say nothing of it.
    """
    text = _ACCOUNT.sub(r"\1:***@", text)
    for address in addresses:
        account, at, place = address.partition("://")[2].rpartition("@")
        user, colon, password = account.partition(":")
        if not (at and colon and password):
            continue
        # One that is also the name of somebody, or of a place, says nothing.
        known = {user, unquote(user), *re.split(r"[:/]", unquote(place))}
        for secret in sorted(_forms(password) - known, key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
    return text


def _forms(password: str) -> set[str]:
    """A password as it was given, as it is, and as it may be written in an address."""
    plain = unquote(password)
    quoted = {quote(plain, safe=""), quote(plain), quote_plus(plain)}
    lower = {_HEX.sub(lambda found: found.group().lower(), form) for form in quoted}
    return {password, plain} | quoted | lower
