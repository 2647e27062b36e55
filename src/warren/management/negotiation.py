"""What of an answer a client can choose: its encoding, and whether it takes plain text (RFC 9110 §12.5).

As RabbitMQ 3.10.8 answers, which was measured: weights choose among encodings, and are passed over in Accept.
"""

import re

from aiohttp import web

from warren.limits_http import GZIP_SIZE_MIN

_RANGE = re.compile(r"\s*([\w!#$%&'*+.^`|~-]+)/([\w!#$%&'*+.^`|~-]+)\s*(?:;.*)?", re.ASCII)
_WEIGHT = re.compile(r"\s*;\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*", re.ASCII | re.IGNORECASE)
_PLAIN = {("text", "plain"), ("text", "*"), ("*", "*")}
# What grows smaller; pictures and columns are compressed already, or by themselves.
_TEXTS = frozenset((
    "application/json", "application/javascript", "text/javascript", "text/css", "text/html", "text/plain",
    "text/x-python", "image/svg+xml",
))  # fmt: skip


def encodings(accepted: str) -> dict[str, float]:
    """The weight of each encoding that Accept-Encoding names; none if it is not well-formed."""
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
    """Whether the client takes gzip at all."""
    return encodings(request.headers.get("accept-encoding", "")).get("gzip", 0) > 0


def prefers_gzip(request: web.Request) -> bool:
    """Whether it takes gzip, and would not rather have what is not compressed."""
    weights = encodings(request.headers.get("accept-encoding", ""))
    return weights.get("gzip", 0) > 0 and weights["gzip"] >= weights.get("identity", 0)


def refuses_identity(request: web.Request) -> bool:
    """Whether what is not compressed is of no use to the client."""
    weights = encodings(request.headers.get("accept-encoding", ""))
    return weights.get("identity", weights.get("*", 1.0)) == 0


def plain_text_refusal(accepted: str | None) -> int:
    """The status for a client that does not take plain text; 0 for one that does."""
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
    """Whether an answer of this type and size is worth compressing."""
    return kind in _TEXTS and size >= GZIP_SIZE_MIN


def compress(request: web.Request, response: web.StreamResponse) -> None:
    """Have an answer that is worth it compressed for who takes that; large ones are, beside the loop."""
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
