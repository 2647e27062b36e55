"""Answers from metadata that are not out of date: another node may have just created what a request names.

A request without a body that finds nothing is answered again, when this node has applied everything that was
agreed on before. One with a body, which is read once, waits for that first. On a node alone neither waits.
"""

from collections.abc import Awaitable, Callable

from aiohttp import web

from warren.errors import HomeDown, MetadataTimeout, NotFound
from warren.management.replies import RequestRefused
from warren.metadata.machine import Metadata
from warren.metadata.proposals import Proposals

_NOT_FOUND = 404


async def with_current_metadata(
    request: web.Request,
    metadata: Metadata,
    proposals: Proposals,
    answer: Callable[[], Awaitable[web.StreamResponse]],
) -> web.StreamResponse:
    """The response of `answer`, which raises RequestRefused or an AmqpError for a refusal.

    Raises MetadataTimeout in place of a 404 if no majority of the members of the cluster answers: what was
    not found may exist.
    """
    if request.body_exists:
        return await _behind_all(proposals, answer)
    index = metadata.index
    try:
        return await answer()
    except (RequestRefused, NotFound) as refusal:
        if not _is_absence(refusal) or not await proposals.is_outdated(index):
            raise
    return await answer()


async def _behind_all(
    proposals: Proposals, answer: Callable[[], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """The response of `answer` after everything was applied that was agreed on before."""
    timeout: MetadataTimeout | None = None
    try:
        await proposals.is_outdated(0)
    except MetadataTimeout as error:
        timeout = error
    try:
        return await answer()
    except (RequestRefused, NotFound) as refusal:
        if timeout is None or not _is_absence(refusal):
            raise
    raise timeout


def _is_absence(refusal: RequestRefused | NotFound) -> bool:
    """True if `refusal` says that something does not exist."""
    if isinstance(refusal, RequestRefused):
        return refusal.response.status == _NOT_FOUND
    return not isinstance(refusal, HomeDown)
