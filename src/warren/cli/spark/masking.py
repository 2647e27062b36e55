"""Masks passwords in texts that are printed."""

import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus, unquote

_HEX = re.compile(r"%[0-9A-F]{2}")
# A URI up to the user name, and its password.
_ACCOUNT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^\s:/@]*):(?:(?!://)\S)+@")


def masked(text: str, addresses: Iterable[str]) -> str:
    """Return `text` with passwords replaced by ***: those in URIs, and those of `addresses` anywhere.

    A password of `addresses` is replaced only as a whole word, since it may be part of other words.
    """
    text = _ACCOUNT.sub(r"\1:***@", text)
    for address in addresses:
        account, at, place = address.partition("://")[2].rpartition("@")
        user, colon, password = account.partition(":")
        if not (at and colon and password):
            continue
        # A password that equals the user or a part of the host is not masked.
        known = {user, unquote(user), *re.split(r"[:/]", unquote(place))}
        for secret in sorted(_forms(password) - known, key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
    return text


def _forms(password: str) -> set[str]:
    """Return the password as given, decoded, and in the ways it can be encoded in a URI."""
    plain = unquote(password)
    quoted = {quote(plain, safe=""), quote(plain), quote_plus(plain)}
    lower = {_HEX.sub(lambda found: found.group().lower(), form) for form in quoted}
    return {password, plain} | quoted | lower
