"""Changing the metadata from handlers, with the commands and the checks that channels use."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextvars import ContextVar
from itertools import groupby, islice
from typing import Any, TypeVar

from aiohttp import web

from warren.errors import AccessRefused, AmqpError, InternalError, NotAllowed, NotFound, ResourceError
from warren.limits import IMPORTED_AT_ONCE
from warren.management.managed_node import ManagedNode
from warren.management.replies import RequestRefused, bad_request, error_reply, missing
from warren.metadata.commands import INTERNAL_USER, MetadataCommand, Outcome, Reply, SetParameter
from warren.metadata.costly_patterns import costly_pattern
from warren.metadata.identity import shown_name
from warren.metadata.parameters import parameter_refusal
from warren.metadata.uri_check import VhostAccess
from warren.metadata.users import User
from warren.metadata.vhosts import VhostMetadata
from warren.model.coroutine_driver import drive
from warren.model.patterns import new_pattern_error

T = TypeVar("T")
# The identity of the user of the request that is being handled.
ACTING_USER: ContextVar[str] = ContextVar("ACTING_USER", default=INTERNAL_USER)


async def propose(node: ManagedNode, command: MetadataCommand) -> Reply:
    """Have `command` applied; raises RequestRefused (400) if it is refused."""
    reason = costly_pattern(command)
    if reason is not None:
        raise bad_request(reason)
    reply = await node.proposals.propose(command, shown_name(ACTING_USER.get()))
    if reply.outcome is Outcome.REFUSED:
        raise bad_request(reply.text)
    return reply


async def propose_all(node: ManagedNode, commands: Iterable[MetadataCommand]) -> list[Reply | BaseException]:
    """Have `commands` of definitions applied, all in progress at once; returns each result, in order."""
    proposed = (
        node.proposals.propose(node.placed(command), shown_name(ACTING_USER.get())) for command in commands
    )
    return await asyncio.gather(*proposed, return_exceptions=True)


def parallel_batches(items: Iterable[T], kind: Callable[[T], object]) -> Iterator[list[T]]:
    """Groups of consecutive `items` of one kind, which may run concurrently; those of kind None run alone."""
    for of_kind, row in groupby(items, kind):
        while together := list(islice(row, 1 if of_kind is None else IMPORTED_AT_ONCE)):
            yield together


async def propose_parameter(node: ManagedNode, command: SetParameter, access: VhostAccess) -> None:
    """Have a parameter set by a user with `access`; raises RequestRefused with the reason, escaped."""
    refusal = None if costly_pattern(command) else parameter_refusal(command, access)
    if refusal is not None:
        raise bad_request(escaped(refusal.text))
    await propose_checked(node, command, is_escaped=True)


async def propose_checked(node: ManagedNode, command: MetadataCommand, *, is_escaped: bool = False) -> None:
    """Have a `command` applied that RabbitMQ validates as a parameter; `is_escaped` escapes the reason."""
    reason = costly_pattern(command)
    if reason is None:
        reply = await node.proposals.propose(command, shown_name(ACTING_USER.get()))
        if reply.outcome is not Outcome.REFUSED:
            return
        reason = reply.text
    raise bad_request(escaped(reason) if is_escaped else reason)


def escaped(text: str) -> str:
    """`text` with `<` and `>` escaped for HTML, as RabbitMQ does in some of its responses."""
    return text.replace("<", "&lt;").replace(">", "&gt;")


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> "asyncio.Future[T]":
    """Run a coroutine of the code below the waterline, which has no event loop; returns its result."""
    over: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    async def carry() -> None:
        try:
            result = await coroutine
        except Exception as error:
            if not over.done():
                over.set_exception(error)
        else:
            if not over.done():
                over.set_result(result)

    drive(carry())
    return over


def vhost_in_path(request: web.Request, node: ManagedNode) -> VhostMetadata:
    """The virtual host in the path of the request; raises RequestRefused if it does not exist."""
    name = request.match_info["vhost"]
    vhost = node.metadata.vhost(name)
    if vhost is None:
        message = f"there is no virtual host '{name}'"
        if request.method == "PUT":
            raise RequestRefused(error_reply(404, "not_found", "vhost_not_found", message))
        raise missing(message)
    return vhost


def user_in_path(request: web.Request, node: ManagedNode) -> User:
    """The user in the path of the request; raises RequestRefused if it does not exist."""
    name = request.match_info["user"]
    user = node.metadata.users.by_name.get(name)
    if user is None:
        raise missing(f"there is no user '{name}'")
    return user


def check_pattern(pattern: str, *, is_topic: bool = False) -> None:
    """Raise RequestRefused for an invalid regular expression, with Erlang's term (lists of numbers)."""
    error = new_pattern_error(pattern)
    if error is not None:
        message, place = error
        shown = pattern if is_topic else _numbers(pattern)
        raise bad_request(["invalid_regexp", shown, [_numbers(message), place]])


def amqp_error_reply(error: AmqpError) -> web.Response:
    """The HTTP response for an error that would close a channel."""
    if isinstance(error, AccessRefused | NotAllowed):
        return error_reply(401, "not_authorised", "Access refused.")
    if isinstance(error, NotFound):
        return error_reply(404, "not_found", error.message)
    if isinstance(error, InternalError | ResourceError):
        return error_reply(503, "service_unavailable", error.message)
    return error_reply(400, "bad_request", error.message)


def _numbers(text: str) -> list[int]:
    return [ord(character) for character in text]
