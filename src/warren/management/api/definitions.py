"""Export and import of definitions, of the whole broker or of one virtual host, as one JSON document.

A document is parsed and checked as a whole before any part of it is applied; its objects are then created in
the order of their dependencies. Existing objects are not changed by a declaration, as in RabbitMQ.
"""

import asyncio
import logging
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable
from hashlib import blake2b
from itertools import islice
from typing import Annotated, Any, TypedDict

from aiohttp import BodyPartReader, web

from warren.access.grants import ExternalUser
from warren.limits_http import (
    HTTP_BODY_SIZE_MAX,
    LISTED_PER_TURN,
)
from warren.management.auth import user_of
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import ACTING_USER, parallel_batches, propose_all, vhost_in_path
from warren.management.operation import doc, documented
from warren.management.replies import RequestRefused, bad_request, done, encoded, reply, reply_in_parts
from warren.management.request_body import decode, read_bytes
from warren.metadata.commands import (
    Bind,
    DeclareExchange,
    DeclareQueue,
    Json,
    MetadataCommand,
    Outcome,
    PermissionCommand,
    Reply,
    SetParameter,
    SetPolicy,
    VhostCommand,
    parameter_user,
)
from warren.metadata.definitions import definition_sections, vhost_definition_sections
from warren.metadata.definitions_import import DefinitionsError
from warren.session.server_properties import COMPATIBLE_VERSION, PRODUCT
from warren.vhost.definitions_check import CheckedDefinitions, check_document, named_entries

logger = logging.getLogger("warren.management")

# Many commands of these types may be in progress at once: the metadata log records them in order.
_TOPOLOGY = (DeclareExchange, DeclareQueue, Bind)
_PRODUCT = {"product_name": PRODUCT, "product_version": COMPATIBLE_VERSION}


