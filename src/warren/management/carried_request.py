"""A request of the HTTP API on its way to another node, and the answer, as they are sent.

    request │ MessagePack of CarriedRequest
    answer  │ size u32 │ MessagePack of AnswerHead │ body …

The other node handles the request as one of its own, with the rights of the requester there, and does not
carry it any further. A request for a *part* is one for what this node needs to make a list of all nodes.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

import msgspec
from msgspec import Struct

from warren.access.grants import ExternalUser, grants_of
from warren.access.web_grants import AskWebServer, WebUser, web_user
from warren.metadata.machine import Metadata
from warren.metadata.permissions import Permission, TopicPermission
from warren.metadata.users import User

# The key under which a request that came from another node holds its CarriedRequest.
CARRIED = "carried"
_SIZE_BYTES = 4
# A pattern that fits no routing key.
_NO_NAME = "(?!)"
_Patterns: TypeAlias = tuple[str, str, str]


class CarriedRequestError(Exception):
    """What another node has sent is no request, or no answer."""


class ListPart(StrEnum):
    """What of a list is asked for."""

    # All that a client would get.
    NONE = ""
    # The id of each record, with some columns.
    KEYS = "keys"
    # Whole rows, by their ids.
    ROWS = "rows"
    # The consumers of a queue that have their connections there.
    CONSUMERS = "consumers"


class CarriedUser(Struct, frozen=True, kw_only=True):
    """Who makes a request; the node that is asked determines the rights of a user in the metadata itself."""

    name: str
    # Of a user who is not in the metadata: who vouches for the name, the tags, and the permissions by
    # virtual host.
    is_external: bool = False
    issuer: str = ""
    tags: tuple[str, ...] = ()
    permissions: dict[str, _Patterns] = {}
    # The address of a user whose permissions a web server decides.
    web_ip: str | None = None


class CarriedRequest(Struct, frozen=True, kw_only=True):
    """A request of the HTTP API; the path is encoded, with its query and without a configured prefix."""

    method: str
    path: str
    user: CarriedUser
    headers: dict[str, str] = {}
    body: bytes = b""
    part: ListPart = ListPart.NONE
    # The names of columns, or the ids of rows.
    names: tuple[str, ...] = ()


class AnswerHead(Struct, frozen=True, kw_only=True):
    """The status and the headers of an answer."""

    status: int
    headers: dict[str, str]
    # True if the body is sent as it is made.
    is_stream: bool


_encoder = msgspec.msgpack.Encoder()
_requests = msgspec.msgpack.Decoder(CarriedRequest)
_heads = msgspec.msgpack.Decoder(AnswerHead)


def encode_request(request: CarriedRequest) -> bytes:
    """`request` as it is sent."""
    return _encoder.encode(request)


def decode_request(data: bytes) -> CarriedRequest:
    """The request in `data`; raises CarriedRequestError."""
    try:
        request = _requests.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CarriedRequestError(f"a request cannot be decoded: {error}") from None
    if not request.path.startswith("/api/") or not request.path.isascii():
        raise CarriedRequestError(f"a request is for the path '{request.path[:80]}'")
    return request


def encode_head(head: AnswerHead) -> bytes:
    """`head` as it is sent before the body."""
    data = _encoder.encode(head)
    return len(data).to_bytes(_SIZE_BYTES, "big") + data


def split_head(data: bytes) -> tuple[AnswerHead, bytes] | None:
    """The head of an answer, and what is there of its body; None if the head is not complete."""
    end = _SIZE_BYTES + int.from_bytes(data[:_SIZE_BYTES], "big")
    if len(data) < _SIZE_BYTES or len(data) < end:
        return None
    try:
        return _heads.decode(data[_SIZE_BYTES:end]), data[end:]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CarriedRequestError(f"an answer cannot be decoded: {error}") from None


def carried_user(metadata: Metadata, user: User, vhost: str | None) -> CarriedUser:
    """`user` as another node needs to know it, for a request in `vhost` or in all virtual hosts."""
    if not isinstance(user, ExternalUser):
        return CarriedUser(name=user.name)
    if isinstance(user, WebUser):
        return CarriedUser(
            name=user.name, is_external=True, issuer=user.issuer, tags=user.tags, web_ip=user.grants.ip
        )
    grants = grants_of(metadata, user)
    names = metadata.vhosts.by_name if vhost is None else (vhost,)
    granted = {name: grants.permission(name) for name in names}
    return CarriedUser(
        name=user.name,
        is_external=True,
        issuer=user.issuer,
        tags=user.tags,
        permissions={
            name: (found.configure, found.write, found.read)
            for name, found in granted.items()
            if found is not None
        },
    )


def requester_of(
    carried: CarriedUser, metadata: Metadata, ask_web_server: AskWebServer | None = None
) -> User | None:
    """The user who makes a carried request, with the rights that this node knows; None if there is none."""
    if not carried.is_external:
        return metadata.users.by_name.get(carried.name)
    if carried.web_ip is not None and ask_web_server is not None:
        return web_user(carried.name, carried.issuer, carried.tags, carried.web_ip, ask=ask_web_server)
    return ExternalUser(
        name=carried.name,
        password_hash=b"",
        hashing_algorithm="",
        tags=carried.tags,
        limits={},
        issuer=carried.issuer,
        grants=_CarriedGrants(carried.permissions),
    )


class _CarriedGrants:
    """The permissions of a user whom another node has authenticated; they last for one request."""

    generation = 0

    def __init__(self, permissions: Mapping[str, _Patterns]) -> None:
        self._permissions = {name: Permission(*patterns) for name, patterns in permissions.items()}

    def permission(self, vhost: str) -> Permission | None:
        """The user's permissions in `vhost`; None if the user has no access to it."""
        return self._permissions.get(vhost)

    def topic_permission(self, vhost: str, exchange: str) -> TopicPermission | None:
        """Nothing: topic permissions are not carried, and no carried request needs them."""
        return TopicPermission(_NO_NAME, _NO_NAME)
