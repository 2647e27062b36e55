"""The cluster: its status, joining it, leaving it, forgetting members, and maintenance of its nodes."""

from typing import Annotated, NotRequired, TypedDict

from aiohttp import web
from msgspec.structs import asdict

from warren.limits_cluster import CLUSTER_HOST_SIZE_MAX
from warren.management.auth import user_of
from warren.management.cluster_controls import UnknownMember
from warren.management.controls import ControlRefused
from warren.management.managed_node import ManagedNode
from warren.management.operation import ErrorShape, Flag, doc, documented
from warren.management.replies import RequestRefused, bad_request, done, error_reply, missing, reply
from warren.management.request_body import read_fields

# The port on which nodes listen for each other unless another one is configured, as in RabbitMQ.
_CLUSTER_PORT = 25_672
_PORT_MAX = 65_535


class MemberShape(TypedDict):
    """A member of the cluster, or the node itself if it has met no other."""

    id: int
    name: str
    host: str
    cluster_port: int
    is_up: bool
    incarnation: int
    is_draining: bool
    feature_level: int
    role: str
    is_leader: bool
    link: str
    version: str | None


class UnavailableQueuesShape(TypedDict):
    """The queues of a virtual host that are on a node that is missing."""

    vhost: str
    node: str
    is_member: bool
    count: int
    names: list[str]


class LeaderlessQueuesShape(TypedDict):
    """The quorum queues of one vhost that nobody leads for one reason."""

    vhost: str
    missing: Annotated[list[str], doc("The nodes to start; none if those that are needed were removed.")]
    count: int
    names: list[str]


class ClusterShape(TypedDict):
    """The cluster as one node sees it."""

    cluster_id: str
    cluster_name: str
    feature_level: int
    node: str
    leader: str | None
    is_in_minority: bool
    minority_since: int | None
    removed_by: str | None
    members: list[MemberShape]
    unavailable: list[UnavailableQueuesShape]
    leaderless: list[LeaderlessQueuesShape]
    problems: list[str]


class JoinBody(TypedDict):
    """The member to join: where it listens for other nodes."""

    host: str
    port: NotRequired[Annotated[int, doc("25672 by default.")]]
    reset: NotRequired[Annotated[Flag, doc("Give up what this node has.")]]


class JoinedShape(TypedDict):
    """Whether the node has joined; false if it is a member of this cluster already."""

    joined: bool


# A parameter whose name is no name in Python.
LossQuery = TypedDict(
    "LossQuery",
    {"accept-loss": Annotated[bool, doc("Leave, or reset, even if something is lost with this node.")]},
    total=False,
)


@documented(response=ClusterShape)
def status(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get the members of the cluster as this node sees them, and what is unavailable and why."""
    found = node.cluster_controls.status()
    facts = asdict(found) | {
        "members": [asdict(member) for member in found.members],
        "unavailable": [asdict(queues) for queues in found.unavailable],
        "leaderless": [asdict(queues) for queues in found.leaderless],
    }
    return reply(facts)


@documented(body=JoinBody, responses={200: JoinedShape, 400: ErrorShape})
async def join(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Have this node join the cluster of another one; the answer comes when it is a member."""
    fields = await read_fields(request)
    host, port = fields.text("host"), fields.integer("port") if "port" in fields else _CLUSTER_PORT
    if not 0 < len(host) <= CLUSTER_HOST_SIZE_MAX:
        raise bad_request(f"host must have 1 to {CLUSTER_HOST_SIZE_MAX} characters")
    if not 0 < port <= _PORT_MAX:
        raise bad_request(f"port must be between 1 and {_PORT_MAX}, not {port}")
    try:
        is_new = await node.cluster_controls.join(
            user_of(request).name, host, port, is_reset=fields.flag("reset", default=False)
        )
    except ControlRefused as error:
        raise bad_request(str(error)) from None
    return reply({"joined": is_new})


@documented(query=LossQuery, responses={204: None, 400: ErrorShape})
async def remove(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Have this node leave its cluster, or remove another member that is down and will not come back."""
    name, user = request.match_info["name"], user_of(request).name
    try:
        if name == node.node_name:
            is_loss_accepted = request.query.get("accept-loss") == "true"
            await node.cluster_controls.leave(user, is_loss_accepted=is_loss_accepted)
        else:
            await node.cluster_controls.forget(user, name)
    except UnknownMember as error:
        raise missing(str(error)) from None
    except ControlRefused as error:
        raise bad_request(str(error)) from None
    return done()


@documented(query=LossQuery, responses={204: None, 400: ErrorShape, 503: ErrorShape})
async def reset(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Have a node leave its cluster and give up everything; the answer comes before it starts again."""
    _check_own(request, node)
    try:
        is_loss_accepted = request.query.get("accept-loss") == "true"
        await node.cluster_controls.reset(user_of(request).name, is_loss_accepted=is_loss_accepted)
    except ControlRefused as error:
        raise bad_request(str(error)) from None
    return done()


@documented(responses={204: None, 400: ErrorShape, 503: ErrorShape})
async def drain(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Put a node into maintenance mode: it accepts no clients, and closes the connections of those it has."""
    _check_own(request, node)
    await node.cluster_controls.drain(user_of(request).name)
    return done()


@documented(responses={204: None, 400: ErrorShape, 503: ErrorShape})
async def revive(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """End the maintenance mode of a node: it accepts clients again."""
    _check_own(request, node)
    try:
        await node.cluster_controls.revive(user_of(request).name)
    except ControlRefused as error:
        raise bad_request(str(error)) from None
    return done()


def _check_own(request: web.Request, node: ManagedNode) -> None:
    """Raise RequestRefused unless the request is about this node; one about a member is carried to it."""
    name = request.match_info["node"]
    if name == node.node_name:
        return
    if node.metadata.members.named(name) is not None:
        raise RequestRefused(error_reply(503, "service_unavailable", f"node '{name}' is down"))
    raise missing(f"there is no node '{name}'")