@documented(response=dict[str, Any])
async def definitions(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Export the definitions of the broker."""
    versions = {"rabbit_version": COMPATIBLE_VERSION, "rabbitmq_version": COMPATIBLE_VERSION, **_PRODUCT}
    return await _exported(request, versions, definition_sections(node.metadata))


@documented(response=dict[str, Any])
async def of_vhost(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Export the definitions of a virtual host."""
    vhost = node.metadata.vhost(request.match_info["vhost"])
    if vhost is None:
        raise bad_request("vhost_not_found")
    return await _exported(request, {"rabbit_version": COMPATIBLE_VERSION}, vhost_definition_sections(vhost))


class ImportQuery(TypedDict, total=False):
    """What becomes of a document with entries that cannot be declared."""

    skip_invalid: Annotated[
        bool,
        doc("Import the others, and return 200 with what was skipped. By default nothing is imported."),
    ]


class ImportShape(TypedDict):
    """What an import has skipped, by type, name and virtual host, and what it has kept without effect."""

    skipped: list[str]
    warnings: list[str]


@documented(query=ImportQuery, body=dict[str, Any], response=ImportShape, responses={204: None, 303: None})
async def post_definitions(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Import definitions."""
    return await _import(request, node, None)


@documented(query=ImportQuery, body=dict[str, Any], response=ImportShape, responses={204: None, 303: None})
async def post_vhost_definitions(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Import the definitions of a virtual host."""
    return await _import(request, node, vhost_in_path(request, node).name)


async def _exported(
    request: web.Request, versions: dict[str, str], sections: Iterable[tuple[str, Iterable[Json]]]
) -> web.StreamResponse:
    parts = [encoded(versions)[:-1]]
    for name, entries in sections:
        parts.append(b"," + encoded(name) + b":[")
        waiting = iter(entries)
        is_first = True
        while piece := list(islice(waiting, LISTED_PER_TURN)):
            parts.append((b"" if is_first else b",") + encoded(piece)[1:-1])
            is_first = False
            await asyncio.sleep(0)
        parts.append(b"]")
    parts.append(b"}")
    digest = await asyncio.to_thread(_digest, parts)
    # Weak, since the same content may be compressed.
    etag = f'W/"{digest}"'
    if etag in request.headers.get("if-none-match", ""):
        return web.Response(status=304, headers={"etag": etag, "cache-control": "no-cache"})
    return await reply_in_parts(request, parts, headers={"etag": etag})


def _digest(parts: Iterable[bytes]) -> str:
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


async def _import(request: web.Request, node: ManagedNode, vhost: str | None) -> web.StreamResponse:
    data, redirect = await _document(request)
    is_skipping = request.query.get("skip_invalid", "") == "true"
    # Parsing a document of ten megabytes takes a second; in a thread it does not block the event loop.
    found = await asyncio.to_thread(_checked, data, node, vhost, owner_of(request))
    try:
        commands = found.commands if is_skipping else found.complete()
    except DefinitionsError as error:
        raise bad_request(str(error)) from None
    for text in named_entries([*found.left_out, *found.warnings]):
        logger.warning("import of definitions: %s", text)
    for together in parallel_batches(commands, _kind):
        for command, answer in zip(together, await propose_all(node, together), strict=True):
            if isinstance(answer, BaseException):
                raise answer
            _check(command, answer)
    if redirect:
        return web.Response(status=303, headers={"location": redirect})
    if is_skipping:
        skipped = named_entries(found.left_out)
        return reply({"skipped": skipped, "warnings": named_entries(found.warnings)})
    return done()


def owner_of(request: web.Request) -> str:
    """The user who gets permissions in the virtual hosts that an import creates, as RabbitMQ grants them.

    Empty for a user who is not in the metadata: permissions there are those of a user there.
    """
    user = user_of(request)
    return "" if isinstance(user, ExternalUser) else user.name


def _checked(data: bytes, node: ManagedNode, vhost: str | None, owner: str) -> CheckedDefinitions:
    try:
        return check_document(
            parsed(data),
            node.metadata,
            node.hash_password,
            vhost=vhost,
            user=parameter_user(ACTING_USER.get()),
            owner=owner,
            default_type=node.default_queue_type,
        )
    except DefinitionsError as error:
        raise bad_request(str(error)) from None


def _kind(command: MetadataCommand) -> type[MetadataCommand] | None:
    """The group of `command`: commands of the same topology group may run concurrently."""
    return type(command) if isinstance(command, _TOPOLOGY) else None


def _check(command: MetadataCommand, reply: Reply) -> None:
    """Raise RequestRefused if `command` failed, which ends the import."""
    if reply.outcome is Outcome.REFUSED:
        raise bad_request(reply.text + _place(command))
    # RabbitMQ also skips a binding whose source or destination does not exist.
    if reply.outcome is Outcome.MISSING and not isinstance(command, Bind):
        if isinstance(command, PermissionCommand) and "user" in reply.text:
            raise bad_request(["no_such_user", command.user])
        if isinstance(command, VhostCommand):
            raise bad_request(["no_such_vhost", command.vhost])
        raise bad_request(reply.text or "not_found")


def _place(command: MetadataCommand) -> str:
    """The name of the policy or parameter as RabbitMQ appends it to its texts."""
    if isinstance(command, SetPolicy):
        return f" ({command.vhost}/{command.name})"
    if isinstance(command, SetParameter):
        return f" ({command.vhost}/{command.component}/{command.name})"
    return ""


def parsed(data: bytes) -> Json:
    """The definitions document in the JSON text `data`, which may begin with a byte order mark.

    Editors and PowerShell write one, the latter with UTF-16.
    """
    try:
        if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            data = data.decode("utf-16").encode("utf-8")
        return decode(data.removeprefix(BOM_UTF8))
    except (RequestRefused, UnicodeError):
        raise bad_request("failed_to_parse_json") from None


async def _document(request: web.Request) -> tuple[bytes, str]:
    """The uploaded document of a form, and the location to redirect to after the import."""
    if not request.content_type.startswith("multipart/"):
        return await read_bytes(request), ""
    data, redirect, size = b"", "", 0
    try:
        reader = await request.multipart()
        async for part in reader:
            if not isinstance(part, BodyPartReader):
                raise bad_request("failed_to_parse_form")
            content = bytearray()
            while chunk := await part.read_chunk():
                content += chunk
                size += len(chunk)
                if size > HTTP_BODY_SIZE_MAX:
                    raise bad_request("Exceeded HTTP request body size limit")
            if part.name == "file":
                data = bytes(content)
            elif part.name == "redirect":
                redirect = _local_redirect(content.decode("utf-8", "replace"))
    except ValueError:
        raise bad_request("failed_to_parse_form") from None
    if not data:
        raise bad_request("failed_to_parse_json")
    return data, redirect


def _local_redirect(location: str) -> str:
    """`location` if it is a page of the web interface, not another site or a second header."""
    is_fine = location.startswith(("../", "#")) and "\r" not in location and "\n" not in location
    return location if is_fine else ""
