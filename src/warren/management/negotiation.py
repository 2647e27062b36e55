"""Content negotiation: the encoding of a response, and whether plain text is accepted (RFC 9110 §12.5).

Measured on RabbitMQ 3.10.8: weights select the encoding, and are ignored in Accept.
"""

import re

from aiohttp import web

from warren.limits_http import GZIP_SIZE_MIN

_RANGE = re.compile(r"\s*([\w!#$%&'*+.^`|~-]+)/([\w!#$%&'*+.^`|~-]+)\s*(?:;.*)?", re.ASCII)
_WEIGHT = re.compile(r"\s*;\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*", re.ASCII | re.IGNORECASE)
_PLAIN = {("text", "plain"), ("text", "*"), ("*", "*")}
# Types that become smaller; images and Arrow streams are compressed already.
_TEXTS = frozenset((
    "application/json", "application/javascript", "text/javascript", "text/css", "text/html", "text/plain",
    "text/x-python", "image/svg+xml",
))  # fmt: skip


def encodings(accepted: str) -> dict[str, float]:
    """The weight of each encoding in Accept-Encoding; empty if the header is malformed."""
    found: dict[str, float] = {}
    for written in accepted.lower().split(","):
        name, semicolon, _ = written.partition(";")
        weight = 1.0
        if semicolon:
            match = _WEIGHT.fullmatch(written[len(name) :])
            if match is None:
                return {}
            weight = float(match[1])
        found[name.strip().removeprefix("x-")] = weight
    return found


def takes_gzip(request: web.Request) -> bool:
    """True if the client accepts gzip."""
    return encodings(request.headers.get("accept-encoding", "")).get("gzip", 0) > 0


def prefers_gzip(request: web.Request) -> bool:
    """True if the client accepts gzip and does not prefer an uncompressed response."""
    weights = encodings(request.headers.get("accept-encoding", ""))
    return weights.get("gzip", 0) > 0 and weights["gzip"] >= weights.get("identity", 0)


def refuses_identity(request: web.Request) -> bool:
    """True if the client does not accept an uncompressed response."""
    weights = encodings(request.headers.get("accept-encoding", ""))
    return weights.get("identity", weights.get("*", 1.0)) == 0


def plain_text_refusal(accepted: str | None) -> int:
    """The error status for a client that does not accept plain text; 0 for one that does."""
    if accepted is None:
        return 0
    is_taken = False
    for written in accepted.split(",") if accepted.strip() else ():
        match = _RANGE.fullmatch(written)
        if match is None:
            return 400
        is_taken = is_taken or (match[1].lower(), match[2].lower()) in _PLAIN
    return 0 if is_taken else 406


def is_compressible(kind: str, size: int) -> bool:
    """True if a response of this type and size (bytes) is worth compressing."""
    return kind in _TEXTS and size >= GZIP_SIZE_MIN


def compress(request: web.Request, response: web.StreamResponse) -> None:
    """Compress a response if it is large enough and the client accepts it; aiohttp may use a thread."""
    if response.prepared or request.method == "HEAD" or "content-encoding" in response.headers:
        return
    if isinstance(response, web.Response):
        size = len(response.body) if isinstance(response.body, bytes) else 0
    else:
        size = response.content_length or 0
    if not is_compressible(response.content_type, size):
        return
    if "accept-encoding" not in response.headers.get("vary", ""):
        response.headers["vary"] = "accept-encoding"
    if takes_gzip(request):
        response.enable_compression(web.ContentCoding.gzip)
