"""Dry runs of shovels and federation: what would be made where, and which rights are missing."""

from typing import Annotated, Any, NotRequired, TypedDict

from aiohttp import web
from msgspec.structs import asdict

from warren.management.auth import user_of
from warren.management.managed_node import ManagedNode
from warren.management.metadata_changes import vhost_in_path
from warren.management.operation import doc, documented
from warren.management.relay_view import DryRunStep, StepState
from warren.management.replies import RequestRefused, bad_request, error_reply, reply
from warren.management.request_body import read_fields
from warren.metadata.parameter_secrets import HiddenPasswordError, unmasked_parameter
from warren.metadata.parameters import may_see_passwords
from warren.metadata.shovel_definition import SHOVEL


class DryRunBody(TypedDict):
    """The definition of a shovel."""

    value: Any
    name: NotRequired[
        Annotated[str, doc("An existing shovel, whose stored passwords take the place of hidden ones.")]
    ]


class DryRunStepShape(TypedDict):
    """One thing that a shovel or a link would do when it starts."""

    end: Annotated[str, doc("source, destination, upstream or local.")]
    uri: Annotated[str, doc("The address of that end, without credentials.")]
    action: str
    name: Annotated[str, doc("The queue or exchange that it concerns.")]
    state: Annotated[str, doc("exists (nothing is to do), create, refused, or unknown.")]
    text: Annotated[str, doc("Which right is missing, or why it is not known.")]


class DryRunShape(TypedDict):
    """The steps of a dry run, in order; nothing was changed."""

    can_run: Annotated[bool, doc("True if no step is refused.")]
    steps: list[DryRunStepShape]


@documented(body=DryRunBody, response=DryRunShape)
async def check_shovel(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Try what a shovel with this definition would do, with the rights of the user, and change nothing."""
    vhost = vhost_in_path(request, node)
    fields = await read_fields(request)
    value, name = fields.get("value"), fields.get("name")
    if node.relays.check_shovel is None:
        raise _unavailable()
    if not isinstance(value, dict):
        raise bad_request("value must be an object, the definition of a shovel")
    try:
        user, stored = user_of(request), None
        setter = vhost.parameters.user_of(SHOVEL, str(name))
        if may_see_passwords(user, user.identity, setter):
            stored = vhost.parameters.by_key.get((SHOVEL, str(name)))
        known = unmasked_parameter(SHOVEL, value, stored)
        assert isinstance(known, dict)
        steps = await node.relays.check_shovel(vhost.name, known, user)
    except (ValueError, HiddenPasswordError) as error:
        raise bad_request(str(error)) from None
    return _reply(steps)


@documented(response=DryRunShape)
def explain_exchange(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Say which links an exchange has by its policy, and what each makes at its upstream."""
    return _explained(request, node, "exchange")


@documented(response=DryRunShape)
def explain_queue(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Say which links a queue has by its policy, and what each makes at its upstream."""
    return _explained(request, node, "queue")


def _explained(request: web.Request, node: ManagedNode, kind: str) -> web.StreamResponse:
    if node.relays.check_federation is None:
        raise _unavailable()
    return _reply(
        node.relays.check_federation(vhost_in_path(request, node).name, kind, request.match_info[kind])
    )


def _reply(steps: list[DryRunStep]) -> web.StreamResponse:
    can_run = all(step.state is not StepState.REFUSED for step in steps)
    return reply({"can_run": can_run, "steps": [asdict(step) for step in steps]})


def _unavailable() -> RequestRefused:
    return RequestRefused(error_reply(503, "service_unavailable", "this node has no dry runs"))
