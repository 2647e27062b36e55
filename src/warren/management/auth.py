"""Who asks: basic authentication against the broker's users, and the tags that open the HTTP API."""

import base64
import binascii

from aiohttp import web

from warren.errors import AmqpError
from warren.management.managed import Managed
from warren.management.replies import refused
from warren.metadata.users import User
from warren.session.peer import Peer

# RabbitMQ: whoever has one of these may log in here.
_TAGS = frozenset({"administrator", "monitoring", "policymaker", "management"})
# And whoever has one of these sees what all others do.
_MONITOR_TAGS = frozenset({"administrator", "monitoring"})
_CHALLENGE = {"www-authenticate": 'Basic realm="RabbitMQ Management"'}
_CREDENTIALS_SIZE_MAX = 4096


class NotAuthorised(Exception):
    """The request is answered with `response` and nothing else."""

    def __init__(self, response: web.Response) -> None:
        super().__init__()
        self.response = response


def authenticate(request: web.Request, node: Managed) -> User:
    """The user who asks; NotAuthorised for anybody who may not."""
    credentials = _credentials(request.headers.get("authorization", ""))
    if credentials is None:
        raise NotAuthorised(web.Response(status=401, headers=_CHALLENGE))
    try:
        name = node.server.gate.authenticate(
            "PLAIN", b"\x00" + credentials.replace(b":", b"\x00", 1), _peer(request)
        )
    except AmqpError:
        raise NotAuthorised(_refused("not_authorized", "Login failed")) from None
    user = node.metadata.users.by_name.get(name)
    if user is None or not _TAGS.intersection(user.tags):
        raise NotAuthorised(_refused("not_authorised", "Not management user"))
    return user


def is_monitor(user: User) -> bool:
    """True if `user` may see what others do."""
    return bool(_MONITOR_TAGS.intersection(user.tags))


def _refused(error: str, reason: str) -> web.Response:
    response = refused(401, error, reason)
    response.headers.update(_CHALLENGE)
    return response


def _credentials(header: str) -> bytes | None:
    """`user:password` of a basic authorization header."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic" or len(encoded) > _CREDENTIALS_SIZE_MAX:
        return None
    try:
        credentials = base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
    return credentials if b":" in credentials and b"\x00" not in credentials else None


def _peer(request: web.Request) -> Peer:
    transport = request.transport
    client = transport.get_extra_info("peername") if transport else None
    server = transport.get_extra_info("sockname") if transport else None
    client, server = client or ("0.0.0.0", 0), server or ("0.0.0.0", 0)
    return Peer(host=client[0], port=client[1], server_host=server[0], server_port=server[1])
